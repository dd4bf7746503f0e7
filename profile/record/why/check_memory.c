/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checks of exhausted memory, and of requests that a disk does not complete. */
#include "profile/record/why/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_ZONES 8u
#define MAX_SUPER_BLOCKS 4096u
#define MAX_DISKS 1024u
#define MAX_TAGS 16384u
#define MAX_QUEUES 1024u

/* -- memory ------------------------------------------------------------------------------ */

/*
 * Adds up the free, minimum and managed pages of all zones of the first node. Returns false if they
 * are not known.
 */
static bool read_zones(const struct why *w, uint64_t *free_pages, uint64_t *min, uint64_t *managed)
{
	const struct linux_hang_layout *h = w->hang;
	uint64_t node = why_variable(w, "contig_page_data"), table = why_variable(w, "node_data");

	if (!node && (!table || !memory_u64(w->view.memory, table, &node)))
		return false;
	if (!h->zone_size || h->free_pages < 0 || !linux_hang_has(h, LINUX_HANG_NODE_ZONES) ||
	    !linux_hang_has(h, LINUX_HANG_ZONE_WATERMARK_MIN) ||
	    !linux_hang_has(h, LINUX_HANG_ZONE_VM_STAT))
		return false;
	*free_pages = *min = *managed = 0;
	for (unsigned int i = 0; i < MAX_ZONES; i++) {
		uint64_t zone = node + h->off[LINUX_HANG_NODE_ZONES] + (uint64_t)i * h->zone_size;
		uint64_t has, least, here;

		if (i && (uint64_t)i * h->zone_size >=
				 h->len[LINUX_HANG_NODE_ZONES] * (uint64_t)MAX_ZONES)
			break;
		if (!why_read(w, zone, LINUX_HANG_ZONE_MANAGED, &here))
			return false;
		if (!here || here >> 40)
			break;
		if (!why_read(w, zone, LINUX_HANG_ZONE_WATERMARK_MIN, &least) ||
		    !memory_u64(w->view.memory,
				zone + h->off[LINUX_HANG_ZONE_VM_STAT] +
					8 * (uint64_t)h->free_pages,
				&has))
			return false;
		*managed += here;
		*free_pages += has;
		*min += least;
	}
	return *managed != 0;
}

static bool reclaims(const struct why_task *t)
{
	return why_stack_has(&t->stack, "try_to_free_pages") ||
	       why_stack_has(&t->stack, "out_of_memory") ||
	       why_stack_has(&t->stack, "__alloc_pages_slowpath") ||
	       why_stack_has(&t->stack, "balance_pgdat") ||
	       why_stack_has(&t->stack, "__alloc_pages_direct");
}

/* Counts the log's lines that have this text and are not older than `ns` by the kernel's own clock. */
static unsigned int said_lately(struct why *w, const char *text, uint64_t ns)
{
	const char *log = (const char *)w->log.data, *end = log + w->log.len, *at = log;
	const double since = why_seconds(why_now(w)->clock) - why_seconds(ns);
	unsigned int n = 0;

	while (log && (at = memmem(at, (size_t)(end - at), text, strlen(text)))) {
		const char *line = at;
		double seconds;

		while (line > log && line[-1] != '\n')
			line--;
		n += sscanf(line, "[%lf]", &seconds) == 1 && seconds >= since;
		at++;
	}
	return n;
}

/* The proof that reclaim makes no progress. */
enum shortage {
	SHORTAGE_NONE,
	SHORTAGE_KILLS,	 /* processes were killed between the looks, or several lately */
	SHORTAGE_KILLED, /* one was lately */
	SHORTAGE_NO_RECLAIM
};

#define LATELY_NS (UINT64_C(60) * NSEC_PER_SEC)
#define SCANNED_LEAST 1000u
#define STOLEN_PART 100u /* less than one page of so many that were scanned */

static const char killed_text[] = "Out of memory: Killed process";

static enum shortage shortage_of(struct why *w)
{
	struct why_scene *s = why_now(w);
	const struct why_scene *b = why_before(w);

	if ((b && s->killed != WHY_UNKNOWN && b->killed != WHY_UNKNOWN && s->killed > b->killed) ||
	    said_lately(w, killed_text, LATELY_NS) > 1 ||
	    said_lately(w, "deadlocked on memory", LATELY_NS))
		return SHORTAGE_KILLS;
	if (said_lately(w, killed_text, w->hang_ns))
		return SHORTAGE_KILLED;
	if (b && s->scanned != WHY_UNKNOWN && b->scanned != WHY_UNKNOWN &&
	    s->scanned - b->scanned >= SCANNED_LEAST &&
	    s->stolen - b->stolen <= (s->scanned - b->scanned) / STOLEN_PART)
		return SHORTAGE_NO_RECLAIM;
	return SHORTAGE_NONE;
}

