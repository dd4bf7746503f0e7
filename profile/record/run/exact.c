/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/exact.h"

#include "base/cleanup.h"
#include "base/reporter.h"
#include "profile/record/run/run.h"
#include "profile/record/run/sandbox.h"
#include "profile/record/run/tune.h"
#include "profile/record/sandbox/jail.h"
#include "profile/format/sink/phase.h"
#include "vmm/bootdisk/cmdline.h"
#include "vmm/exact/exact.h"
#include "vmm/vm.h"
#include "vmm/config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* At most one sample is in the ring at a time. */
#define RING_SIZE (1u << 20)
#define USER_STACK_TIMES 4u
/* CPUID of EXACT_CPU_MODEL under TCG: vendor, family, model, stepping, as perf's header has it. */
#define CPU_ID "AuthenticAMD,15,107,1"

int run_exact_choose_protocol(struct run_source *s, enum boot_protocol asked, struct err *e)
{
	static const enum boot_protocol order[] = { BOOT_PROTOCOL_LINUX16, BOOT_PROTOCOL_MULTIBOOT,
						    BOOT_PROTOCOL_PVH };
	const struct boot_image *image = &s->image;

	if (asked == BOOT_PROTOCOL_BZIMAGE) /* by its real-mode code, as firmware does it */
		asked = BOOT_PROTOCOL_LINUX16;
	for (unsigned int i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (!protocol_image_has(image, order[i]) ||
		    (asked != BOOT_PROTOCOL_AUTO && asked != order[i]))
			continue;
		s->way = order[i];
		s->moves = image->kind == BOOT_BZIMAGE;
		return 0;
	}
	if (image->unloaded.code && image->kind != BOOT_BZIMAGE)
		return err_set(e, image->unloaded.code, "%s", image->unloaded.text);
	if (asked != BOOT_PROTOCOL_AUTO)
		return err_set(e, ENOTSUP,
			       "%s: --engine exact can't enter it by --boot=%s: leave that out",
			       s->target.name, protocol_name(asked));
	return err_set(e, ENOTSUP,
		       "%s: --engine exact enters a kernel as a bzImage, by multiboot 1 or by PVH, "
		       "and this one has none of these",
		       s->target.name);
}

/* Called at each sample on the consumer thread, while the guest is stopped. */
static void exact_moment(void *ctx, uint64_t now_ns)
{
	struct run *r = ctx;

	(void)run_markers_handle(&r->markers, r->vm, now_ns);
	run_panic_check(r, now_ns);
}

static uint64_t exact_clock(void *ctx)
{
	const struct run *r = ctx;

	return r->vm ? vm_now_ns(r->vm) : 0;
}

/* Returns what QEMU is to boot: not the whole file, if the kernel is only a part of it. */
static struct exact_bytes kernel_of(const struct run_source *s)
{
	const struct file_map *f = &s->target.file;

	if (!f->data)
		return (struct exact_bytes){ demo_elf, (size_t)(demo_elf_end - demo_elf) };
	if (s->is_uki)
		return (struct exact_bytes){ f->data + s->uki.at[UKI_LINUX].off,
					     s->uki.at[UKI_LINUX].len };
	return (struct exact_bytes){ f->data, f->len };
}

/* -- QEMU's rights ----------------------------------------------------------------------------- */

/* Address space in addition to the guest's memory and disks: generated code, threads, libraries. */
#define JAIL_MEMORY (UINT64_C(16) << 30)
#define JAIL_FILE (UINT64_C(5) << 30) /* it only writes counts */

struct exact_confined {
	struct jail jail;
	struct exact_jail hooks;
	uint64_t memory;
};

/* Adds the firmware from the data of a QEMU, and nothing else of it. */
static void jail_add_data(struct jail *j, const char *share)
{
	static const char *const names[] = { "qemu", "seabios", "ipxe" };
	cleanup_closedir DIR *d = opendir(share);
	struct dirent *x;

	while (d && (x = readdir(d)))
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (strstr(x->d_name, names[i])) {
				char path[2 * PATH_MAX];

				snprintf(path, sizeof(path), "%s/%s", share, x->d_name);
				jail_add(j, path);
				break;
			}
}

/*
 * An installed PREFIX/bin/qemu-system-x86_64 has its libraries and data in PREFIX; one that was
 * just built has them beside it.
 */
static void jail_add_qemu(struct jail *j, const char *qemu)
{
	static const char *const libs[] = { "bin", "lib", "lib64", "libexec" };
	static const char *const beside[] = { "qemu-bundle", "pc-bios", "../pc-bios" };
	char dir[PATH_MAX], path[PATH_MAX + 64];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", qemu);
	slash = strrchr(dir, '/');
	if (!slash || !strncmp(qemu, "/usr/", 5))
		return; /* it belongs to the system */
	jail_add(j, qemu);
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, beside[i]);
		jail_add(j, path);
	}
	slash = strrchr(dir, '/');
	if (!slash || strcmp(slash, "/bin") != 0)
		return;
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(libs); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, libs[i]);
		jail_add(j, path);
	}
	snprintf(path, sizeof(path), "%s/share", dir);
	jail_add_data(j, path);
}

