/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/snapshot.h"

#include "base/clock.h"
#include "base/outfile.h"
#include "base/reporter.h"
#include "profile/record/options/options.h"
#include "profile/record/run/exec.h"
#include "profile/record/run/snapshot_resources.h"
#include "profile/record/run/source.h"
#include "vmm/vm.h"
#include "vmm/end.h"
#include "vmm/config.h"
#include "vmm/snapshot/snapshot_host.h"
#include "vmm/control.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYMBOLS_MAX (2ull << 30)

/* -- continuing with a snapshot ------------------------------------------------------- */

static int snapshot_open_target(struct run_snapshot *n, const struct run_options *o,
				struct run_source *s, struct err *e)
{
	const struct snapshot_facts *f = &n->facts;
	struct target_image b = { .name = f->image ? f->image : KERNEL_DEMO_NAME };
	const char *symbols = o->symbols ? o->symbols : f->symbols;
	int ret = snapshot_map(n->from, SNAPSHOT_IMAGE, &b.file, e);

	if (!ret && !o->symbols && symbols && strcmp(symbols, TARGET_LIVE))
		ret = snapshot_map(n->from, SNAPSHOT_SYMBOLS, &b.symbols_file, e);
	if (ret) {
		file_map_close(&b.file);
		return ret;
	}
	return kernel_open_bytes(&s->image, &s->target, &b, symbols, e);
}

/* Opens a disk at its saved path, or at the path that the next --disk gives. */
static int snapshot_open_disk(struct run_snapshot *n, const struct run_disk_options *o,
			      struct run_source *s, unsigned int i, struct err *e)
{
	const struct snapshot_disk *was = &n->devices->disk[i];
	const char *from = snapshot_path(n->from);
	struct disk_config cfg = {
		.path = was->path,
		.write = was->read_only ? DISK_READ_ONLY : DISK_OVERLAY,
	};
	struct run_disk moved = { .limit = { 0 } };
	struct err why = { 0 };
	int ret;

	if (o->n) {
		ret = run_options_disk_parse(&moved, o->text[i], e);
		if (!ret && (moved.write != DISK_OVERLAY || *moved.serial))
			ret = err_set(e, EINVAL,
				      "--disk %.200s: with --snapshot it can give only the place "
				      "of an image and its limits",
				      o->text[i]);
		if (ret)
			return ret;
		cfg.path = moved.path;
		cfg.format = moved.format;
		cfg.follow = moved.backing;
	}
	ret = run_disks_add(&s->disks, &cfg, was->serial, &why);
	if (ret)
		return err_set(e, -ret, "%s: the disk vd%c: %s%s", from, 'a' + (char)i, why.text,
			       ret == -ENOENT ? " (where it is now can be said by --disk PATH)"
					      : "");
	s->disks.at[s->disks.n - 1].limit = moved.limit;
	return snapshot_disk_check(was, i, s->disks.at[s->disks.n - 1].disk, from, e);
}

static int snapshot_open_devices(struct run_snapshot *n, const struct run_options *o,
				 struct run_source *s, struct err *e)
{
	const struct snapshot_given given = {
		.ndisks = o->disk.n,
		.nshares = o->exec.nshare,
		.net = o->net.kind != NET_NONE,
		.trust = o->snapshot.trust,
	};
	int ret;

	n->devices = malloc(sizeof(*n->devices));
	if (!n->devices)
		return err_nomem(e);
	ret = snapshot_devices(n->from, n->devices, e);
	if (ret)
		return ret;
	ret = snapshot_resources_check(n->devices, &given, snapshot_path(n->from), e);
	if (ret)
		return ret;
	if (n->devices->nshares)
		run_exec_allow_files();
	for (unsigned int i = 0; !ret && i < n->devices->ndisks; i++)
		ret = snapshot_open_disk(n, &o->disk, s, i, e);
	return ret;
}

/* Uses the directory in which a run with --exec found the guest's programs, if it still exists. */
static void snapshot_use_guest_root(const struct run_snapshot *n, const struct run_options *o,
				    struct run_source *s)
{
	const char *was = n->facts.guest_root;
	struct buf b;

	if (s->guest_root || !was)
		return;
	if (o->snapshot.trust) {
		if (access(was, R_OK) == 0)
			s->guest_root = was;
		return;
	}
	buf_init(&b);
	snapshot_resources_word(&b, was);
	buf_u8(&b, 0);
	if (!b.failed)
		reporter_printf(
			o->reporter,
			"kvmprof: note: for names of the guest's programs add --guest-root %s, "
			"where they were when the machine was saved (or --snapshot-trust)\n",
			(const char *)b.data);
	buf_deinit(&b);
}

int run_snapshot_open(struct run_snapshot *n, const struct run_options *o, struct run_source *s,
		      struct err *e)
{
	struct vm_config cfg = { 0 };
	struct cursor in;
	int ret = snapshot_open(&n->from, o->snapshot.from, e);

