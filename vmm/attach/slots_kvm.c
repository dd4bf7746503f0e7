/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/slots_kvm.h"

#include "base/cleanup.h"
#include "vmm/attach/host_bpf.h"
#include "vmm/attach/slots_record.h"

#include <errno.h>
#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_SHIFT 12u
/* Guest-physical addresses have 52 bits (SDM vol. 3, 4.1.4). */
#define MAX_GFN (UINT64_C(1) << (52 - PAGE_SHIFT))
/* include/linux/kvm_host.h: the slot is about to be removed. */
#define SLOT_INVALID (1u << 16)
/* linux/kvm.h since 6.8 (KVM_MEM_GUEST_MEMFD): private pages are not at the slot's address. */
#define SLOT_PRIVATE (1u << 2)
#define READ_TRIES 20u
/* 1 MiB: the memory that a processor can address after a reset. */
#define GUEST_MIN_PAGES 256u

/* The object of bpf/slots.bpf.c, which the build embeds. */
extern const uint8_t slots_object[], slots_object_end[];

/* -- from a record to regions ------------------------------------------------------------- */

static bool is_on_device(const struct process *p, uint64_t start, uint64_t len)
{
	for (unsigned int i = 0; i < p->ndevices; i++)
		if (start < p->device[i].start + p->device[i].len &&
		    p->device[i].start < start + len)
			return true;
	return false;
}

static bool is_possible(const struct slots_entry *x)
{
	return x->npages && x->npages <= MAX_GFN && x->gfn <= MAX_GFN - x->npages &&
	       !(x->host & ((1u << PAGE_SHIFT) - 1)) &&
	       x->host <= UINT64_MAX - (x->npages << PAGE_SHIFT);
}

static int by_gfn(const void *a, const void *b)
{
	const struct slots_entry *x = a, *y = b;

	return x->gfn < y->gfn ? -1 : x->gfn > y->gfn;
}

static void drop_smallest(struct gmem *m)
{
	unsigned int least = 0;

	for (unsigned int i = 1; i < m->n; i++)
		if (m->region[i].size < m->region[least].size)
			least = i;
	m->n--;
	memmove(&m->region[least], &m->region[least + 1], (m->n - least) * sizeof(m->region[0]));
}

/* Appends a region. One that continues the last one in both address spaces is merged with it. */
static void add_region(struct gmem *m, const struct slots_entry *x, bool *partial)
{
	const uint64_t gpa = x->gfn << PAGE_SHIFT, size = x->npages << PAGE_SHIFT;
	struct gmem_region *last = m->n ? &m->region[m->n - 1] : NULL;

	if (last && last->gpa + last->size == gpa &&
	    (uintptr_t)last->host + last->size == (uintptr_t)x->host) {
		last->size += size;
		return;
	}
	if (m->n == GMEM_MAX_REGIONS) {
		drop_smallest(m);
		*partial = true;
	}
	m->region[m->n++] = (struct gmem_region){ gpa, size, (uint8_t *)(uintptr_t)x->host };
}

int slots_of_record(struct gmem *mem, bool *partial, struct slots_block *b, const struct process *p,
		    struct err *e)
{
	struct gmem m = { .remote = mem->remote };
	bool lacks = false;
	uint64_t end = 0;

	if (b->n > SLOTS_MAX)
		return err_set(e, E2BIG, "process %d: more than %u memory slots", (int)p->pid,
			       SLOTS_MAX);
	qsort(b->slot, b->n, sizeof(b->slot[0]), by_gfn);
	for (unsigned int i = 0; i < b->n; i++) {
		const struct slots_entry *x = &b->slot[i];

		if (!is_possible(x) || x->gfn < end)
			return err_set(e, EBADMSG,
				       "process %d: its memory slots make no sense: %llu pages "
				       "from page %llu on, at 0x%llx",
				       (int)p->pid, x->npages, x->gfn, x->host);
		end = x->gfn + x->npages;
		if (x->flags & SLOT_PRIVATE)
			lacks = true;
		else if (!is_on_device(p, x->host, x->npages << PAGE_SHIFT))
			add_region(&m, x, &lacks);
	}
	if (!m.n)
		return err_set(e, ENOENT, "process %d: its machine has no memory", (int)p->pid);
	*mem = m;
	*partial = lacks;
	return 0;
}

/* -- asking the kernel ------------------------------------------------------------------------ */

static int status_error(const struct process *p, enum slots_status s, struct err *e)
{
	static const char *const text[] = {
		[SLOTS_NONE] = "the BPF program did not run",
		[SLOTS_CHANGED] = "they change all the time",
		[SLOTS_TOO_MANY] = "there are too many",
		[SLOTS_UNKNOWN] = "this kernel keeps them in a way that is not known",
		[SLOTS_NO_VCPU] = "its descriptor leads to no vCPU",
	};

	return err_set(e, ENOTSUP, "process %d: its memory slots can't be read: %s", (int)p->pid,
		       s < ARRAY_SIZE(text) && text[s] ? text[s] : "?");
}

