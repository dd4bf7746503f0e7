/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/names/reader.h"

#include <errno.h>

int reader_open(struct reader *r, const struct reader_options *o, struct err *e)
{
	int ret;

	*r = (struct reader){ .tasks = tasks_create() };
	ret = r->tasks ? 0 : err_set(e, ENOMEM, "out of memory");
	if (!ret)
		ret = perfdata_open_event(&r->p, o->input ? o->input : "perf.data", o->event, e);
	if (!ret)
		ret = names_create(&r->names, r->p, o->buildid_dir, e);
	if (ret)
		reader_close(r);
	return ret;
}

void reader_close(struct reader *r)
{
	names_destroy(r->names);
	tasks_destroy(r->tasks);
	perfdata_close(r->p);
	*r = (struct reader){ .lines = r->lines };
}

int reader_next(struct reader *r, struct perfdata_record *rec, struct err *e)
{
	while (perfdata_next(r->p, rec)) {
		int ret;

		if (rec->kind == PERFDATA_SAMPLE || rec->kind == PERFDATA_MARKER)
			return 1;
		if (rec->kind == PERFDATA_MAP && r->lines)
			srcline_set_map(r->lines, rec);
		ret = names_record(r->names, rec, e);
		ret = ret ? ret : tasks_record(r->tasks, rec, e);
		if (ret)
			return ret;
	}
	return names_unread(r->names, e);
}
