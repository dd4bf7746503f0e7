/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/sandbox.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/outfile.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/record/run/host_side.h"
#include "profile/record/run/run.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files of the host that libraries, and a run's own figures, are read from. */
static const char *const system_paths[] = {
	"/usr",	 "/lib", "/lib64",    "/etc/ld.so.cache", "/etc/localtime",
	"/proc", "/sys", "/dev/null", "/dev/urandom",	  NULL,
};
/* Of names on the network, for its own name server. */
static const char *const resolver_paths[] = { "/etc/resolv.conf", "/run/systemd/resolve", NULL };

void run_sandbox_machine(struct sandbox_plan *p, const struct vm_config *cfg)
{
	for (unsigned int i = 0; i < cfg->nevents; i++)
		p->perfmon |= cfg->event[i].kind == VM_EVENT_PERF ||
			      cfg->event[i].kind == VM_EVENT_HOST ||
			      (cfg->event[i].kind == VM_EVENT_CPU && !cfg->event[i].timer);
	p->network = cfg->net.kind == NET_USER;
	for (const char *const *at = resolver_paths; p->network && *at; at++)
		sandbox_plan_add(p, *at, SANDBOX_READ);
}

/* Files appear complete or not at all, by other names beside them: it is the directory that is written. */
struct sandbox_dirs {
	char *dir[5];
	unsigned int n;
};

static void sandbox_add_dir_of(struct sandbox_plan *p, struct sandbox_dirs *d, const char *path)
{
	char *target = path ? outfile_target(path) : NULL;

	if (!target)
		return;
	d->dir[d->n++] = target;
	sandbox_plan_add(p, dirname(target), SANDBOX_WRITE);
}

static void sandbox_add_cache(struct sandbox_plan *p, struct sandbox_dirs *d,
			      const struct run_options *o)
{
	struct err ignored = { 0 };
	char *dir = o->buildid_dir ? strdup(o->buildid_dir) : buildid_default_dir();

	if (!dir)
		return;
	d->dir[d->n++] = dir;
	/* Whoever cannot make it is told so when a file is put there. */
	if (o->output && o->buildid_cache)
		file_mkdirs(dir, &ignored);
	sandbox_plan_add(p, dir, o->output && o->buildid_cache ? SANDBOX_WRITE : SANDBOX_READ);
}

static void sandbox_tell(const struct run *r, const struct buf *said)
{
	if (r->opt->sandbox != SANDBOX_LOG)
		return;
	fprintf(stderr, "kvmprof: sandbox: %s\n",
		said->len && !said->failed ? (const char *)said->data
					   : "all of it is enforced but the lists of system calls, "
					     "which are only watched");
}

int run_sandbox_begin(struct run *r, struct err *e)
{
	const struct run_options *o = r->opt;
	struct sandbox_plan *p = &r->sandbox;
	const char *tmp = getenv("TMPDIR");
	struct sandbox_dirs dirs = { .n = 0 };
	struct buf said;
	int ret;

	p->mode = o->sandbox;
	p->scope = run_is_attached(o) ? SANDBOX_ATTACHED : SANDBOX_OWN;
	p->pagemap = o->mem;
	p->signals = o->engine == RUN_ENGINE_EXACT; /* QEMU was started before */
	p->makes_code = r->quirks.interpreted;
	for (const char *const *at = system_paths; *at; at++)
		sandbox_plan_add(p, *at, SANDBOX_READ);
	sandbox_plan_add(p, r->source.guest_root, SANDBOX_READ);
	sandbox_plan_add(p, o->debuginfo, SANDBOX_READ);
	sandbox_add_cache(p, &dirs, o);
	if (o->output && !run_to_stdout(o))
		sandbox_add_dir_of(p, &dirs, o->output);
	else if (o->output) /* its parts are put together there */
		sandbox_plan_add(p, tmp && *tmp ? tmp : "/tmp", SANDBOX_WRITE);
	sandbox_add_dir_of(p, &dirs, o->snapshot.save);
	if (r->control) { /* `kvmprof ctl snapshot` writes profiles, too */
		sandbox_add_dir_of(p, &dirs, run_control_path(r->control));
		sandbox_plan_add(p, ".", SANDBOX_WRITE);
	}
	if (*r->exec.files.disk)
		sandbox_add_dir_of(p, &dirs, r->exec.files.disk);
	buf_init(&said);
	ret = sandbox_begin(p, &said, e);
	buf_u8(&said, 0);
	if (said.len == 1)
		said.len = 0;
	if (!ret)
		sandbox_tell(r, &said);
	buf_deinit(&said);
	while (dirs.n)
		free(dirs.dir[--dirs.n]);
	return ret ? ret : console_start(&r->console, e);
}

int run_sandbox_share(void *ctx, const char *dir, bool read_only, struct err *e)
{
	const struct run *r = ctx;
	struct sandbox_plan p = { .mode = r->opt->sandbox, .scope = SANDBOX_FILES };
	struct buf said; /* as in the run's own process, which tells it */
	int ret;

	sandbox_plan_add(&p, dir, read_only ? SANDBOX_READ : SANDBOX_SHARE);
	buf_init(&said);
	ret = sandbox_begin(&p, &said, e);
	buf_deinit(&said);
	return ret ? ret : sandbox_begin_main(e);
}

int run_sandbox_ready(void *ctx, struct err *e)
{
	run_host_threads(ctx);
	return sandbox_begin_main(e);
}
