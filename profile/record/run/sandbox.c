/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/sandbox.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/outfile.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/record/run/control.h"
#include "profile/record/run/host_side.h"
#include "profile/record/run/run.h"
#include "profile/record/sandbox/namespace.h"
#include "vmm/dev/p9.h"
#include "vmm/quirks.h"
#include "vmm/config.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files of the host that libraries read, and that a run's own counters are read from. */
static const char *const system_paths[] = {
	"/usr",	 "/lib", "/lib64",    "/etc/ld.so.cache", "/etc/localtime",
	"/proc", "/sys", "/dev/null", "/dev/urandom",	  NULL,
};
/* This file contains the host's name servers. */
#define RESOLV_CONF "/etc/resolv.conf"

void run_sandbox_machine(struct sandbox_plan *p, const struct vm_config *cfg)
{
	for (unsigned int i = 0; i < cfg->nevents; i++)
		p->perfmon |= cfg->event[i].kind == VM_EVENT_PERF ||
			      cfg->event[i].kind == VM_EVENT_HOST ||
			      (cfg->event[i].kind == VM_EVENT_CPU && !cfg->event[i].timer);
}

/*
 * Files are written under other names beside them and then renamed, so the directory must be
 * writable.
 */
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

static void sandbox_add_cache(struct sandbox_plan *p, struct sandbox_dirs *d, const struct run *r)
{
	const struct run_options *o = r->opt;
	/* If there is a keeper only it adds to the cache. */
	bool writes = o->output && o->buildid_cache && !r->keep.keeper;
	struct err ignored = { 0 };
	char *dir = o->buildid_dir ? strdup(o->buildid_dir) : buildid_default_dir();

	if (!dir)
		return;
	d->dir[d->n++] = dir;
	/* If it cannot be created this is reported when a file is added. */
	if (writes)
		file_mkdirs(dir, &ignored);
	sandbox_plan_add(p, dir, writes ? SANDBOX_WRITE : SANDBOX_READ);
}

static void sandbox_tell(const struct run *r, const struct buf *said)
{
	if (said->len && !said->failed)
		reporter_printf(r->opt->reporter, "kvmprof: sandbox: not protected: %s\n",
				(const char *)said->data);
	else if (r->opt->sandbox == SANDBOX_LOG)
		reporter_printf(r->opt->reporter,
				"kvmprof: sandbox: all of it is enforced but the lists of system "
				"calls, which are only watched\n");
}

#define NO_NETWORK_NAMESPACE \
	"the process of the network sees the names of other files: no mount namespace is allowed"
#define NO_NAMESPACE \
	"the process of a share sees the names of other files: no mount namespace is allowed"

