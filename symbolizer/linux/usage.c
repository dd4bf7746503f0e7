/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/usage.h"

#include "base/cleanup.h"
#include "symbolizer/linux/task.h"

#include <errno.h>

#define NONE LINUX_TASK_NONE
#define PAGE_SHIFT 12
/* Pages of an address space: 57 bits with five levels of page tables. */
#define MAX_PAGES (UINT64_C(1) << (57 - PAGE_SHIFT))

void linux_usage_none(struct linux_usage_layout *out)
{
	*out = (struct linux_usage_layout){
		.cred = NONE,
		.mm = NONE,
		.uid = NONE,
		.total_vm = NONE,
		.rss = { NONE, NONE, NONE },
		.rss_counters = NONE,
		.rss_task = { NONE, NONE, NONE },
	};
}

struct usage_member {
	const char *structure, *path;
	uint32_t size, *off;
};

static int usage_member(const struct types *t, const struct usage_member *w)
{
	struct type_member m;
	int ret = t->member(t->ctx, w->structure, w->path, &m);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	if (*w->off == NONE && m.size == w->size && !m.bit_count && m.off % 4 == 0 &&
	    m.off <= LINUX_TASK_MAX_OFFSET)
		*w->off = m.off;
	return 0;
}

int linux_usage_from_types(struct linux_usage_layout *out, const struct types *types)
{
	struct linux_usage_layout l = *out;
	uint32_t count = NONE, counters = NONE;
	/* If a member has several names, the first one that exists is used. */
	const struct usage_member want[] = {
		{ "task_struct", "cred", 8, &l.cred },
		{ "task_struct", "mm", 8, &l.mm },
		{ "cred", "uid.val", 4, &l.uid },
		{ "mm_struct", "total_vm", 8, &l.total_vm },
		/* MM_FILEPAGES, MM_ANONPAGES, MM_SHMEMPAGES (include/linux/mm_types_task.h) */
		{ "mm_struct", "rss_stat[0].count", 8, &l.rss[0] },
		{ "mm_struct", "rss_stat[1].count", 8, &l.rss[1] },
		{ "mm_struct", "rss_stat[3].count", 8, &l.rss[2] },
		{ "mm_struct", "rss_stat.count[0].counter", 8, &l.rss[0] },
		{ "mm_struct", "rss_stat.count[1].counter", 8, &l.rss[1] },
		{ "mm_struct", "rss_stat.count[3].counter", 8, &l.rss[2] },
		{ "task_struct", "rss_stat.count[0]", 4, &l.rss_task[0] },
		{ "task_struct", "rss_stat.count[1]", 4, &l.rss_task[1] },
		{ "task_struct", "rss_stat.count[3]", 4, &l.rss_task[2] },
		/* A kernel for one CPU has no counters. */
		{ "percpu_counter", "count", 8, &count },
		{ "percpu_counter", "counters", 8, &counters },
	};
	struct type_member m;
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(want); i++)
		ret = usage_member(types, &want[i]);
	if (ret)
		return ret;
	ret = types->member(types->ctx, "mm_struct", "rss_stat[0].count", &m);
	if (!ret && count != NONE && counters != NONE)
		l.rss_counters = counters - count;
	if (ret && ret != -ENOENT)
		return ret;
	*out = l;
	return 0;
}

/* Adds the parts of a percpu_counter. Returns false if they are unknown. */
static bool add_counters(const struct linux_usage_cpus *cpus, const struct memory *m, uint64_t at,
			 int64_t *sum)
{
	uint64_t counters, base = 0;
	uint32_t n = 1, part;

	if (!memory_u64(m, at, &counters))
		return false;
	if (cpus->percpu_offset && (!cpus->nr_cpu_ids || !memory_u32(m, cpus->nr_cpu_ids, &n) ||
				    !n || n > LINUX_USAGE_MAX_CPUS))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (cpus->percpu_offset &&
		    !memory_u64(m, cpus->percpu_offset + 8 * (uint64_t)i, &base))
			return false;
		if (!memory_u32(m, base + counters, &part))
			return false;
		*sum += (int32_t)part;
	}
	return true;
}

static uint64_t read_rss(const struct linux_usage_layout *l, const struct linux_usage_cpus *cpus,
			 const struct memory *m, uint64_t task, uint64_t mm)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < ARRAY_SIZE(l->rss); i++) {
		uint32_t own = 0;
		uint64_t v;
		int64_t sum;

		if (l->rss[i] == NONE || !memory_u64(m, mm + l->rss[i], &v))
			return LINUX_USAGE_UNKNOWN;
		sum = (int64_t)v;
		if (sum > (int64_t)MAX_PAGES || sum < -(int64_t)MAX_PAGES ||
		    (l->rss_counters != NONE &&
		     !add_counters(cpus, m, mm + l->rss[i] + l->rss_counters, &sum)) ||
		    (l->rss_task[i] != NONE && !memory_u32(m, task + l->rss_task[i], &own)))
			return LINUX_USAGE_UNKNOWN;
		sum += (int32_t)own;
		/* The parts are read one after the other, as in the kernel, and may not fit. */
		pages += sum > 0 ? (uint64_t)sum : 0;
	}
	return pages <= MAX_PAGES ? pages << PAGE_SHIFT : LINUX_USAGE_UNKNOWN;
}

void linux_usage_read(const struct linux_usage_layout *l, const struct linux_usage_cpus *cpus,
		      const struct memory *m, uint64_t task, struct linux_usage *out)
{
	uint64_t cred, mm, pages;
	uint32_t uid;

	*out = (struct linux_usage){ LINUX_USAGE_UNKNOWN, LINUX_USAGE_UNKNOWN,
				     LINUX_USAGE_UNKNOWN };
	if (l->cred != NONE && l->uid != NONE && memory_u64(m, task + l->cred, &cred) &&
	    cred >> 63 && memory_u32(m, cred + l->uid, &uid))
		out->uid = uid;
	if (l->mm == NONE || !memory_u64(m, task + l->mm, &mm))
		return;
	if (!mm) { /* a kernel thread, or one that has ended */
		out->vsz = out->rss = 0;
		return;
	}
	if (!(mm >> 63))
		return;
	if (l->total_vm != NONE && memory_u64(m, mm + l->total_vm, &pages) && pages <= MAX_PAGES)
		out->vsz = pages << PAGE_SHIFT;
	out->rss = read_rss(l, cpus, m, task, mm);
}