static void prove_shortage(struct why *w, struct why_finding *f, enum shortage why)
{
	struct why_scene *s = why_now(w);
	const struct why_scene *b = why_before(w);
	unsigned int n = said_lately(w, killed_text, LATELY_NS);

	if (b && s->killed != WHY_UNKNOWN && b->killed != WHY_UNKNOWN)
		why_fact(w, f, "processes killed for memory between the looks: %" PRIu64,
			 s->killed - b->killed);
	if (n)
		why_fact(w, f, "processes killed for memory within %u s, by the kernel's log: %u",
			 (unsigned int)(LATELY_NS / NSEC_PER_SEC), n);
	if (why == SHORTAGE_NO_RECLAIM)
		why_fact(w, f,
			 "between the looks reclaim scanned %" PRIu64 " pages and freed %" PRIu64
			 " of them",
			 s->scanned - b->scanned, s->stolen - b->stolen);
}

void why_check_memory(struct why *w, struct why_finding *f)
{
	struct why_scene *s = why_now(w);
	uint64_t have, min, managed;
	const struct why_task *who = NULL;
	unsigned int n = 0;
	enum shortage why = shortage_of(w);

	if (!read_zones(w, &have, &min, &managed)) {
		why_unknown(f, "the kernel's zones of memory are not known");
		return;
	}
	for (size_t i = 0; i < s->n; i++)
		if (!s->task[i].t.is_kthread && reclaims(&s->task[i])) {
			who = &s->task[i];
			n++;
		}
	for (unsigned int i = 0; i < w->vcpus; i++)
		n += why_stack_has(&w->vcpu[i].stack, "try_to_free_pages") ||
		     why_stack_has(&w->vcpu[i].stack, "alloc_pages_slowpath") ||
		     why_stack_has(&w->vcpu[i].stack, "out_of_memory");
	/* A healthy guest, too, has few free pages at times. */
	if (why == SHORTAGE_NONE || (why != SHORTAGE_KILLS && have > 2 * min)) {
		why_ok(f, "%" PRIu64 " of %" PRIu64 " pages are free, the minimum is %" PRIu64,
		       have, managed, min);
		return;
	}
	why_bad(f,
		"The guest %s: %" PRIu64 " of %" PRIu64 " pages are free, the minimum is %" PRIu64
		".",
		why == SHORTAGE_KILLS ? "kills processes again and again for lack of memory"
				      : "is out of memory",
		have, managed, min);
	if (n)
		why_fact(w, f, "%u tasks or vCPUs try to get more%s%s", n, who ? ", such as " : "",
			 who ? why_task_name(who) : "");
	why_prove(w, f, "free_pages", have);
	why_prove(w, f, "min_pages", min);
	why_prove(w, f, "managed_pages", managed);
	why_prove(w, f, "allocating", n);
	prove_shortage(w, f, why);
}

/* -- disks ------------------------------------------------------------------------------- */

struct disk_find {
	uint64_t queue[MAX_DISKS], disk[MAX_DISKS];
	unsigned int n;
	/* The oldest request in flight. */
	uint64_t request, age_ns, sector, of;
	unsigned int in_flight;
	bool aged;
};

static void add_disk(const struct why *w, struct disk_find *d, uint64_t bdev)
{
	uint64_t disk, queue;

	if (!why_read(w, bdev, LINUX_HANG_BDEV_DISK, &disk) || !(disk >> 63) ||
	    !why_read(w, disk, LINUX_HANG_DISK_QUEUE, &queue) || !(queue >> 63))
		return;
	for (unsigned int i = 0; i < d->n; i++)
		if (d->queue[i] == queue)
			return;
	if (d->n == MAX_DISKS)
		return;
	d->queue[d->n] = queue;
	d->disk[d->n++] = disk;
}

/* Adds the disks of all inodes of the file system whose inodes are block devices. */
static void add_disks(const struct why *w, struct disk_find *d, uint64_t super)
{
	const struct linux_hang_layout *h = w->hang;
	uint64_t head = super + h->off[LINUX_HANG_SB_INODES], node = head;

	for (unsigned int i = 0; i < MAX_SUPER_BLOCKS; i++) {
		if (!memory_u64(w->view.memory, node, &node) || node == head || !(node >> 63))
			return;
		add_disk(w, d,
			 node - h->off[LINUX_HANG_INODE_SB_LIST] - h->off[LINUX_HANG_BDEV_INODE] +
				 h->off[LINUX_HANG_BDEV_BDEV]);
	}
}

static void look_at_request(struct why *w, struct disk_find *d, unsigned int i, uint64_t rq)
{
	const struct why_scene *s = why_now(w);
	uint64_t state, queue, start = 0, deadline = 0, timeout = 0, age = 0,
			       jiffy = why_jiffy_ns(w);

	if (!why_read(w, rq, LINUX_HANG_RQ_STATE, &state) ||
	    (int64_t)(uint32_t)state != w->hang->in_flight ||
	    !why_read(w, rq, LINUX_HANG_RQ_QUEUE, &queue) || queue != d->queue[i])
		return;
	d->in_flight++;
	/*
	 * start_time_ns is on the monotonic clock, which the run queues' clock follows closely.
	 * Without it the deadline in jiffies gives the age.
	 */
	if (why_read(w, rq, LINUX_HANG_RQ_START, &start) && start && s->clock > start)
		age = s->clock - start;
	else if (why_read(w, rq, LINUX_HANG_RQ_DEADLINE, &deadline) &&
		 why_read(w, rq, LINUX_HANG_RQ_TIMEOUT, &timeout) && jiffy &&
		 s->jiffies != WHY_UNKNOWN && s->jiffies + (uint32_t)timeout >= deadline)
		age = (s->jiffies + (uint32_t)timeout - deadline) * jiffy;
	else
		return;
	d->aged = true;
	if (age > d->age_ns) {
		d->age_ns = age;
		d->request = rq;
		d->of = d->disk[i];
		d->sector = WHY_UNKNOWN;
		why_read(w, rq, LINUX_HANG_RQ_SECTOR, &d->sector);
	}
}

