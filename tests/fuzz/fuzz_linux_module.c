/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hostile modules. The input: a byte of flags (1: no typetab, else 2: no build_id), then changes to a
 * sound guest's memory: u8 kind, u16 where, u16 what. The same list is read as one of modules and
 * as lists of code made at run time.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "symbolizer/linux/dyncode.h"
#include "symbolizer/linux/module_load.h"
#include "tests/linux_guest.h"

#define MAX_CHANGES 4096u
#define MAX_MODULES 64u

static void change(struct guest *g, struct cursor *c)
{
	uint8_t kind = cursor_u8(c);
	uint16_t where = cursor_u16(c), what = cursor_u16(c);
	uint64_t at =
		GUEST_MODULES + where * 4ull % (GUEST_BASE + GUEST_BYTES - GUEST_MODULES - 64);

	switch (kind & 7) {
	case 0:
		guest_u64(g, at, GUEST_MODULES + what * 8ull % 0x3000);
		break;
	case 1:
		guest_u64(g, at, GUEST_TEXT(0) + what * 8ull % 0x14000);
		break;
	case 2:
		guest_u32(g, at, what);
		break;
	case 3:
		guest_u64(g, at, (uint64_t)what << 48);
		break;
	case 4: /* one more that is like another one */
		memcpy(g->bytes + (GUEST_MODULE(what % 4) - GUEST_BASE),
		       g->bytes + (GUEST_MODULE(what / 4 % 4) - GUEST_BASE), 0x400);
		break;
	case 5:
		memcpy(g->orc_ip + where * 2u % (sizeof(g->orc_ip) - 1), &what, 2);
		break;
	case 6:
		memcpy(g->orc + where * 2u % (sizeof(g->orc) - 1), &what, 2);
		break;
	default:
		guest_u32(g, at, (uint32_t)what << 16 | what);
		break;
	}
}

static void check_module(const struct linux_module *x)
{
	for (size_t i = 0; x->symbols && i < symtab_count(x->symbols); i++) {
		const struct symbol *s = symtab_at(x->symbols, i);

		if (!(s->addr >= x->text.start && s->addr < x->text.end) &&
		    !(s->addr >= x->init_text.start && s->addr < x->init_text.end))
			abort();
	}
	if (x->text.start > x->text.end || x->build_id_len > KIMAGE_BUILD_ID_MAX || !x->name[0] ||
	    x->state >= LINUX_MODULE_UNFORMED)
		abort();
}

static void check_dyncode(const struct memory *m)
{
	const struct linux_dyncode_family of_text = { .head = GUEST_MODULES,
						      .list = GM_LIST,
						      .start = GM_TEXT,
						      .end = LINUX_DYNCODE_NONE,
						      .size = GM_TEXT_SIZE,
						      .name = GM_NAME,
						      .name_size = 56,
						      .flags = GM_STATE };
	struct linux_dyncode_layout l = {
		.family = { [LINUX_DYNCODE_BPF] = of_text, [LINUX_DYNCODE_FTRACE] = of_text },
		.kernel_start = 0xffffffff81000000,
		.kernel_end = 0xffffffff82000000,
		.ftrace_caller = 0xffffffff81000100,
		.ftrace_regs_caller = 0xffffffff81000200,
		.save_regs = 1
	};
	struct linux_dyncode_list list;
	uint64_t hash;

	l.family[LINUX_DYNCODE_FTRACE].name = LINUX_DYNCODE_NONE;
	l.family[LINUX_DYNCODE_BPF].size = LINUX_DYNCODE_NONE;
	l.family[LINUX_DYNCODE_BPF].end = GM_INIT;
	(void)linux_dyncode_hash(&l, m, &hash);
	if (linux_dyncode_list(&l, m, &list, NULL))
		return;
	for (size_t i = 0; i < list.n; i++) {
		const struct linux_dyncode *x = &list.code[i];

		if (x->start >= x->end || !x->name[0] || !memchr(x->name, 0, sizeof(x->name)) ||
		    (i && x->start < list.code[i - 1].end) ||
		    (x->start < l.kernel_end && x->end > l.kernel_start))
			abort();
	}
	linux_dyncode_list_deinit(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct guest g;
	static struct symtab *symbols;
	struct unwind_region region[2 * MAX_MODULES];
	const struct memory m = { guest_read, &g };
	struct linux_module_layout l;
	struct linux_module_list list;
	struct types types = guest_types;
	struct cursor c;
	uint64_t hash;
	uint8_t flags;
	size_t n;

	cursor_init(&c, data, size);
	flags = cursor_u8(&c);
	if (flags & 3)
		types.ctx = (void *)(uintptr_t)((flags & 1) ? "typetab" : "build_id");
	guest_make(&g, false);
	if (!symbols)
		symbols = guest_symbols();
	for (unsigned int i = 0; i < MAX_CHANGES && cursor_left(&c) >= 5; i++)
		change(&g, &c);
	if (linux_module_layout(&l, &types, symbols, NULL))
		abort();
	check_dyncode(&m);
	(void)linux_module_hash(&l, &m, &hash);
	if (linux_module_list(&l, &m, &list, NULL))
		return 0;
	for (size_t i = 0; i < list.n; i++) {
		(void)linux_module_load(&l, &m, &list.module[i], NULL);
		check_module(&list.module[i]);
	}
	n = linux_module_regions(&list, region, 2 * MAX_MODULES);
	for (size_t i = 1; i < n; i++)
		if (region[i].start < region[i - 1].end)
			abort();
	linux_module_list_deinit(&list);
	return 0;
}
