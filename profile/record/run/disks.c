/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/disks.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/reporter.h"
#include "vmm/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Address space of a program: libraries, threads, caches, and the dictionary of a compression. */
#define MEMORY (UINT64_C(8) << 30)

static int disk_jail_prepare(void *ctx, const struct disk_program_work *work,
			     unsigned long *namespaces, struct err *e)
{
	struct run_disk_jail *j = ctx;
	struct buf said;
	int ret;

	buf_init(&said);
	ret = jail_open(&j->jail, &said, e);
	buf_u8(&said, 0);
	if (!ret && said.len > 1 && j->to && !j->told) {
		reporter_printf(j->to,
				"kvmprof: note: the process that reads a disk image is less "
				"confined than it could be: %s\n",
				(const char *)said.data);
		j->told = true;
	}
	buf_deinit(&said);
	if (ret)
		return ret;
	jail_add_system(&j->jail);
	jail_add(&j->jail, work->argv[0]);
	for (unsigned int i = 0; i < work->nfiles; i++)
		jail_add_fd(&j->jail, work->file[i], DISK_PROGRAM_FILE + (int)i);
	j->jail.memory = MEMORY;
	*namespaces = j->jail.namespaces;
	return j->jail.failed ? err_nomem(e) : 0;
}

static int disk_jail_made(void *ctx, pid_t pid)
{
	return jail_map_user(&((struct run_disk_jail *)ctx)->jail, pid);
}

static int disk_jail_enter(void *ctx, const char **what)
{
	return jail_enter(&((struct run_disk_jail *)ctx)->jail, what);
}

static void disk_jail_done(void *ctx)
{
	jail_close(&((struct run_disk_jail *)ctx)->jail);
}

/* Returns the host's memory that is available without swapping, or 0 if unknown. */
static uint64_t available_memory(void)
{
	cleanup_fclose FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kb;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
			return kb << 10;
	return (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void run_disks_limit(struct run_disks *d, const struct run_disk_options *o)
{
	disk_budget_init(&d->budget, o->overlay_max ? o->overlay_max : available_memory() / 2);
	d->has_budget = true;
	d->follow = o->backing;
}

void run_disks_confine(struct run_disks *d, const struct reporter *to)
{
	d->jail = (struct run_disk_jail){
		.confine = { .ctx = &d->jail,
			     .prepare = disk_jail_prepare,
			     .made = disk_jail_made,
			     .enter = disk_jail_enter,
			     .done = disk_jail_done },
		.to = to,
	};
	d->confine = &d->jail.confine;
}

bool run_disks_are_served(const struct run_disks *d)
{
	for (unsigned int i = 0; i < d->n; i++)
		if (disk_fd(d->at[i].disk) < 0)
			return true;
	return false;
}

int run_disks_add(struct run_disks *d, const struct disk_config *cfg, const char *serial,
		  struct err *e)
{
	struct vm_disk *disk = &d->at[d->n];
	struct disk_config limited = *cfg;
	int ret;

	if (d->n == VM_MAX_DISKS)
		return err_set(e, ENOSPC, "%s: more than %u disks", cfg->path, VM_MAX_DISKS);
	limited.budget = d->has_budget ? &d->budget : NULL;
	limited.confine = d->confine;
	limited.follow = cfg->follow || d->follow;
	ret = disk_open(&disk->disk, &limited, e);
	if (ret)
		return ret;
	disk->serial = NULL;
	disk->limit = (struct rate_limit){ 0 };
	if (serial && *serial) {
		memcpy(d->serial[d->n], serial, strnlen(serial, DISK_SERIAL_LEN));
		disk->serial = d->serial[d->n];
	}
	d->n++;
	return 0;
}

/* Notes that the end of a file whose size is not a multiple of a sector is not part of the disk. */
static void tell_tail(const struct reporter *to, const struct disk *d, const char *path)
{
	unsigned int tail;
	struct stat st;

	if (strcmp(disk_format(d), "raw") != 0 || disk_compression(d))
		return;
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	tail = (unsigned int)((uint64_t)st.st_size % DISK_SECTOR);
	if (tail)
		reporter_printf(
			to,
			"kvmprof: note: %s is no whole number of sectors: the guest does not see "
			"its last %u bytes\n",
			path, tail);
}

int run_disks_open(struct run_disks *d, const struct run_disk_options *o, const struct reporter *to,
		   struct err *e)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < o->n; i++) {
		struct run_disk parsed;
		struct disk_config cfg = { .path = parsed.path, .overlay = parsed.overlay };

		ret = run_options_disk_parse(&parsed, o->text[i], e);
		cfg.write = parsed.write;
		cfg.format = parsed.format;
		cfg.follow = parsed.backing;
		ret = ret ? ret : run_disks_add(d, &cfg, parsed.serial, e);
		if (ret)
			break;
		d->at[d->n - 1].limit = parsed.limit;
		tell_tail(to, d->at[d->n - 1].disk, parsed.path);
	}
	return ret;
}

void run_disks_configure(const struct run_disks *d, struct vm_config *cfg)
{
	for (unsigned int i = 0; i < d->n && cfg->ndisks < VM_MAX_DISKS; i++)
		cfg->disk[cfg->ndisks++] = d->at[i];
}

int run_disks_close(struct run_disks *d, struct err *e)
{
	int ret = 0;

	for (unsigned int i = 0; i < d->n; i++) {
		int one = disk_close(d->at[i].disk, e);

		ret = ret ? ret : one;
	}
	d->n = 0;
	if (d->has_budget)
		disk_budget_deinit(&d->budget);
	d->has_budget = false;
	return ret;
}