	if (ret)
		return ret;
	ret = snapshot_find(n->from, SNAPSHOT_FACTS, SNAPSHOT_FACTS_VERSION, &in, e);
	if (ret)
		return ret;
	ret = snapshot_facts_parse(&n->facts, &in, e);
	if (ret)
		return ret;
	ret = snapshot_configure(n->from, &cfg, e);
	if (ret)
		return ret;
	ret = snapshot_open_devices(n, o, s, e);
	if (ret)
		return ret;
	ret = snapshot_open_target(n, o, s, e);
	if (ret)
		return ret;
	s->mem_size = cfg.mem_size;
	s->vcpus = cfg.vcpus;
	s->moves = n->facts.bzimage;
	s->placed = n->facts.slide_known;
	s->slide = n->facts.slide;
	s->pa_slide = n->facts.pa_slide;
	snapshot_use_guest_root(n, o, s);
	if (o->npin && o->npin < cfg.vcpus)
		return err_set(e, EINVAL, "--pin: %u host CPUs for the %u vCPUs of %s", o->npin,
			       cfg.vcpus, snapshot_path(n->from));
	if (o->vcpu_list && !run_options_vcpus(o, s->vcpus))
		return err_set(e, EINVAL, "--cpu %s: expected vCPUs of this guest, such as 0,2-3",
			       o->vcpu_list);
	return 0;
}

int run_snapshot_configure(const struct run_snapshot *n, const struct run_options *o,
			   const struct exec_share *share, struct vm_config *cfg, struct err *e)
{
	int ret;

	if (!n->from)
		return 0;
	ret = snapshot_host_check(n->from, cfg->host, cfg->quirks, e);
	if (ret)
		return ret;
	ret = snapshot_configure(n->from, cfg, e);
	if (ret)
		return ret;
	snapshot_devices_configure(n->devices, cfg);
	/* Configures the same shares at their current paths; a read-only one stays read-only. */
	for (unsigned int i = 0; i < o->exec.nshare; i++) {
		cfg->share[i].dir = share[i].dir;
		cfg->share[i].read_only |= share[i].read_only;
	}
	if (o->net.kind != NET_NONE) {
		/* The network card stays the same; its back end is another one. */
		cfg->net = o->net;
		cfg->net.tap = o->net_tap;
	}
	return 0;
}

/* -- saving a snapshot ---------------------------------------------------------------- */

/* Checks what can be known before the guest has run for long. */
static int snapshot_can_be_saved(const struct run_options *o, const struct run_source *s,
				 struct err *e)
{
	if (o->exec.rootfs_disk)
		return err_set(e, ENOTSUP,
			       "--snapshot-save %s: the disk of --rootfs-as ext4 is gone when this "
			       "run ends: make an image (mke2fs -d DIR IMAGE SIZE) and give it "
			       "with --disk",
			       o->snapshot.save);
	for (unsigned int i = 0; i < s->disks.n; i++)
		if (disk_is_writable(s->disks.at[i].disk))
			return err_set(e, ENOTSUP,
				       "--snapshot-save %s: the guest changes %s itself, and would "
				       "find it changed when it continues: drop 'writable'",
				       o->snapshot.save, disk_path(s->disks.at[i].disk));
	return 0;
}

int run_snapshot_keep(struct run_snapshot *n, const struct run_options *o,
		      const struct run_source *s, struct err *e)
{
	const char *symbols = o->symbols;
	int ret = 0;

	if (!o->snapshot.save)
		return 0;
	ret = snapshot_can_be_saved(o, s, e);
	if (ret)
		return ret;
	/* It may take an hour until the file is written. */
	ret = outfile_check(o->snapshot.save, OUTFILE_REGULAR, e);
	if (ret)
		return ret;
	if (n->from) {
		/* A snapshot's own files are saved again with it. */
		ret = snapshot_map(n->from, SNAPSHOT_IMAGE, &n->image, e);
		symbols = symbols ? symbols : n->facts.symbols;
		if (!ret && !o->symbols && symbols && strcmp(symbols, TARGET_LIVE))
			return snapshot_map(n->from, SNAPSHOT_SYMBOLS, &n->symbols, e);
	} else if (s->target.file.data) {
		/* A copy, because the target frees its own when the guest has it. */
		ret = file_map_copy(&n->image, s->target.file.data, s->target.file.len, e);
	}
	if (!ret && symbols && strcmp(symbols, TARGET_LIVE))
		ret = file_map_open(&n->symbols, symbols, SYMBOLS_MAX, e);
	return ret;
}

void run_snapshot_init(struct run_snapshot *s)
{
	s->file = (struct snapshot_file)SNAPSHOT_FILE_NONE;
}

void run_snapshot_deinit(struct run_snapshot *s)
{
	snapshot_file_close(&s->file);
	file_map_close(&s->image);
	file_map_close(&s->symbols);
	snapshot_facts_deinit(&s->facts);
	free(s->devices);
	s->devices = NULL;
	snapshot_close(s->from);
	s->from = NULL;
}

