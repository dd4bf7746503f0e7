/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/options/machine.h"

#include "base/number.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OPTION_STRUCT struct run_options

/* -- rows --------------------------------------------------------------------------------- */

static int parse_boot(void *at, char *arg, struct err *e)
{
	(void)e;
	return protocol_parse(arg, at);
}

static int parse_entry(void *at, char *arg, struct err *e)
{
	uint64_t *entry = at;
	char *end;

	(void)e;
	errno = 0;
	*entry = strtoull(arg, &end, 16);
	return !strncmp(arg, "0x", 2) && !errno && !*end && *entry ? 0 : -EINVAL;
}

static int parse_module(void *at, char *arg, struct err *e)
{
	struct run_options *o = at;

	(void)e;
	if (!*arg || *arg == '=' || o->nmodules == RUN_MODULES_MAX)
		return -EINVAL;
	o->module[o->nmodules++] = arg;
	return 0;
}

static int parse_hugepages(void *at, char *arg, struct err *e)
{
	enum gmem_pages *pages = at;

	(void)e;
	if (!strcasecmp(arg, "2M"))
		*pages = GMEM_PAGES_2M;
	else if (!strcasecmp(arg, "1G"))
		*pages = GMEM_PAGES_1G;
	else if (!strcmp(arg, "thp"))
		*pages = GMEM_PAGES_THP;
	else if (!strcmp(arg, "off"))
		*pages = GMEM_PAGES_SMALL;
	else
		return -EINVAL;
	return 0;
}

static int parse_pin(void *at, char *arg, struct err *e)
{
	struct run_options *o = at;
	const char *s = arg;
	struct number_range r;
	int ret;

	(void)e;
	o->npin = 0;
	while ((ret = number_range(&s, CPU_SETSIZE - 1, &r)) > 0) {
		if (r.to - r.from >= VM_MAX_VCPUS - o->npin)
			return -EINVAL;
		for (; r.from <= r.to; r.from++)
			o->pin[o->npin++] = (int)r.from;
	}
	return ret;
}

const struct option_row run_kernel_rows[] = {
	{ "boot", 0, "WAY",
	  "how the kernel is entered (default auto: by its format). vmlinux:\n"
	  "directly in 64-bit mode, a bzImage's kernel itself; bzimage:\n"
	  "its decompressor first, which randomizes addresses; linux32,\n"
	  "multiboot, multiboot2, pvh: in 32-bit mode",
	  OPTION_CALL_AT(parse_boot, boot,
			 "auto, vmlinux, bzimage, linux32, multiboot,"
			 " multiboot2 or pvh") },
	{ "entry", 0, "0xADDRESS", "enter a kernel directly at this physical or linked address",
	  OPTION_CALL_AT(parse_entry, entry, "a physical address such as 0x100000") },
	{ "module", 0, "FILE[=ARGS]",
	  "a module for a multiboot (1, 2) or PVH kernel; may be repeated",
	  OPTION_CALL(parse_module, "FILE or FILE=ARGUMENTS, 16 times at most") },
	{ 0 },
};

const struct option_row run_host_rows[] = {
	{ "hugepages", 0, "SIZE",
	  "back memory by huge pages: 2M, 1G, thp (transparent; an error if the\n"
	  "host has none), or off (default: transparent if the host has some)",
	  OPTION_CALL_AT(parse_hugepages, pages, "2M, 1G, thp or off") },
	{ "numa", 0, "NODE", "take memory from this host node",
	  OPTION_WHOLE(numa_node, 0, GMEM_MAX_NODE, "the number of a host node, such as 0") },
	{ "pin", 0, "LIST", "run vCPU 0, 1, ... on these host CPUs, such as 2,4-6",
	  OPTION_CALL(parse_pin, "a list of host CPUs, such as 2,4-6, 64 at most") },
	{ 0 },
};

/* -- the demo guest ----------------------------------------------------------------------- */

/* Words of a Linux command line that refer to something on a RAM disk or a disk. */
static const char *const linux_words[] = {
	"root", "rootfstype", "rootflags", "rootwait", "rootdelay", "init", "rdinit", "initrd",
};

/*
 * Returns the first word of a command line that is "NAME" or "NAME=...", or NULL; *len is its
 * length.
 */
static const char *find_word(const char *line, const char *name, size_t *len)
{
	size_t n = strlen(name);

	while (line && *line) {
		line += strspn(line, " \t\n");
		*len = strcspn(line, " \t\n");
		if (*len >= n && !strncmp(line, name, n) && (*len == n || line[n] == '='))
			return line;
		line += *len;
	}
	return NULL;
}

/* Calls find_word() for --append's texts and for --cmdline. */
static const char *find_in_all(const struct run_options *o, const char *name, size_t *len)
{
	const char *at = find_word(o->cmdline, name, len);

	for (unsigned int i = 0; !at && i < o->nappend; i++)
		at = find_word(o->append[i], name, len);
	return at;
}

bool run_options_is_demo(const struct run_options *o)
{
	return !o->image && !o->kernel && !o->snapshot.from && !run_options_is_attached(o);
}

const char *run_options_demo_check(const struct run_options *o, char *buf, size_t size)
{
	const struct {
		const char *option;
		bool given;
	} table[] = {
		{ "--initrd", o->initrd != NULL },
		{ "--root", o->root != NULL },
		{ "--writable", o->disk.writable },
		{ "--module", o->nmodules > 0 },
		{ "--modules", o->exec.modules != NULL },
		{ "--share", o->exec.nshare > 0 },
		{ "--guest-root", o->guest_root != NULL },
		{ "--debuginfo", o->debuginfo != NULL },
		/* Its own kernel's symbols can be read from memory as any other's. */
		{ "--symbols", o->symbols && strcmp(o->symbols, "live") != 0 },
	};
	size_t len;

	if (!run_options_is_demo(o))
		return NULL;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].given) {
			snprintf(buf, size,
				 "%s has no effect on the embedded demo guest, which runs without "
				 "IMAGE: name the kernel (is a variable empty?)",
				 table[i].option);
			return buf;
		}
	for (size_t i = 0; i < sizeof(linux_words) / sizeof(linux_words[0]); i++) {
		const char *word = find_in_all(o, linux_words[i], &len);

		if (!word)
			continue;
		snprintf(buf, size,
			 "'%.*s' on the command line means nothing to the embedded demo guest, "
			 "which runs without IMAGE: name the kernel (is a variable empty?)",
			 len < 80 ? (int)len : 80, word);
		return buf;
	}
	if (o->disk.n && !find_in_all(o, "mode", &len)) {
		snprintf(
			buf, size,
			"--disk: the embedded demo guest, which runs without IMAGE, reads no disk: "
			"name the kernel (is a variable empty?), or choose what the demo does by "
			"--append mode=NAME");
		return buf;
	}
	return NULL;
}
