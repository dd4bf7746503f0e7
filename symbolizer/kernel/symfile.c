/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/symfile.h"

#include "symbolizer/kernel/symfile_text.h"
#include "symbolizer/kernel/symident.h"

#include <errno.h>
#include <string.h>

static int parse_elf(struct symfile *f, const char *name, const uint8_t *data, size_t len,
		     struct err *e)
{
	struct kimage k;
	int ret = kimage_parse(&k, name, data, len, e);

	if (ret < 0)
		return ret;
	if (!k.has_symtab)
		return err_set(e, EINVAL,
			       "%s: an ELF file without symbols (stripped); expected a "
			       "vmlinux with .symtab",
			       name);
	ret = kimage_symbols(&k, &f->symbols, e);
	if (ret < 0)
		return ret;
	f->kind = SYMFILE_ELF;
	memcpy(f->build_id, k.build_id, k.build_id_len);
	f->build_id_len = k.build_id_len;
	memcpy(f->banner, k.banner, sizeof(f->banner));
	f->text_va = k.text;
	f->text_len = symident_text_hash(&k, SYMIDENT_MAX_HASHED, &f->text_hash);
	return 0;
}

int symfile_parse(struct symfile *f, const char *name, const uint8_t *data, size_t len,
		  struct err *e)
{
	struct symfile x = { .kind = SYMFILE_TEXT };
	int ret;

	if (len >= 4 && !memcmp(data, "\177ELF", 4)) {
		ret = parse_elf(&x, name, data, len, e);
		if (ret == 0)
			*f = x;
		return ret;
	}
	x.symbols = symtab_create();
	if (!x.symbols)
		return err_set(e, ENOMEM, "%s: no memory for symbols", name);
	ret = symfile_text_parse(x.symbols, name, data, len, &x.untyped, e);
	if (ret == 0)
		ret = symtab_freeze(x.symbols, e);
	if (ret < 0) {
		symtab_destroy(x.symbols);
		return ret;
	}
	*f = x;
	return 0;
}

void symfile_deinit(struct symfile *f)
{
	symtab_destroy(f->symbols);
	f->symbols = NULL;
}