/* root: an absolute path, or "". held: the received part of the message of --exec. */
static struct snapshot_facts facts_now(const struct run_snapshot *n, const struct run_machine *m,
				       char *root, const struct buf *held)
{
	const struct snapshot_facts *was = &n->facts;
	uint64_t slide;
	struct snapshot_facts f = {
		.bzimage = m->source->moves,
		.slide_known = vm_slide(m->vm, &slide),
		.image = strcmp(m->source->target.name, KERNEL_DEMO_NAME)
				 ? (char *)m->source->target.name
				 : NULL,
		.symbols = m->opt->symbols ? (char *)m->opt->symbols : was->symbols,
		.cmdline = (char *)m->cmdline,
		.exec = m->exec->command,
		.guest_root = *root ? root : NULL,
		.message = (char *)held->data,
	};

	if (m->exec->command)
		f.nonce = was->exec ? was->nonce : (char *)m->exec->files.nonce;

	/* Written by the consumer thread before the machine was told. */
	if (f.slide_known) {
		f.slide = slide;
		f.pa_slide = m->source->target.pa_slide;
	}
	return f;
}

static int snapshot_publish(struct run_snapshot *n, struct err *e)
{
	return n->publish ? n->publish(n->publish_ctx, e) : snapshot_file_publish(&n->file, e);
}

/* Saves the kernel as an ELF file, so that a bzImage need not be unpacked each time. */
static int snapshot_save(struct run_snapshot *n, const struct run_machine *m, struct err *e)
{
	struct snapshot_facts facts;
	struct boot_image image = { 0 };
	const uint8_t *file = n->image.data ? n->image.data : demo_elf;
	size_t len = n->image.data ? n->image.len : (size_t)(demo_elf_end - demo_elf);
	struct snapshot_blob blob[3];
	unsigned int nblobs = 0;
	struct buf b, held;
	char root[PATH_MAX];
	int ret = image_parse(&image, m->source->target.name, file, len, e);

	if (ret)
		return ret;
	buf_init(&b);
	buf_init(&held);
	exec_console_pending(&m->exec->console, &held);
	if (!m->source->guest_root || !realpath(m->source->guest_root, root))
		*root = '\0';
	facts = facts_now(n, m, root, &held);
	snapshot_facts_put(&facts, &b);
	blob[nblobs++] =
		(struct snapshot_blob){ SNAPSHOT_FACTS, SNAPSHOT_FACTS_VERSION, b.data, b.len };
	if (image.kind == BOOT_BZIMAGE)
		blob[nblobs++] =
			(struct snapshot_blob){ SNAPSHOT_IMAGE, 1, image.elf, image.elf_len };
	else
		blob[nblobs++] = (struct snapshot_blob){ SNAPSHOT_IMAGE, 1, file, len };
	if (n->symbols.data)
		blob[nblobs++] = (struct snapshot_blob){ SNAPSHOT_SYMBOLS, 1, n->symbols.data,
							 n->symbols.len };
	ret = b.failed || held.failed ? err_nomem(e) : 0;
	/* A run that is not confined opens the file late. */
	if (!ret && n->file.fd < 0)
		ret = snapshot_file_open(&n->file, m->opt->snapshot.save, e);
	ret = ret ? ret : snapshot_save_vm(m->vm, &n->file, blob, nblobs, e);
	ret = ret ? ret : snapshot_publish(n, e);
	buf_deinit(&b);
	buf_deinit(&held);
	image_deinit(&image);
	return ret;
}

void run_snapshot_take(struct run_snapshot *n, const struct run_machine *m)
{
	uint64_t t0 = clock_mono_ns();
	int ret;

	if (n->done || !m->opt->snapshot.save)
		return;
	ret = vm_pause(m->vm, &n->err);
	if (ret == -ECANCELED)
		return;
	ret = ret ? ret : snapshot_save(n, m, &n->err);
	n->done = true;
	n->saved_ns = clock_mono_ns() - t0;
	if (ret || !m->opt->snapshot.go_on)
		vm_end(m->vm, VM_END_SAVED);
	else
		vm_resume(m->vm);
}

void run_snapshot_options(const char *path, struct buf *out)
{
	const struct snapshot_given none = { 0 };
	struct snapshot_devices *d = malloc(sizeof(*d));
	struct snapshot *s = NULL;

	if (d && !snapshot_open(&s, path, NULL) && !snapshot_devices(s, d, NULL))
		snapshot_resources_options(d, &none, out);
	snapshot_close(s);
	free(d);
}

int run_snapshot_verdict(const struct run_snapshot *n, const struct run_snapshot_options *o,
			 struct err *e)
{
	if (!o->save || (n->done && !n->err.code))
		return 0;
	if (n->err.code)
		return err_set(e, n->err.code, "%s", n->err.text);
	return err_set(e, ENODATA, "no snapshot: %s '%s' was never seen",
		       o->at ? "--snapshot-at" : "--snapshot-on", o->at ? o->at : o->on);
}
