/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/live/host_names.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "symbolizer/kernel/symfile_text.h"
#include "symbolizer/program/userelf.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#define KALLSYMS "/proc/kallsyms"
#define OWN_MAX (1u << 30)
#define KALLSYMS_MAX (64u << 20)

static int read_kernel(struct symtab **out, struct err *why)
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

/* The program itself is the first. */
static int note_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	(void)size;
	*(uint64_t *)bias = info->dlpi_addr;
	return 1;
}

static void read_own(struct host_names *n)
{
	struct file_map m;
	struct file_bytes bytes;
	struct file_source src;
	struct err ignored = { 0 };
	struct userelf elf;

	if (file_map_open(&m, "/proc/self/exe", OWN_MAX, &ignored) < 0)
		return;
	bytes = (struct file_bytes){ m.data, m.len };
	src = file_source_of_bytes(&bytes);
	if (userelf_open(&elf, "kvmprof", &src, &ignored) < 0 ||
	    userelf_symbols(&elf, &n->own, NULL, &ignored) < 0)
		n->own = NULL;
	file_map_close(&m);
	dl_iterate_phdr(note_bias, &n->own_bias);
}

int host_names_read(struct host_names *n, struct err *why)
{
	*n = (struct host_names){ 0 };
	read_own(n);
	return read_kernel(&n->kernel, why);
}

void host_names_deinit(struct host_names *n)
{
	symtab_destroy(n->kernel);
	symtab_destroy(n->own);
	*n = (struct host_names){ 0 };
}

const char *host_names_at(const struct host_names *n, uint64_t ip)
{
	const struct symbol *s = NULL;

	if (n && ip >> 63)
		s = n->kernel ? symtab_lookup(n->kernel, ip, NULL) : NULL;
	else if (n)
		s = n->own ? symtab_lookup(n->own, ip - n->own_bias, NULL) : NULL;
	return s ? s->name : NULL;
}
