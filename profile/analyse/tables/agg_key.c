/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/tables/agg_key.h"

#include "base/cleanup.h"
#include "profile/format/sink/where.h"

#include <inttypes.h>
#include <stdio.h>

static const char *mode_name(enum agg_mode mode)
{
	static const char *const name[AGG_MODES] = { "kernel",	     "user",	   "idle",
						     "guest-kernel", "guest-user", "hypervisor",
						     "unknown" };

	return mode < AGG_MODES ? name[mode] : "?";
}

static int compare_numbers(uint64_t x, uint64_t y)
{
	return x < y ? -1 : x > y;
}

static const char *format_number(uint64_t v, char *buf, size_t size)
{
	snprintf(buf, size, "%" PRIu64, v);
	return buf;
}

/* -- comm ------------------------------------------------------------------------------ */

static struct agg_value comm_value(const struct agg_frame *f)
{
	return (struct agg_value){ f->comm, 0 };
}

static int comm_compare(const struct tasks *t, const struct agg_frame *x, const struct agg_frame *y)
{
	return strcmp(tasks_text(t, x->comm), tasks_text(t, y->comm));
}

static const char *comm_format(const struct tasks *t, const struct agg_frame *f, char *buf,
			       size_t size)
{
	(void)buf;
	(void)size;
	return tasks_text(t, f->comm);
}

/* -- numbers of the sample --------------------------------------------------------------- */

/* value, compare and format functions of a numeric field; print writes it. */
#define NUMBER_KEY(field, print)                                                            \
	static struct agg_value field##_value(const struct agg_frame *f)                    \
	{                                                                                   \
		return (struct agg_value){ f->field, 0 };                                   \
	}                                                                                   \
	static int field##_compare(const struct tasks *t, const struct agg_frame *x,        \
				   const struct agg_frame *y)                               \
	{                                                                                   \
		(void)t;                                                                    \
		return compare_numbers(x->field, y->field);                                 \
	}                                                                                   \
	static const char *field##_format(const struct tasks *t, const struct agg_frame *f, \
					  char *buf, size_t size)                           \
	{                                                                                   \
		(void)t;                                                                    \
		return print(f->field, buf, size);                                          \
	}

NUMBER_KEY(pid, format_number)
NUMBER_KEY(tid, format_number)
/* -1 means no vCPU, as in perf. */
static const char *format_cpu(uint64_t cpu, char *buf, size_t size)
{
	if (cpu != SAMPLE_NO_CPU)
		return format_number(cpu, buf, size);
	snprintf(buf, size, "-1");
	return buf;
}

NUMBER_KEY(cpu, format_cpu)

/* -- size of pages ----------------------------------------------------------------------- */