static bool is_settled(const struct slots_block *b)
{
	if (b->status == SLOTS_CHANGED)
		return false;
	for (unsigned int i = 0; b->status == SLOTS_READ && i < b->n && i < SLOTS_MAX; i++)
		if (b->slot[i].flags & SLOT_INVALID)
			return false;
	return true;
}

/*
 * Runs the program for a vCPU. vcpu_fd is a descriptor of the process. Also after an error the
 * record has the vCPU's machine, or 0 if that is not known.
 */
static int ask_kernel(const struct process *p, const struct host_bpf *bpf, int vcpu_fd,
		      struct err *e)
{
	cleanup_close int fd = process_borrow(p->pid, vcpu_fd, e);
	struct slots_block *b = bpf->block;

	b->machine = 0;
	if (fd < 0)
		return -e->code;
	b->fd = (unsigned int)fd;
	for (unsigned int i = 0; i < READ_TRIES; i++) {
		int ret = host_bpf_run(bpf, -1);

		if (ret)
			return err_set(e, -ret, "the BPF program does not run: %s", strerror(-ret));
		if (is_settled(b))
			break;
		b->status = SLOTS_CHANGED;
	}
	return b->status == SLOTS_READ ? 0 : status_error(p, b->status, e);
}

int slots_open(struct host_bpf *bpf, struct err *e)
{
	return host_bpf_open(bpf, slots_object, (size_t)(slots_object_end - slots_object), "slots",
			     sizeof(struct slots_block), e);
}

int slots_read(struct gmem *mem, bool *partial, const struct host_bpf *bpf, const struct process *p,
	       struct err *e)
{
	int ret;

	if (p->ndevices > ATTACH_MAX_DEVICES)
		return err_set(e, E2BIG, "process %d: it maps more than %u pieces of devices",
			       (int)p->pid, ATTACH_MAX_DEVICES);
	ret = ask_kernel(p, bpf, p->vcpu[0].fd, e);
	return ret ? ret : slots_of_record(mem, partial, bpf->block, p, e);
}

/* Returns the place of a machine in order[0, n), or n. */
static unsigned int place_of(const uint64_t *order, unsigned int n, uint64_t machine)
{
	unsigned int i = 0;

	while (i < n && order[i] != machine)
		i++;
	return i;
}

static int by_fd(const void *a, const void *b)
{
	const struct process_vcpu *x = a, *y = b;

	return x->fd < y->fd ? -1 : x->fd > y->fd;
}

/*
 * Returns whether the machine has too little memory for a guest to boot. Such a machine is a VMM's
 * own helper, with which it probes KVM or executes single instructions.
 */
static bool is_helper(const struct slots_block *b)
{
	uint64_t pages = 0;

	for (unsigned int i = 0; i < b->n && i < SLOTS_MAX; i++)
		pages += b->slot[i].npages;
	return b->status == SLOTS_READ && pages < GUEST_MIN_PAGES;
}

/*
 * Drops the vCPUs of helpers, unless there is nothing else, and numbers the other machines again.
 * Returns the number of machines.
 */
static unsigned int drop_helpers(struct process *p, const bool *helper, unsigned int n)
{
	unsigned int number[ATTACH_MAX_VCPUS] = { 0 }, guests = 0, kept = 0;

	for (unsigned int i = 0; i < n; i++)
		number[i] = helper[i] ? 0 : ++guests;
	if (!guests || guests == n)
		return n;
	for (unsigned int i = 0; i < p->nvcpus; i++) {
		p->vcpu[i].machine = number[p->vcpu[i].machine - 1];
		if (p->vcpu[i].machine)
			p->vcpu[kept++] = p->vcpu[i];
	}
	p->nvcpus = kept;
	return guests;
}

int slots_number_machines(struct process *p, const struct host_bpf *bpf, struct err *e)
{
	const struct slots_block *b = bpf->block;
	uint64_t order[ATTACH_MAX_VCPUS];
	bool helper[ATTACH_MAX_VCPUS];
	unsigned int n = 0;
	int ret;

	qsort(p->vcpu, p->nvcpus, sizeof(p->vcpu[0]), by_fd);
	for (unsigned int i = 0; i < p->nvcpus; i++) {
		unsigned int at;

		/* The program reports the machine even where it cannot report the slots. */
		ret = ask_kernel(p, bpf, p->vcpu[i].fd, e);
		if (ret && !b->machine)
			return ret;
		err_clear(e);
		at = place_of(order, n, b->machine);
		order[at] = b->machine;
		helper[at] = is_helper(b);
		n += at == n;
		p->vcpu[i].machine = at + 1;
	}
	return (int)drop_helpers(p, helper, n);
}