static void look_at_queue(struct why *w, struct disk_find *d, unsigned int i)
{
	uint64_t set, tags, queues;

	if (!why_read(w, d->queue[i], LINUX_HANG_QUEUE_TAG_SET, &set) || !(set >> 63) ||
	    !why_read(w, set, LINUX_HANG_SET_TAGS, &tags) || !(tags >> 63) ||
	    !why_read(w, set, LINUX_HANG_SET_NR_QUEUES, &queues))
		return;
	for (unsigned int q = 0; q < (uint32_t)queues && q < MAX_QUEUES; q++) {
		uint64_t at, n, list, rq;

		if (!memory_u64(w->view.memory, tags + 8ull * q, &at) || !(at >> 63) ||
		    !why_read(w, at, LINUX_HANG_TAGS_NR, &n) ||
		    !why_read(w, at, LINUX_HANG_TAGS_STATIC, &list) || !(list >> 63))
			continue;
		for (unsigned int k = 0; k < (uint32_t)n && k < MAX_TAGS; k++)
			if (memory_u64(w->view.memory, list + 8ull * k, &rq) && rq >> 63)
				look_at_request(w, d, i, rq);
	}
}

/* Returns the task that has waited longest for a disk, or NULL. */
static const struct why_task *waiter_of(struct why *w)
{
	struct why_scene *s = why_now(w);
	const struct why_task *worst = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const struct why_task *t = &s->task[i];

		if (t->s.state != 'D' || t->quiet_ns == WHY_UNKNOWN ||
		    !(why_stack_has(&t->stack, "io_schedule") || why_stack_has(&t->stack, "blk_") ||
		      why_stack_has(&t->stack, "submit_bio") || why_stack_has(&t->stack, "blkdev")))
			continue;
		if (!worst || t->quiet_ns > worst->quiet_ns)
			worst = t;
	}
	return worst;
}

void why_check_disk(struct why *w, struct why_finding *f)
{
	const struct linux_hang_layout *h = w->hang;
	uint64_t super = why_variable(w, "blockdev_superblock");
	struct disk_find d = { 0 };
	const struct why_task *who;
	char name[32] = "";

	if (!super || !memory_u64(w->view.memory, super, &super) ||
	    !linux_hang_has(h, LINUX_HANG_BDEV_INODE) || !linux_hang_has(h, LINUX_HANG_SB_INODES) ||
	    h->in_flight < 0) {
		why_unknown(f, "the kernel's block devices are not known: no type information, or "
			       "no block layer");
		return;
	}
	if (super >> 63)
		add_disks(w, &d, super);
	for (unsigned int i = 0; i < d.n; i++)
		look_at_queue(w, &d, i);
	if (d.in_flight && !d.aged) {
		why_unknown(f, "%u requests are in flight, and since when is not known",
			    d.in_flight);
		return;
	}
	if (d.age_ns < w->hang_ns) {
		why_ok(f, "of %u disks' queues, %u requests are in flight, none of them for long",
		       d.n, d.in_flight);
		return;
	}
	who = waiter_of(w);
	if (linux_hang_has(h, LINUX_HANG_DISK_NAME) &&
	    memory_read(w->view.memory, MEMORY_KERNEL, d.of + h->off[LINUX_HANG_DISK_NAME], name,
			sizeof(name) - 1))
		why_make_printable(name);
	why_bad(f, "Disk %s has not completed a request for %.1f s%s%s.",
		*name ? name : "(without a name)", why_seconds(d.age_ns),
		who ? "; waiting for it: " : "", who ? why_task_name(who) : "");
	w->failed |= json_object_set_new(f->proof, "disk", json_string(name)) < 0;
	why_prove(w, f, "requests", d.in_flight);
	why_prove(w, f, "oldest_ns", d.age_ns);
	why_prove_hex(w, f, "request", d.request);
	if (who)
		why_prove(w, f, "waiter", who->t.pid);
	why_fact(w, f,
		 "%u requests are in flight; struct request at 0x%" PRIx64
		 " is the oldest, of sector %" PRIu64,
		 d.in_flight, d.request, d.sector);
	if (who)
		why_fact(w, f, "%s has been in state D for %.1f s, in %s", why_task_name(who),
			 why_seconds(who->quiet_ns), why_place(w, &who->stack));
}