/* Writes "4K", "2M" or "1G"; "N/A", as perf does, if unknown. */
static const char *format_page(uint64_t bytes, char *buf, size_t size)
{
	static const char unit[] = { ' ', 'K', 'M', 'G', 'T' };
	unsigned int u = 0;

	if (!bytes)
		return "N/A";
	while (u + 1 < sizeof(unit) && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	snprintf(buf, size, "%" PRIu64 "%.*s", bytes, u > 0, &unit[u]);
	return buf;
}

NUMBER_KEY(code_page, format_page)
NUMBER_KEY(data_page, format_page)

/* -- mode ------------------------------------------------------------------------------ */

static struct agg_value mode_value(const struct agg_frame *f)
{
	return (struct agg_value){ f->mode, 0 };
}

static int mode_compare(const struct tasks *t, const struct agg_frame *x, const struct agg_frame *y)
{
	(void)t;
	return (int)x->mode - (int)y->mode;
}

static const char *mode_format(const struct tasks *t, const struct agg_frame *f, char *buf,
			       size_t size)
{
	(void)t;
	(void)buf;
	(void)size;
	return mode_name(f->mode);
}

/* -- where ----------------------------------------------------------------------------- */

static const char *format_where(uint64_t v, char *buf, size_t size)
{
	(void)buf;
	(void)size;
	return where_name((enum sample_where)v);
}

NUMBER_KEY(where, format_where)

/* -- dso ------------------------------------------------------------------------------- */

static struct agg_value dso_value(const struct agg_frame *f)
{
	return (struct agg_value){ (uintptr_t)f->dso, 0 };
}

static int dso_compare(const struct tasks *t, const struct agg_frame *x, const struct agg_frame *y)
{
	(void)t;
	return strcmp(x->dso, y->dso);
}

static const char *dso_format(const struct tasks *t, const struct agg_frame *f, char *buf,
			      size_t size)
{
	(void)t;
	(void)buf;
	(void)size;
	return f->dso;
}

/* -- symbol ---------------------------------------------------------------------------- */

/* Two static functions with one name are different; unnamed addresses also differ by DSO. */
static struct agg_value sym_value(const struct agg_frame *f)
{
	if (f->symbol)
		return (struct agg_value){ (uintptr_t)f->symbol, 0 };
	return (struct agg_value){ (uintptr_t)f->dso, f->addr };
}

static int sym_compare(const struct tasks *t, const struct agg_frame *x, const struct agg_frame *y)
{
	int d = strcmp(x->symbol ? x->name : "", y->symbol ? y->name : "");

	if (!d)
		d = dso_compare(t, x, y);
	return d ? d
		 : compare_numbers(x->symbol ? x->symbol->addr : x->addr,
				   y->symbol ? y->symbol->addr : y->addr);
}

static const char *sym_format(const struct tasks *t, const struct agg_frame *f, char *buf,
			      size_t size)
{
	(void)t;
	if (f->symbol)
		return f->name;
	snprintf(buf, size, "0x%016" PRIx64, f->addr);
	return buf;
}

/* -- source line ----------------------------------------------------------------------- */

#define NO_LINE "??:0" /* as in addr2line */

static struct agg_value srcline_value(const struct agg_frame *f)
{
	return (struct agg_value){ (uintptr_t)f->line, 0 };
}

static int srcline_compare(const struct tasks *t, const struct agg_frame *x,
			   const struct agg_frame *y)
{
	(void)t;
	return strcmp(x->line ? x->line : NO_LINE, y->line ? y->line : NO_LINE);
}

static const char *srcline_format(const struct tasks *t, const struct agg_frame *f, char *buf,
				  size_t size)
{
	(void)t;
	(void)buf;
	(void)size;
	return f->line ? f->line : NO_LINE;
}

/* -- table ----------------------------------------------------------------------------- */

/* clang-format off */
static const struct agg_key keys[] = {
	{ "comm", "Command", "comm", 8, AGG_NEED_COMM, false, comm_value, comm_compare, comm_format },
	{ "pid", "PID", "pid", 5, AGG_NEED_PID, true, pid_value, pid_compare, pid_format },
	{ "tid", "TID", "tid", 5, AGG_NEED_TID, true, tid_value, tid_compare, tid_format },
	{ "cpu", "CPU", "cpu", 3, AGG_NEED_CPU, true, cpu_value, cpu_compare, cpu_format },
	{ "mode", "Mode", "mode", 6, 0, false, mode_value, mode_compare, mode_format },
	{ "where", "Where", "where", 8, 0, false, where_value, where_compare, where_format },
	{ "sym", "Symbol", "symbol", 24, 0, false, sym_value, sym_compare, sym_format },
	{ "dso", "DSO", "dso", 8, 0, false, dso_value, dso_compare, dso_format },
	{ "code_page_size", "Code Page", "code_page_size", 9, AGG_NEED_CODE_PAGE, false, code_page_value, code_page_compare, code_page_format },
	{ "data_page_size", "Data Page", "data_page_size", 9, AGG_NEED_DATA_PAGE, false, data_page_value, data_page_compare, data_page_format },
	{ "srcline", "Source:Line", "srcline", 16, AGG_NEED_LINE, false, srcline_value, srcline_compare, srcline_format },
};
/* clang-format on */

const struct agg_key *agg_key_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	/* perf accepts this spelling, too. */
	return !strcmp(name, "symbol") ? agg_key_find("sym") : NULL;
}

void agg_key_list(char *out, size_t size)
{
	size_t at = 0;

	*out = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(keys) && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", keys[i].name);
}
