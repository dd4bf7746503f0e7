/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/run/snapshot.h"

#include "base/clock.h"
#include "profile/run/run.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYMBOLS_MAX (2ull << 30)

/* -- going on with one ---------------------------------------------------------------- */

static int open_target(struct run *r, struct err *e)
{
	const struct snapshot_facts *f = &r->snapshot.facts;
	struct target_bytes b = { .name = f->image ? f->image : TARGET_DEMO_NAME };
	const char *symbols = r->opt.symbols ? r->opt.symbols : f->symbols;
	int ret = snapshot_map(r->snapshot.from, SNAPSHOT_IMAGE, &b.file, e);

	if (!ret && !r->opt.symbols && symbols && strcmp(symbols, TARGET_LIVE))
		ret = snapshot_map(r->snapshot.from, SNAPSHOT_SYMBOLS, &b.symbols_file, e);
	if (ret) {
		file_map_close(&b.file);
		return ret;
	}
	return target_open_bytes(&r->target, &b, symbols, e);
}

/* At its place, or where the next --disk says that it is now. */
static int open_disk(struct run *r, unsigned int i, struct err *e)
{
	const struct run_disk_options *o = &r->opt.disk;
	const struct snapshot_disk *was = &r->snapshot.devices->disk[i];
	const char *from = snapshot_path(r->snapshot.from);
	struct disk_config cfg = {
		.path = was->path,
		.write = was->read_only ? DISK_READ_ONLY : DISK_OVERLAY,
	};
	struct run_disk moved;
	struct err why = { 0 };
	int ret;

	if (o->n) {
		ret = run_disk_parse(&moved, o->text[i], e);
		if (!ret && (moved.write != DISK_OVERLAY || *moved.serial))
			ret = err_set(e, EINVAL,
				      "--disk %.200s: with --snapshot it says where an image is "
				      "now, and nothing else",
				      o->text[i]);
		if (ret)
			return ret;
		cfg.path = moved.path;
	}
	ret = run_disks_add(&r->disks, &cfg, was->serial, &why);
	if (ret)
		return err_set(e, -ret, "%s: the disk vd%c: %s%s", from, 'a' + (char)i, why.text,
			       ret == -ENOENT ? " (where it is now can be said by --disk PATH)"
					      : "");
	return snapshot_disk_check(was, i, r->disks.at[r->disks.n - 1].disk, from, e);
}

static int open_devices(struct run *r, struct err *e)
{
	struct run_snapshot *s = &r->snapshot;
	int ret;

	s->devices = malloc(sizeof(*s->devices));
	if (!s->devices)
		return err_set(e, ENOMEM, "out of memory");
	ret = snapshot_devices(s->from, s->devices, e);
	if (!ret && r->opt.disk.n && r->opt.disk.n != s->devices->ndisks)
		ret = err_set(e, EINVAL,
			      "%s has %u disks: give --disk PATH for each, in order, or for none",
			      snapshot_path(s->from), s->devices->ndisks);
	if (!ret && r->opt.net.kind != NET_NONE && s->devices->net.kind == NET_NONE)
		ret = err_set(e, EINVAL, "%s: its machine has no network card: drop --net",
			      snapshot_path(s->from));
	for (unsigned int i = 0; !ret && i < s->devices->ndisks; i++)
		ret = open_disk(r, i, e);
	return ret;
}

