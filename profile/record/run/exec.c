/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/exec.h"

#include "base/cleanup.h"
#include "profile/record/options/options.h"
#include "profile/record/run/snapshot_facts.h"
#include "profile/record/run/source.h"
#include "vmm/image/parse.h"
#include "vmm/layout.h"
#include "vmm/vm.h"
#include "vmm/end.h"
#include "vmm/config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * The memory that a small kernel and a command need besides the files, and the granularity of the
 * proposed memory size.
 */
#define SPARE_BYTES (24 * GPA_MIB)
#define ROUND_BYTES (16 * GPA_MIB)

void run_exec_allow_files(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

/* The files are in memory twice while the kernel unpacks them. */
static int exec_check_memory(const struct run_source *s, struct err *e)
{
	const struct boot_image *img = &s->image;
	uint64_t init = img->low + parse_setup_field(img, SETUP_INIT_SIZE, 4);
	uint64_t need = (init > img->high ? init : img->high) + 2 * s->initrd.len + SPARE_BYTES;

	if (need <= s->mem_size)
		return 0;
	need = (need + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
	return err_set(e, ENOMEM,
		       "the files for the guest have %" PRIu64
		       " MiB, and are in its memory twice while its kernel unpacks them: %" PRIu64
		       " MiB of memory are enough, and there are %" PRIu64 ": give -m %" PRIu64 "M",
		       (uint64_t)s->initrd.len / GPA_MIB + 1, need / GPA_MIB, s->mem_size / GPA_MIB,
		       need / GPA_MIB);
}

/* ramfs, because a tmpfs would use at most half of the memory. */
static void exec_make_cmdline(struct run_exec *x, bool command)
{
	buf_init(&x->cmdline);
	buf_printf(&x->cmdline, "%srdinit=%s rootfstype=ramfs", command ? "quiet loglevel=1 " : "",
		   x->files.init);
	buf_u8(&x->cmdline, 0);
}

int run_exec_open(struct run_exec *x, const struct run_options *opt, struct run_source *s,
		  struct err *e)
{
	const struct exec_options *o = &opt->exec;
	enum exec_input input = isatty(STDIN_FILENO) && !opt->quiet && !o->repeats
					? EXEC_INPUT_TERMINAL
					: EXEC_INPUT_NONE;
	int ret = 0;

	if (!exec_any(o))
		return 0;
	if (exec_for_linux(o) && !s->target.is_linux)
		return err_set(e, EINVAL, "%.200s: not a Linux kernel: --exec needs one",
			       s->target.name);
	if (o->rootfs_disk && s->disk)
		return err_set(
			e, EINVAL,
			"--rootfs-as ext4 is the guest's first disk, and so is IMAGE: give the "
			"kernel alone");
	if (o->nshare)
		run_exec_allow_files();
	for (unsigned int i = 0; !ret && i < o->nshare; i++)
		ret = exec_share_parse(&x->share[i], o->share[i], i, e);
	if (ret || (!exec_wanted(o) && !o->rootfs))
		return ret;
	ret = exec_files_make(&x->files, o, x->share, s->target.osrelease, input, e);
	if (ret)
		return ret;
	/* A disk image's own RAM disk is for its own root file system. */
	file_map_close(&s->initrd);
	s->initrd = x->files.initrd;
	x->files.initrd = (struct file_map){ 0 };
	if (*x->files.disk) {
		struct disk_config disk = { .path = x->files.disk, .format = "raw" };

		ret = run_disks_add(&s->disks, &disk, NULL, e);
		/* It is open, and disappears with this process. */
		exec_files_close(&x->files);
		if (ret)
			return ret;
	}
	if (!s->guest_root)
		s->guest_root = x->files.guest_root;
	exec_make_cmdline(x, exec_wanted(o));
	if (x->cmdline.failed)
		return err_nomem(e);
	return exec_check_memory(s, e);
}

void run_exec_close(struct run_exec *x)
{
	exec_files_close(&x->files);
	buf_deinit(&x->cmdline);
}

const char *run_exec_cmdline(const struct run_exec *x)
{
	return (const char *)x->cmdline.data;
}

/* Runs on the vCPU's thread when the guest's init has written its whole message. */
static void exec_message_found(void *exec)
{
	struct run_exec *x = exec;

	if (!x->vm) /* a snapshot whose message was complete when it was saved */
		return;
	if (x->console.have_status)
		vm_exit(x->vm, x->console.status);
	else
		vm_end(x->vm, VM_END_RESET); /* the reset that the guest's init is about to make */
}

void run_exec_configure(struct run_exec *x, const struct exec_options *o,
			const struct snapshot_facts *saved, struct vm_config *cfg)
{
	const char *nonce = x->files.nonce, *held = NULL;

	cfg->nshares = o->nshare;
	for (unsigned int i = 0; i < cfg->nshares; i++)
		cfg->share[i] = (struct vm_share){ x->share[i].dir, x->share[i].tag,
						   x->share[i].read_only };
	if (saved->exec) {
		x->command = true;
		nonce = saved->nonce;
		held = saved->message;
	} else if (exec_wanted(o)) {
		x->command = true;
	}
	if (!x->command)
		return;
	exec_console_init(&x->console, nonce, cfg->console, cfg->console_ctx, exec_message_found,
			  x);
	for (; held && *held; held++)
		exec_console_put(&x->console, (uint8_t)*held);
	cfg->console = exec_console_put;
	cfg->console_ctx = &x->console;
}

int run_exec_status(const struct run_exec *x, const struct vm_result *res, struct err *e)
{
	const struct exec_console *c = &x->console;

	if (res->reason == VM_END_EXIT)
		return res->exit_status < 255 ? (int)res->exit_status : 255;
	if (!x->command)
		return 0;
	if (c->failed) {
		err_set(e, c->error ? c->error : EIO,
			"the command did not run; the guest says: %.300s%s%s", c->text,
			c->error ? ": " : "", c->error ? strerror(c->error) : "");
		return 1;
	}
	switch (res->reason) {
	case VM_END_RESET:
	case VM_END_POWEROFF:
	case VM_END_HALTED:
		err_set(e, EIO,
			"the guest ended (%s) before the command did: with --append loglevel=7 its "
			"kernel may report why",
			vm_end_name(res->reason));
		return 1;
	case VM_END_DURATION:
		return 124;
	case VM_END_INTERRUPTED:
		return 130;
	default: /* a marker or enough samples, as requested */
		return 0;
	}
}