static int jail_needs(void *ctx, const struct exact_needs *n, struct err *e)
{
	struct exact_confined *c = ctx;

	jail_add_system(&c->jail);
	jail_add_qemu(&c->jail, n->engine->qemu);
	jail_add(&c->jail, n->engine->plugin);
	c->jail.memory = c->memory + JAIL_MEMORY;
	c->jail.file_size = JAIL_FILE;
	for (unsigned int i = 0; i < n->ndisks; i++) {
		jail_add_fd(&c->jail, n->disk[i].fd, n->disk_fd[i]);
		c->jail.memory += n->disk[i].size;
	}
	c->hooks.uid = c->jail.uid;
	return c->jail.failed ? err_nomem(e) : 0;
}

static int jail_is_made(void *ctx, pid_t pid)
{
	return jail_map_user(&((struct exact_confined *)ctx)->jail, pid);
}

static int jail_enters(void *ctx, const char **what)
{
	return jail_enter(&((struct exact_confined *)ctx)->jail, what);
}

/* Confines QEMU; a line names what this host's kernel does not protect from. */
static int confine(struct exact_confined *c, uint64_t memory, const struct reporter *to,
		   struct err *e)
{
	struct buf said;
	int ret;

	buf_init(&said);
	ret = jail_open(&c->jail, &said, e);
	buf_u8(&said, 0);
	if (!ret && said.len > 1)
		reporter_printf(to, "kvmprof: note: QEMU is less confined than it could be: %s\n",
				(const char *)said.data);
	buf_deinit(&said);
	c->memory = memory;
	c->hooks = (struct exact_jail){
		.ctx = c,
		.namespaces = c->jail.namespaces,
		.uid = c->jail.uid,
		.needs = jail_needs,
		.made = jail_is_made,
		.enter = jail_enters,
	};
	return ret;
}

/* -- the machine ------------------------------------------------------------------------------- */

/* Linux would wait for ever for a virtio disk that does not exist. */
static int check_root(const struct run *r, struct err *e)
{
	size_t len = 0;
	const char *root = diskboot_word((const char *)r->cmdline.data, "root", &len);
	unsigned int disk = len > 7 ? (unsigned int)(root[7] - 'a') : 0, digits = 0;

	if (len < 8 || memcmp(root, "/dev/vd", 7) != 0)
		return 0;
	while (8 + digits < len && root[8 + digits] >= '0' && root[8 + digits] <= '9')
		digits++;
	return err_set(
		e, EINVAL,
		"root=%.*s: under --engine exact disks are NVDIMMs: give root=" RUN_EXACT_DISK
		"%u%s%.*s",
		(int)len, root, disk < EXACT_MAX_DISKS ? disk : 0, digits ? "p" : "", (int)digits,
		root + 8);
}

/*
 * Phases of a boot, as profile/analyse/stacks/phases.h has them, and the functions that they begin
 * with: the first of these that the kernel has. Of a compiler's clones ("name.isra.0") any will do.
 */
static const struct {
	enum phase phase;
	const char *function[3];
} phase_begins[] = {
	{ PHASE_START_KERNEL, { "start_kernel" } },
	{ PHASE_INITCALLS, { "kernel_init_freeable", "do_basic_setup", "do_initcalls" } },
	{ PHASE_INIT, { "run_init_process" } },
};
_Static_assert(ARRAY_SIZE(phase_begins) <= EXACT_MAX_PARTS, "one part each");

static const struct symbol *exact_function(const struct symtab *t, const char *name)
{
	size_t len = strlen(name);
	const struct symbol *s = symtab_find(t, name);

	for (size_t i = 0; !s && i < symtab_count(t); i++) {
		const struct symbol *x = symtab_at(t, i);

		if (!strncmp(x->name, name, len) && x->name[len] == '.')
			s = x;
	}
	return s;
}

static void exact_phases(const struct target *t, struct exact_config *cfg)
{
	if (!t->is_linux || t->live || !t->symbols)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(phase_begins); i++) {
		const struct symbol *s = NULL;

		for (unsigned int k = 0; !s && k < 3 && phase_begins[i].function[k]; k++)
			s = exact_function(t->symbols, phase_begins[i].function[k]);
		if (s)
			cfg->part[cfg->nparts++] =
				(struct exact_part){ phase_name(phase_begins[i].phase), s->addr };
	}
}

int run_exact_make(struct run *r, void (*cmdline)(struct run *r, struct tune_request *tr),
		   struct err *e)
{
	const struct run_options *o = r->opt;
	const struct run_source *s = &r->source;
	struct tune_request tr = {
		.is_linux = s->target.is_linux,
		.vcpus = s->vcpus,
		.tsc_khz = EXACT_TSC_KHZ,
		.cmdline = o->cmdline,
		.extra = run_exec_cmdline(&r->exec),
		.disk_cmdline = (const char *)s->cmdline.data,
	};
	struct exact_config cfg = {
		.kernel = kernel_of(s),
		.initrd = { s->initrd.data, s->initrd.len },
		.mem_size = s->mem_size,
		.vcpus = s->vcpus,
		.plan = target_capture_plan(&s->target, o->stack_size),
		.ring_size = RING_SIZE,
		.reboots = o->reboot,
		.host = &r->host,
		.quirks = &r->quirks,
		.moment = exact_moment,
		.moment_ctx = r,
		.ready = run_sandbox_ready,
		.ready_ctx = r,
	};
	struct exact_confined confined = { 0 };
	struct vm_config vm = {
		.quirks = &r->quirks,
		.console = run_panic_put,
		.console_ctx = &r->panic.console,
	};
	int ret;

