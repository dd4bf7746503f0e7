/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hostile modules of a kernel without types. The input: a byte that chooses a layout, then changes
 * to a sound guest's memory: u8 kind, u16 where, u16 what.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cleanup.h"
#include "base/cursor.h"
#include "symbolizer/linux/module_find.h"
#include "symbolizer/linux/module_load.h"
#include "tests/module_guest.h"

#define MAX_CHANGES 4096u

static void change(struct cursor *c)
{
	uint8_t kind = cursor_u8(c);
	uint16_t where = cursor_u16(c), what = cursor_u16(c);
	/* Among the structures and tables, not the code. */
	uint64_t at = mg_at(where % MG_MODULES, MG_DATA + where / MG_MODULES * 4u % 0x4000);

	switch (kind & 3) {
	case 0:
		mg_put4(at, what);
		break;
	case 1:
		mg_put8(at & ~7ull, mg_at(what % MG_MODULES, what / MG_MODULES * 8u % MG_EACH));
		break;
	case 2:
		mg_put8(at & ~7ull, (uint64_t)what << 48);
		break;
	default:
		mg_put4(at, (uint32_t)what << 16 | what);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct linux_module_layout l = mg_layout();
	struct linux_module_list list;
	struct cursor c;

	cursor_init(&c, data, size);
	mg_make(&mg_shapes[cursor_u8(&c) % ARRAY_SIZE(mg_shapes)]);
	for (unsigned int i = 0; i < MAX_CHANGES && cursor_left(&c) >= 5; i++)
		change(&c);
	if (linux_module_find(&l, &mg_memory, NULL))
		return 0;
	if (!l.text_base || l.init_base <= l.text_base || !l.kallsyms)
		abort();
	if (linux_module_list(&l, &mg_memory, &list, NULL))
		return 0;
	for (size_t i = 0; i < list.n; i++)
		(void)linux_module_load(&l, &mg_memory, &list.module[i], NULL);
	linux_module_list_deinit(&list);
	return 0;
}
