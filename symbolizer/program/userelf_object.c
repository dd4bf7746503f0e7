/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One variable that a file exports, by its dynamic symbols. */
#include "symbolizer/program/userelf_load.h"

#include <errno.h>
#include <string.h>

int userelf_object(const struct userelf *u, const char *name, uint64_t *va)
{
	struct userelf_load l = { .u = u };
	size_t room = strlen(name) + 1;
	int ret = -ENOENT;

	if (!u->dynamic_off)
		return -ENOENT;
	userelf_find_dynamic(&l);
	for (uint32_t i = 0; i < l.dyn.count && ret == -ENOENT; i++) {
		const char *is;
		Elf64_Sym s;

		if (!userelf_table_sym(&l.dyn, i, &s) || ELF64_ST_TYPE(s.st_info) != STT_OBJECT ||
		    s.st_shndx == SHN_UNDEF)
			continue;
		is = filepiece_str(&l.dyn.str, s.st_name, room);
		if (!is || strcmp(is, name) != 0)
			continue;
		*va = s.st_value;
		ret = 0;
	}
	if (ret && l.n.dynsym != USERELF_READ)
		ret = -ENODATA;
	filepiece_deinit(&l.dyn.sym);
	filepiece_deinit(&l.dyn.str);
	return ret;
}