	r->panic.console.put = console_put;
	r->panic.console.ctx = &r->console;
	vm.plan.slide_unknown = s->moves && !s->target.live;
	ret = events_prepare_exact(&r->events, o->period ? o->period : RUN_EXACT_PERIOD, e);

	ret = ret ? ret
		  : run_markers_configure(&r->markers, &s->target, &vm, &r->pipeline_options, e);
	if (ret)
		return ret;
	if (s->way == BOOT_PROTOCOL_LINUX16) {
		cfg.boot_low = EXACT_BZIMAGE;
		cfg.boot_high = EXACT_BZIMAGE + s->image.pm_len;
	}
	if (s->image.high > s->mem_size)
		return err_set(e, ENOMEM,
			       "%s: reaches up to 0x%llx, and the guest has %llu MiB: give -m",
			       s->target.name, (unsigned long long)s->image.high,
			       (unsigned long long)(s->mem_size >> 20));
	cfg.period = r->events.at[0].vm.period;
	cfg.strict = !o->jitter;
	cfg.counts = o->call_counts;
	cfg.trace = o->trace;
	cfg.plan.user_stack_max *= USER_STACK_TIMES;
	cfg.plan.slide_unknown = vm.plan.slide_unknown;
	cfg.idle_start = vm.idle_start;
	exact_phases(&s->target, &cfg);
	cfg.look_for_kernel = vm.look_for_kernel || (cfg.nparts && vm.plan.slide_unknown);
	memcpy(cfg.breakpoint, vm.breakpoint, sizeof(cfg.breakpoint));
	cfg.nbreakpoints = vm.nbreakpoints;
	run_exec_configure(&r->exec, &o->exec, &r->snapshot.facts, &vm);
	cfg.console = vm.console;
	cfg.console_ctx = vm.console_ctx;
	r->console.clock = exact_clock;
	r->console.clock_ctx = r;
	cmdline(r, &tr);
	if (r->cmdline.failed || r->tuned.failed)
		return err_nomem(e);
	cfg.cmdline = (const char *)r->cmdline.data;
	ret = check_root(r, e);
	for (; cfg.ndisks < s->disks.n; cfg.ndisks++)
		cfg.disk[cfg.ndisks] = s->disks.at[cfg.ndisks].disk;
	if (!ret && o->sandbox != SANDBOX_OFF) {
		ret = confine(&confined, s->mem_size, o->reporter, e);
		cfg.jail = &confined.hooks;
	}
	ret = ret ? ret : exact_open(&r->vm, &cfg, e);
	jail_close(&confined.jail);
	r->exec.vm = ret ? NULL : r->vm;
	return ret;
}

/*
 * Options that determine where the profile goes and what is shown meanwhile, but not its content.
 */
static const struct exact_word {
	const char *name;
	size_t least; /* number of letters that getopt_long(3) accepts as this option */
	bool has_value;
} words_of_place[] = {
	{ "--output", 4, true }, { "--buildid-dir", 4, true }, { "--repeat", 5, true },
	{ "--quiet", 3, false }, { "--no-summary", 6, false }, { "--no-status", 6, false },
	{ "--json", 3, false },	 { "--ps-at-end", 3, false },
};

/* Returns how many words the option has with its value; 0: it is kept. */
static unsigned int words_to_drop(const char *word)
{
	size_t len = strcspn(word, "=");

	if (!strcmp(word, "-q"))
		return 1;
	if (!strncmp(word, "-o", 2))
		return word[2] ? 1 : 2;
	for (unsigned int i = 0; i < ARRAY_SIZE(words_of_place); i++)
		if (len >= words_of_place[i].least && !strncmp(word, words_of_place[i].name, len))
			return words_of_place[i].has_value && !word[len] ? 2 : 1;
	return 0;
}

void run_exact_info(const struct run *r, struct profile_info *info, char **argv)
{
	bool command = false;
	int n = 0;

	for (int i = 0; i < info->argc; i++) {
		unsigned int drop = command ? 0 : words_to_drop(info->argv[i]);

		command |= !strcmp(info->argv[i], "--");
		if (drop)
			i += (int)drop - 1;
		else
			argv[n++] = info->argv[i];
	}
	argv[n] = NULL;
	info->argv = argv;
	info->argc = n;
	info->hostname = "";
	info->cpu = "QEMU TCG " EXACT_CPU_MODEL;
	info->cpu_id = CPU_ID;
	info->virtual_clock = true;
	(void)r;
}