int run_snapshot_open(struct run *r, struct err *e)
{
	struct run_snapshot *s = &r->snapshot;
	struct vm_config cfg = { 0 };
	struct cursor in;
	int ret = snapshot_open(&s->from, r->opt.snapshot.from, e);

	ret = ret ? ret : snapshot_find(s->from, SNAPSHOT_FACTS, SNAPSHOT_FACTS_VERSION, &in, e);
	ret = ret ? ret : snapshot_facts_parse(&s->facts, &in, e);
	ret = ret ? ret : snapshot_configure(s->from, &cfg, e);
	ret = ret ? ret : open_devices(r, e);
	ret = ret ? ret : open_target(r, e);
	if (ret)
		return ret;
	r->opt.mem_size = cfg.mem_size;
	r->opt.vcpus = cfg.vcpus;
	r->opt.moves = s->facts.bzimage;
	/* Where a run with --exec found the guest's programs, if that is still there. */
	if (!r->opt.guest_root && s->facts.guest_root && access(s->facts.guest_root, R_OK) == 0)
		r->opt.guest_root = s->facts.guest_root;
	if (r->opt.npin && r->opt.npin < cfg.vcpus)
		return err_set(e, EINVAL, "--pin: %u host CPUs for the %u vCPUs of %s", r->opt.npin,
			       cfg.vcpus, snapshot_path(s->from));
	if (r->opt.vcpu_list && !run_options_vcpus(&r->opt))
		return err_set(e, EINVAL, "--cpu %s: expected vCPUs of this guest, such as 0,2-3",
			       r->opt.vcpu_list);
	return 0;
}

int run_snapshot_configure(struct run *r, struct vm_config *cfg, struct err *e)
{
	struct run_snapshot *s = &r->snapshot;
	int ret;

	if (!s->from)
		return 0;
	ret = snapshot_check_host(s->from, &r->host, &r->quirks, e);
	ret = ret ? ret : snapshot_configure(s->from, cfg, e);
	if (ret)
		return ret;
	snapshot_devices_configure(s->devices, cfg);
	if (r->opt.net.kind != NET_NONE) {
		/* The same card at another cable. */
		cfg->net = r->opt.net;
		cfg->net.tap = r->opt.net_tap;
	}
	return 0;
}

/* -- saving one ----------------------------------------------------------------------- */

/* What is known before it has run for long. */
static int can_be_saved(const struct run *r, struct err *e)
{
	if (r->opt.exec.rootfs_disk)
		return err_set(e, ENOTSUP,
			       "--snapshot-save %s: the disk of --rootfs-as ext4 is gone when this "
			       "run ends: make an image (mke2fs -d DIR IMAGE SIZE) and give it "
			       "with --disk",
			       r->opt.snapshot.save);
	for (unsigned int i = 0; i < r->disks.n; i++)
		if (disk_is_writable(r->disks.at[i].disk))
			return err_set(e, ENOTSUP,
				       "--snapshot-save %s: the guest changes %s itself, and would "
				       "find it changed when it goes on: leave out 'writable'",
				       r->opt.snapshot.save, disk_path(r->disks.at[i].disk));
	return 0;
}

int run_snapshot_keep(struct run *r, struct err *e)
{
	struct run_snapshot *s = &r->snapshot;
	const char *symbols = r->opt.symbols;
	int ret = 0;

	if (!r->opt.snapshot.save)
		return 0;
	ret = can_be_saved(r, e);
	if (ret)
		return ret;
	if (s->from) {
		/* What it came with goes on with it. */
		ret = snapshot_map(s->from, SNAPSHOT_IMAGE, &s->image, e);
		symbols = symbols ? symbols : s->facts.symbols;
		if (!ret && !r->opt.symbols && symbols && strcmp(symbols, TARGET_LIVE))
			return snapshot_map(s->from, SNAPSHOT_SYMBOLS, &s->symbols, e);
	} else if (r->target.file.data) {
		/* A copy: the target gives its own back when the guest has it. */
		ret = file_map_copy(&s->image, r->target.file.data, r->target.file.len, e);
	}
	if (!ret && symbols && strcmp(symbols, TARGET_LIVE))
		ret = file_map_open(&s->symbols, symbols, SYMBOLS_MAX, e);
	return ret;
}

void run_snapshot_deinit(struct run_snapshot *s)
{
	file_map_close(&s->image);
	file_map_close(&s->symbols);
	snapshot_facts_deinit(&s->facts);
	free(s->devices);
	s->devices = NULL;
	snapshot_close(s->from);
	s->from = NULL;
}

