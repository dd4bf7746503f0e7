/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_run: `kvmprof run`: boot, sample, write, say what happened. */
#include "profile/cmd/cmd.h"
#include "profile/cmd/common.h"

#include "base/cleanup.h"
#include "profile/record/run/run.h"
#include "profile/record/run/repeat.h"
#include "profile/record/run/definition.h"

#include <stdio.h>
#include <stdlib.h>

/* -1 to go on, else the exit status. */
static int take_definition(struct run *r, struct domain_xml *d)
{
	struct err e = { 0 };
	struct buf left;

	if (run_definition_apply(d, &r->asked, &e) < 0) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	if (d->nleft) {
		buf_init(&left);
		run_definition_unused(d, "kvmprof:   ", 96, &left);
		fprintf(stderr, "kvmprof: this machine lacks the following of domain %s:\n%s",
			d->name ? d->name : r->asked.domain,
			left.failed ? "" : (const char *)left.data);
		buf_deinit(&left);
	}
	return run_options_check_machine(&r->asked);
}

int cmd_run(int argc, char **argv)
{
	cleanup_free struct run *r = calloc(1, sizeof(*r)); /* large: two stacks of frames */
	struct domain_xml definition = {
		0
	}; /* definition of --domain; the options point into it */
	int status;

	if (!r)
		return cmd_no_memory();
	r->asked.reporter = &cmd_reporter;
	r->asked.help = stdout;
	status = run_options_parse(&r->asked, argc, argv);
	if (status < 0 && r->asked.domain)
		status = take_definition(r, &definition);
	if (status < 0 && r->asked.repeat > 1)
		return run_repeat(&r->asked, argc, argv);
	r->json = r->asked.json ? stdout : NULL;
	if (status < 0)
		status = run_main(r, argc, argv);
	domain_xml_deinit(&definition);
	return status;
}
