/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/host/host_names.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/proc.h"
#include "symbolizer/kernel/symfile_text.h"
#include "symbolizer/program/userelf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KALLSYMS "/proc/kallsyms"
#define FILE_MAX (1u << 30)
#define FILES_MAX 256u
#define KALLSYMS_MAX (64u << 20)

static int read_kernel(struct symtab **out, struct err *why)
{
	cleanup_close int fd = open(KALLSYMS, O_RDONLY | O_CLOEXEC);
	struct symtab *t = symtab_create();
	struct buf text;
	bool untyped;
	int ret = 0;

	buf_init(&text);
	if (fd < 0)
		ret = err_set(why, errno, KALLSYMS ": %s", strerror(errno));
	ret = ret ? ret : file_read_rest(&text, fd, KALLSYMS_MAX, KALLSYMS, why);
	if (!ret && !t)
		ret = err_nomem(why);
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

/* bias: where file_off is mapped at `at`. NULL: no names. */
static struct symtab *read_file(const char *path, uint64_t at, uint64_t file_off, uint64_t *bias)
{
	struct file_map m;
	struct file_bytes bytes;
	struct file_source src;
	struct err ignored = { 0 };
	struct symtab *symbols = NULL;
	struct userelf elf;
	uint64_t va;

	if (file_map_open(&m, path, FILE_MAX, &ignored) < 0)
		return NULL;
	bytes = (struct file_bytes){ m.data, m.len };
	src = filepiece_source_of_bytes(&bytes);
	if (userelf_open(&elf, path, &src, &ignored) < 0 || !userelf_va_of(&elf, file_off, &va) ||
	    userelf_symbols(&elf, &symbols, NULL, &ignored) < 0)
		symbols = NULL;
	else
		*bias = at - va;
	file_map_close(&m);
	return symbols;
}

/* A line of maps (proc(5)): "START-END r-xp OFFSET DEV INODE PATH". */
static bool add_file(struct host_names *n, const char *root, char *line)
{
	struct host_file f = { 0 }, *more;
	uint64_t off;
	char rights[8], path[PATH_MAX];
	int at = 0;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &f.start, &f.end,
		   rights, &off, &at) != 4 ||
	    !at || line[at] != '/' || rights[2] != 'x')
		return true;
	more = realloc(n->file, (n->nfiles + 1) * sizeof(*more));
	if (!more)
		return false;
	n->file = more;
	snprintf(path, sizeof(path), "%s%s", root, line + at);
	snprintf(f.label, sizeof(f.label), "[%s]", strrchr(line + at, '/') + 1);
	f.symbols = read_file(path, f.start, off, &f.bias);
	n->file[n->nfiles++] = f;
	return n->nfiles < FILES_MAX;
}

static void read_files(struct host_names *n, pid_t pid)
{
	char base[32] = "/proc/self", path[48], *line = NULL;
	cleanup_fclose FILE *f = NULL;
	size_t size = 0;

	if (pid)
		snprintf(base, sizeof(base), "/proc/%d", (int)pid);
	snprintf(path, sizeof(path), "%s/maps", base);
	f = proc_open(path);
	snprintf(path, sizeof(path), "%s/root", base);
	while (f && getline(&line, &size, f) > 0 && add_file(n, path, line))
		;
	free(line);
}

int host_names_read(struct host_names *n, pid_t pid, struct err *why)
{
	*n = (struct host_names){ 0 };
	read_files(n, pid);
	return read_kernel(&n->kernel, why);
}

void host_names_deinit(struct host_names *n)
{
	symtab_destroy(n->kernel);
	while (n->nfiles)
		symtab_destroy(n->file[--n->nfiles].symbols);
	free(n->file);
	*n = (struct host_names){ 0 };
}

static const char *name_in(const struct symtab *t, uint64_t va)
{
	const struct symbol *s = t ? symtab_lookup(t, va, NULL) : NULL;

	return s ? s->name : NULL;
}

const char *host_names_at(const struct host_names *n, uint64_t ip)
{
	const char *name;

	if (n && ip >> 63)
		return name_in(n->kernel, ip);
	for (unsigned int i = 0; n && i < n->nfiles; i++) {
		const struct host_file *f = &n->file[i];

		if (ip < f->start || ip >= f->end)
			continue;
		name = name_in(f->symbols, ip - f->bias);
		return name ? name : f->label;
	}
	return NULL;
}
