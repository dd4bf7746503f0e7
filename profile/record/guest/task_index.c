/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/task_index.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define KERNEL_HALF (UINT64_C(1) << 63)
/* Bytes of a stack that must be unchanged. */
#define PROOF_BYTES 64u
/*
 * Bits of CR3 that are no address (SDM vol. 3, 4.5). With page-table isolation a program has the second of
 * two adjacent tables (arch/x86/mm/pti.c, PTI_USER_PGTABLE_BIT).
 */
#define CR3_FLAGS UINT64_C(0xfff0000000000fff)
#define PTI_BIT UINT64_C(0x1000)

struct entry {
	struct linux_task task;
	uint64_t
		table; /* guest-physical address of its page table; 0: a kernel thread, or unknown */
};

struct guest_task_index {
	struct guest_task_index_parts parts;
	struct entry *entry;
	size_t n;
	uint64_t read_ns; /* when the list was read; 0: never */
};

struct guest_task_index *guest_task_index_create(const struct guest_task_index_parts *parts)
{
	struct guest_task_index *x = calloc(1, sizeof(*x));

	if (x)
		x->parts = *parts;
	return x;
}

void guest_task_index_destroy(struct guest_task_index *x)
{
	if (!x)
		return;
	free(x->entry);
	free(x);
}

/* -- the list ----------------------------------------------------------------------------------- */

static uint64_t table_of(const struct guest_task_index *x, const struct linux_task *t)
{
	const struct guest_task_index_parts *p = &x->parts;
	uint64_t pgd, gpa;

	if (!*p->have_mm || p->mm->mm_pgd == LINUX_TASK_NONE || !t->mm ||
	    !memory_u64(p->memory, t->mm + p->mm->mm_pgd, &pgd) || !(pgd & KERNEL_HALF) ||
	    pgd % 4096 || !p->walk(p->ctx, pgd, &gpa))
		return 0;
	return gpa;
}

static void read_list(struct guest_task_index *x)
{
	struct linux_task_list list = { 0 };
	struct err ignored = { 0 };
	struct entry *entry;

	x->parts.forget(x->parts.ctx);
	if (linux_task_list(x->parts.layout, x->parts.memory, &list, &ignored))
		return;
	entry = calloc(list.n + 1, sizeof(*entry));
	for (size_t i = 0; entry && i < list.n; i++)
		entry[i] = (struct entry){ list.task[i], table_of(x, &list.task[i]) };
	if (entry) {
		free(x->entry);
		x->entry = entry;
		x->n = list.n;
	}
	linux_task_list_deinit(&list);
}

/* -- a sample ----------------------------------------------------------------------------------- */

/* Returns whether the end of a copied stack is in memory as it was. */
static bool is_unchanged(const struct guest_task_index *x, const struct sample *s,
			 const struct sample_slice *slice, uint64_t space)
{
	const uint32_t n = slice->len < PROOF_BYTES ? slice->len : PROOF_BYTES;
	const uint32_t from = slice->len - n;
	uint8_t now[PROOF_BYTES];

	return n >= PROOF_BYTES / 2 &&
	       memory_read(x->parts.memory, space, slice->va + from, now, n) &&
	       !memcmp(now, s->stack + slice->off + from, n);
}

/* Returns the part of the sample that is a program's stack, or NULL. */
static const struct sample_slice *program_stack(const struct sample *s)
{
	for (unsigned int i = s->nslices; i-- > 0;)
		if (s->slice[i].len && !(s->slice[i].va & KERNEL_HALF))
			return &s->slice[i];
	return NULL;
}

static bool has_table(const struct entry *k, uint64_t cr3)
{
	const uint64_t table = cr3 & ~CR3_FLAGS;

	return k->table && (k->table == table || k->table == (table & ~PTI_BIT));
}

/* Returns the part of the sample that lies in the task's kernel stack, or NULL. */
static const struct sample_slice *kernel_stack(const struct guest_task_index *x,
					       const struct sample *s, const struct entry *k)
{
	for (unsigned int i = 0; k->task.stack && i < s->nslices; i++)
		if (s->slice[i].len && s->slice[i].va - k->task.stack < x->parts.stack_size)
			return &s->slice[i];
	return NULL;
}

/*
 * The task whose kernel stack it is. Of a program the upper end of that changes with each system call, but
 * the program's own stack does not.
 */
static const struct entry *find_by_stack(const struct guest_task_index *x, const struct sample *s)
{
	const struct sample_slice *program = program_stack(s), *kernel;

	for (size_t i = 0; i < x->n; i++) {
		const struct entry *k = &x->entry[i];

		kernel = kernel_stack(x, s, k);
		if (!kernel)
			continue;
		if (program && k->task.mm)
			return has_table(k, s->regs.cr3) &&
					       is_unchanged(x, s, program, s->regs.cr3 & ~CR3_FLAGS)
				       ? k
				       : NULL;
		return is_unchanged(x, s, kernel, MEMORY_KERNEL) ? k : NULL;
	}
	return NULL;
}

/* The only thread of the process whose page table it is. */
static const struct entry *find_by_table(const struct guest_task_index *x, const struct sample *s)
{
	const struct sample_slice *program = program_stack(s);
	const struct entry *found = NULL;

	if (!program || (s->regs.rip & KERNEL_HALF))
		return NULL;
	for (size_t i = 0; i < x->n; i++) {
		if (!has_table(&x->entry[i], s->regs.cr3))
			continue;
		if (found)
			return NULL;
		found = &x->entry[i];
	}
	return found && is_unchanged(x, s, program, s->regs.cr3 & ~CR3_FLAGS) ? found : NULL;
}

static const struct entry *find_entry(const struct guest_task_index *x, const struct sample *s)
{
	const struct entry *k = find_by_stack(x, s);

	return k ? k : find_by_table(x, s);
}

bool guest_task_index_find(struct guest_task_index *x, const struct sample *s, uint64_t now_ns,
			   struct sample_task *out)
{
	const struct entry *k = x->n ? find_entry(x, s) : NULL;

	if (!k && (!x->read_ns || clock_is_due(now_ns, x->read_ns, GUEST_TASK_INDEX_NS))) {
		x->read_ns = now_ns;
		read_list(x);
		k = find_entry(x, s);
	}
	if (!k)
		return false;
	*out = (struct sample_task){
		.addr = k->task.task,
		.mm = k->task.mm,
		.stack = k->task.stack,
		.start = k->task.start_time,
		.tid = k->task.pid,
		.pid = k->task.tgid,
		.state = SAMPLE_TASK_FOUND,
		.exec_id = k->task.exec_id,
	};
	memcpy(out->comm, k->task.comm, SAMPLE_COMM);
	return true;
}