/* root: absolute, or "". held: what of the message of --exec has come. */
static struct snapshot_facts facts_now(const struct run *r, char *root, const struct buf *held)
{
	const struct snapshot_facts *was = &r->snapshot.facts;
	uint64_t slide;
	struct snapshot_facts f = {
		.bzimage = r->opt.moves,
		.slide_known = vm_slide(r->vm, &slide),
		.image = strcmp(r->target.name, TARGET_DEMO_NAME) ? (char *)r->target.name : NULL,
		.symbols = r->opt.symbols ? (char *)r->opt.symbols : was->symbols,
		.cmdline = (char *)r->cmdline.data,
		.exec = r->exec.command,
		.guest_root = *root ? root : NULL,
		.message = (char *)held->data,
	};

	if (r->exec.command)
		f.nonce = was->exec ? was->nonce : (char *)r->exec.files.nonce;

	/* Of the consumer's thread; it was written before the machine was told. */
	if (f.slide_known) {
		f.slide = slide;
		f.pa_slide = r->target.pa_slide;
	}
	return f;
}

/* The kernel as ELF: a bzImage need not be unpacked each time. */
static int save(struct run *r, struct err *e)
{
	struct run_snapshot *s = &r->snapshot;
	struct snapshot_facts facts;
	struct boot_image image = { 0 };
	const uint8_t *file = s->image.data ? s->image.data : demo_elf;
	size_t len = s->image.data ? s->image.len : (size_t)(demo_elf_end - demo_elf);
	struct snapshot_blob blob[3];
	unsigned int n = 0;
	struct buf b, held;
	char root[PATH_MAX];
	int ret = boot_image_parse(&image, r->target.name, file, len, e);

	if (ret)
		return ret;
	buf_init(&b);
	buf_init(&held);
	exec_console_held(&r->exec.console, &held);
	if (!r->opt.guest_root || !realpath(r->opt.guest_root, root))
		*root = '\0';
	facts = facts_now(r, root, &held);
	snapshot_facts_put(&facts, &b);
	blob[n++] = (struct snapshot_blob){ SNAPSHOT_FACTS, SNAPSHOT_FACTS_VERSION, b.data, b.len };
	if (image.kind == BOOT_BZIMAGE)
		blob[n++] = (struct snapshot_blob){ SNAPSHOT_IMAGE, 1, image.elf, image.elf_len };
	else
		blob[n++] = (struct snapshot_blob){ SNAPSHOT_IMAGE, 1, file, len };
	if (s->symbols.data)
		blob[n++] = (struct snapshot_blob){ SNAPSHOT_SYMBOLS, 1, s->symbols.data,
						    s->symbols.len };
	ret = b.failed || held.failed ? err_set(e, ENOMEM, "out of memory")
				      : vm_save(r->vm, r->opt.snapshot.save, blob, n, e);
	buf_deinit(&b);
	buf_deinit(&held);
	boot_image_deinit(&image);
	return ret;
}

void run_snapshot_look(struct run *r)
{
	struct run_snapshot *s = &r->snapshot;
	uint64_t t0 = clock_mono_ns();
	int ret;

	if (s->done || !r->opt.snapshot.save || !run_markers_snapshot_due(&r->markers, r->vm))
		return;
	ret = vm_pause(r->vm, &s->err);
	if (ret == -ECANCELED)
		return;
	ret = ret ? ret : save(r, &s->err);
	s->done = true;
	s->saved_ns = clock_mono_ns() - t0;
	if (ret || !r->opt.snapshot.go_on)
		vm_end(r->vm, VM_END_SAVED);
	else
		vm_resume(r->vm);
}

int run_snapshot_verdict(const struct run *r, struct err *e)
{
	const struct run_snapshot_options *o = &r->opt.snapshot;
	const struct run_snapshot *s = &r->snapshot;

	if (!o->save || (s->done && !s->err.code))
		return 0;
	if (s->err.code)
		return err_set(e, s->err.code, "%s", s->err.text);
	return err_set(e, ENODATA, "no snapshot: %s '%s' was never seen",
		       o->at ? "--snapshot-at" : "--snapshot-on", o->at ? o->at : o->on);
}
