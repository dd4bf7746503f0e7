/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/live/host_names.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbolizer/kernel/symfile_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define KALLSYMS "/proc/kallsyms"
#define KALLSYMS_MAX (64u << 20)

int host_names_read(struct symtab **out, struct err *why)
{
	cleanup_fclose FILE *f = fopen(KALLSYMS, "re");
	struct symtab *t = symtab_create();
	struct buf text;
	char part[65536];
	bool untyped;
	size_t n;
	int ret = 0;

	buf_init(&text);
	if (!f)
		ret = err_set(why, errno, KALLSYMS ": %s", strerror(errno));
	while (!ret && text.len < KALLSYMS_MAX && (n = fread(part, 1, sizeof(part), f)) > 0)
		buf_add(&text, part, n);
	if (!ret && (!t || text.failed))
		ret = err_set(why, ENOMEM, "out of memory");
	ret = ret ? ret
		  : symfile_text_parse(t, KALLSYMS, (const uint8_t *)text.data, text.len, &untyped,
				       why);
	ret = ret ? ret : symtab_freeze(t, why);
	buf_deinit(&text);
	if (ret)
		symtab_destroy(t);
	else
		*out = t;
	return ret;
}