int run_sandbox_begin(struct run *r, struct err *e)
{
	const struct run_options *o = r->opt;
	struct sandbox_plan *p = &r->sandbox;
	const char *tmp = getenv("TMPDIR");
	struct sandbox_dirs dirs = { .n = 0 };
	char snapshot[64];
	struct buf said;
	int ret, sealed;

	ret = run_keep_change_owner(r, e);
	if (ret)
		return ret;
	/* The disk of --rootfs-as ext4 is open, and its name is not needed any more. */
	if (o->sandbox != SANDBOX_OFF)
		exec_files_close_disk(&r->exec.files);
	p->user = r->keep.has_user ? &r->keep.user : NULL;
	p->mode = o->sandbox;
	p->scope = SANDBOX_OWN;
	p->pagemap = o->mem;
	p->gdb = o->gdb != NULL;
	p->served = run_disks_are_served(&r->source.disks);
	p->signals = o->engine == RUN_ENGINE_EXACT; /* QEMU was started before */
	p->reboots = o->reboot && o->engine == RUN_ENGINE_KVM;
	/* Counters are opened again after a change of the period and after a pause. */
	p->counters = p->perfmon && (r->control || o->snapshot.save || o->reboot);
	for (const char *const *at = system_paths; *at; at++)
		sandbox_plan_add(p, *at, SANDBOX_READ);
	sandbox_plan_add(p, r->source.guest_root, SANDBOX_READ);
	sandbox_plan_add(p, o->debuginfo, SANDBOX_READ);
	sandbox_add_cache(p, &dirs, r);
	sandbox_plan_add(p, r->keep.cache, SANDBOX_WRITE);
	if (r->keep.own)
		sandbox_plan_add(p, r->keep.own, SANDBOX_OWN_DIR);
	else if (o->output && !run_options_to_stdout(o))
		sandbox_add_dir_of(p, &dirs, o->output);
	else if (o->output) /* its parts are joined there */
		sandbox_plan_add(p, tmp && *tmp ? tmp : "/tmp", SANDBOX_WRITE);
	for (unsigned int i = 0; i < r->keep.nstages; i++)
		sandbox_plan_add(p, r->keep.stage[i].path, SANDBOX_OWN_DIR);
	if (r->keep.has_snapshot) { /* it is read at the end for the options that it needs */
		snprintf(snapshot, sizeof(snapshot), "/proc/self/fd/%d", r->snapshot.file.fd);
		sandbox_plan_add(p, snapshot, SANDBOX_READ);
	}
	if (r->control && !r->keep.keeper) { /* `kvmprof ctl snapshot` writes profiles, too */
		sandbox_add_dir_of(p, &dirs, run_control_path(r->control));
		sandbox_plan_add(p, ".", SANDBOX_WRITE);
	}
	if (p->mode != SANDBOX_OFF && (o->exec.nshare || o->net.kind == NET_USER) &&
	    !namespace_probe())
		p->missing = o->exec.nshare ? NO_NAMESPACE : NO_NETWORK_NAMESPACE;
	buf_init(&said);
	ret = run_keep_seal(r, e);
	if (!ret) {
		ret = sandbox_begin(p, &said, e);
		/*
		 * The two processes confine themselves at the same time. A later request must not
		 * receive this answer.
		 */
		sealed = run_keep_sealed(r, ret ? NULL : e);
		ret = ret ? ret : sealed;
	}
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

int run_sandbox_share(void *ctx, struct p9_share *share, struct err *e)
{
	const struct run *r = ctx;
	struct sandbox_plan p = { .mode = r->opt->sandbox, .scope = SANDBOX_FILES };
	const char *dir = share->dir;
	int ret;

	if (p.mode == SANDBOX_OFF)
		return 0;
	if (namespace_enter(dir, share->read_only, &share->proc)) {
		p.missing = NO_NAMESPACE;
	} else {
		share->shown = dir;
		share->dir = "/";
	}
	sandbox_plan_add(&p, share->dir, share->read_only ? SANDBOX_READ : SANDBOX_SHARE);
	ret = sandbox_begin_beside(&p, e);
	return ret ? ret : sandbox_begin_main(e);
}

int run_sandbox_network(void *ctx, struct err *e)
{
	const struct run *r = ctx;
	struct sandbox_plan p = { .mode = r->opt->sandbox,
				  .scope = SANDBOX_NETWORK,
				  .network = true };
	int ret;

	if (p.mode == SANDBOX_OFF)
		return 0;
	/* libslirp reads it repeatedly. */
	if (namespace_enter_empty(RESOLV_CONF))
		p.missing = NO_NETWORK_NAMESPACE;
	sandbox_plan_add(&p, RESOLV_CONF, SANDBOX_READ);
	ret = sandbox_begin_beside(&p, e);
	return ret ? ret : sandbox_begin_main(e);
}

int run_sandbox_tracer(void *ctx, enum attach_bind when, struct err *e)
{
	const struct run *r = ctx;
	struct sandbox_plan p = { .mode = r->opt->sandbox, .scope = SANDBOX_TRACER };

	if (when == ATTACH_BIND_MAIN)
		return sandbox_begin_main(e);
	return sandbox_begin_beside(&p, e);
}

int run_sandbox_attached(struct run *r, struct err *e)
{
	int ret = r->domain ? attach_domain_bind(r->domain, e) : 0;

	return ret ? ret : sandbox_begin_main(e);
}

int run_sandbox_ready(void *ctx, struct err *e)
{
	struct run *r = ctx;

	/*
	 * Its thread was started before the rights were given up, and must have ended before the
	 * guest begins.
	 */
	quirks_release(&r->quirks);
	run_host_threads(r);
	return sandbox_begin_main(e);
}
