/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/options/machine.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MODULE_MAX (1ull << 30)

/* One line; returns the exit status of wrong usage. */
static int wrong(const struct run_options *o, const char *option, const char *arg,
		 const char *expected)
{
	fprintf(stderr, "kvmprof %s: %s %s: expected %s; see `kvmprof %s --help`\n", o->command,
		option, arg, expected, o->command);
	return 2;
}

static bool parse_address(const char *s, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(s, &end, 16);
	return !strncmp(s, "0x", 2) && !errno && end != s && !*end;
}

/* Digits at *s, which moves behind them. */
static bool parse_count(const char **s, unsigned long max, unsigned long *out)
{
	char *end;

	if (**s < '0' || **s > '9')
		return false;
	errno = 0;
	*out = strtoul(*s, &end, 10);
	*s = end;
	return !errno && *out <= max;
}

static bool parse_pin(struct run_options *o, const char *s)
{
	unsigned long from, to;

	for (o->npin = 0;; s++) {
		if (!parse_count(&s, CPU_SETSIZE - 1, &from))
			return false;
		to = from;
		if (*s == '-' && (s++, !parse_count(&s, CPU_SETSIZE - 1, &to)))
			return false;
		if (from > to || to - from >= VM_MAX_VCPUS - o->npin || (*s && *s != ','))
			return false;
		for (; from <= to; from++)
			o->pin[o->npin++] = (int)from;
		if (!*s)
			return true;
	}
}

int run_options_take_machine(struct run_options *o, int opt, const char *arg)
{
	const char *given = arg;
	unsigned long node;

	switch (opt) {
	case OPT_BOOT:
		if (boot_way_parse(arg, &o->boot) < 0)
			return wrong(o, "--boot", arg,
				     "auto, vmlinux, bzimage, linux32, multiboot or pvh");
		return -1;
	case OPT_ENTRY:
		if (!parse_address(arg, &o->entry) || !o->entry)
			return wrong(o, "--entry", arg, "a physical address such as 0x100000");
		return -1;
	case OPT_HUGEPAGES:
		if (!strcasecmp(arg, "2M"))
			o->pages = GMEM_PAGES_2M;
		else if (!strcasecmp(arg, "1G"))
			o->pages = GMEM_PAGES_1G;
		else if (!strcmp(arg, "thp"))
			o->pages = GMEM_PAGES_THP;
		else
			return wrong(o, "--hugepages", arg, "2M, 1G or thp");
		return -1;
	case OPT_NUMA:
		if (!parse_count(&arg, GMEM_MAX_NODE, &node) || *arg)
			return wrong(o, "--numa", given, "the number of a host node, such as 0");
		o->numa_node = (int)node;
		return -1;
	case OPT_PIN:
		return parse_pin(o, arg) ? -1
					 : wrong(o, "--pin", arg,
						 "a list of host CPUs, such as 2,4-6, 64 at most");
	default: /* OPT_MODULE */
		if (!*arg || *arg == '=' || o->nmodules == BOOT_MAX_MODULES)
			return wrong(o, "--module", arg,
				     "FILE or FILE=ARGUMENTS, 16 times at most");
		o->module[o->nmodules++] = arg;
		return -1;
	}
}

int run_modules_open(struct run_modules *m, const struct run_options *o, struct err *e)
{
	for (unsigned int i = 0; i < o->nmodules; i++) {
		const char *args = strchr(o->module[i], '=');
		char *path = args ? strndup(o->module[i], (size_t)(args - o->module[i]))
				  : strdup(o->module[i]);
		int ret;

		m->name[m->n++] = path;
		if (!path)
			return err_set(e, ENOMEM, "out of memory");
		ret = file_map_open(&m->file[i], path, MODULE_MAX, e);
		if (ret)
			return ret;
		m->at[i] = (struct boot_module){
			.data = m->file[i].data,
			.len = m->file[i].len,
			.name = basename(path),
			.args = args ? args + 1 : "",
		};
	}
	return 0;
}

void run_modules_close(struct run_modules *m)
{
	for (unsigned int i = 0; i < m->n; i++) {
		file_map_close(&m->file[i]);
		free(m->name[i]);
	}
	memset(m, 0, sizeof(*m));
}
