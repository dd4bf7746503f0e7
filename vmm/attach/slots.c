/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/slots.h"

#include "base/gmem_remote.h"
#include "base/mmu.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define HIGH_RAM (4 * GIB)
#define CR0_PG (UINT64_C(1) << 31)
#define EFER_LMA (UINT64_C(1) << 10)
#define LEAST_PROOFS 3u
/* All known layouts are the same below their lowest hole. */
#define SURE_RAM (2 * GIB)

/* SDM vol. 3, 4.5.4: entries of a table; those of the second level from the top. */
#define TABLE_ENTRIES 512u
#define TABLE_ADDR UINT64_C(0x000ffffffffff000)
#define TABLE_RESERVED UINT64_C(0x0000c00000000000) /* 0 in all physical addresses */

/* SDM vol. 3, 6.14.1: a gate of the 64-bit IDT. */
#define GATE_SIZE 16u
#define GATE_PRESENT 0x8000u
/* SDM vol. 3, 3.4.5: a 64-bit code segment, present. */
#define CODE64_MASK (UINT64_C(1) << 53 | UINT64_C(1) << 47 | UINT64_C(1) << 44 | UINT64_C(1) << 43)
#define CODE64 CODE64_MASK
/* Exceptions that every kernel handles: #DE, #UD, #DF, #GP, #PF. */
static const unsigned int vectors[] = { 0, 6, 8, 13, 14 };

/*
 * The addresses below 4 GiB at which RAM ends if there is more: QEMU's pc, q35 and microvm, and
 * others.
 */
static const uint64_t splits[] = {
	UINT64_MAX, /* no hole */
	3 * GIB,    2 * GIB, UINT64_C(0xe0000000), UINT64_C(0xd0000000), UINT64_C(0xc8000000),
};

static struct mmu_root root_of(const struct slots_witness *w)
{
	return (struct mmu_root){ w->regs.cr0, w->regs.cr3, w->regs.cr4, w->regs.efer };
}

static bool is_executable(const struct gmem *m, const struct mmu_root *root, uint64_t va)
{
	struct mmu_page page;
	uint8_t byte;

	return !mmu_walk(m, root, va, &page) && page.exec && !gmem_read(m, page.gpa, &byte, 1);
}

static bool has_handlers(const struct gmem *m, const struct mmu_root *root,
			 const struct slots_witness *w)
{
	for (unsigned int i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		uint32_t gate[4];

		if (w->idt_limit < (vectors[i] + 1) * GATE_SIZE - 1 ||
		    mmu_read(m, root, w->idt_base + vectors[i] * GATE_SIZE, gate, sizeof(gate)) !=
			    sizeof(gate) ||
		    !(gate[1] & GATE_PRESENT))
			return false;
		/*
		 * With page-table isolation, only entry code is mapped while a program runs,
		 * including the handlers.
		 */
		if (!is_executable(m, root,
				   (uint64_t)gate[2] << 32 | (gate[1] & 0xffff0000u) |
					   (gate[0] & 0xffffu)))
			return false;
	}
	return true;
}

static unsigned int prove(const struct gmem *m, const struct slots_witness *w,
			  struct slots_proof *out)
{
	const struct mmu_root root = root_of(w);
	uint64_t word;

	gmem_remote_invalidate(m->remote);
	out->text = is_executable(m, &root, w->regs.rip);
	if (!out->text)
		return 0;
	out->stack = mmu_read(m, &root, w->regs.gpr[GPR_RSP] & ~UINT64_C(7), &word, sizeof(word)) ==
		     sizeof(word);
	out->idt = mmu_read(m, &root, w->idt_base, &word, sizeof(word)) == sizeof(word);
	out->gdt = mmu_read(m, &root, w->gdt_base + (w->regs.cs & ~7u), &word, sizeof(word)) ==
			   sizeof(word) &&
		   (word & CODE64_MASK) == CODE64;
	out->handlers = out->idt && has_handlers(m, &root, w);
	return 1u + out->stack + out->idt + out->gdt + out->handlers;
}

static void lay_out(struct gmem *m, const struct process_mapping *x, uint64_t split)
{
	uint8_t *host = (uint8_t *)(uintptr_t)x->start;
	uint64_t low = x->len < split ? x->len : split;

	m->n = 0;
	m->region[m->n++] = (struct gmem_region){ 0, low, host };
	if (x->len > low)
		m->region[m->n++] = (struct gmem_region){ HIGH_RAM, x->len - low, host + low };
}

/*
 * Returns the number of entries of the kernel's half that lead to valid page tables, minus the
 * number of those that do not. If the hole is at a wrong place, some lead to other memory. Returns
 * INT_MIN if the top table cannot be read.
 */
static int tables_score(const struct gmem *m, const struct slots_witness *w)
{
	uint64_t top[TABLE_ENTRIES], below[TABLE_ENTRIES];
	int score = 0;

	gmem_remote_invalidate(m->remote);
	if (gmem_read(m, w->regs.cr3 & TABLE_ADDR, top, sizeof(top)))
		return INT_MIN;
	for (unsigned int i = TABLE_ENTRIES / 2; i < TABLE_ENTRIES; i++) {
		bool good;

		if (!(top[i] & 1))
			continue;
		good = !gmem_read(m, top[i] & TABLE_ADDR, below, sizeof(below));
		for (unsigned int k = 0; good && k < TABLE_ENTRIES; k++)
			good = !(below[k] & 1) || !(below[k] & TABLE_RESERVED);
		score += good ? 1 : -1;
	}
	return score;
}

/*
 * Tries the holes that a mapping of this size may have, and stores in *out the one with the best
 * tables_score(). Returns false if several are equally good.
 */
static bool choose_split(struct gmem *out, const struct gmem *base, const struct process_mapping *x,
			 const struct slots_witness *w)
{
	int best = INT_MIN;
	bool sure = true;

	for (unsigned int k = 0; k < sizeof(splits) / sizeof(splits[0]); k++) {
		struct gmem m = *base;
		struct slots_proof pr = { 0 };
		int score;

		if (k && x->len <= splits[k])
			continue;
		lay_out(&m, x, splits[k]);
		score = prove(&m, w, &pr) >= LEAST_PROOFS ? tables_score(&m, w) : INT_MIN;
		if (score > best || best == INT_MIN) {
			best = score;
			*out = m;
			sure = true;
		} else if (score == best) {
			sure = false;
		}
	}
	return sure;
}

/*
 * Tries each other mapping as RAM from 4 GiB on, if the one below does not prove itself. Returns
 * the number of proofs.
 */
static unsigned int prove_with_high(struct gmem *m, const struct process *p, unsigned int low,
				    const struct slots_witness *w, struct slots_proof *proof)
{
	unsigned int n = 0;

	for (unsigned int i = 0; n < LEAST_PROOFS && i < p->nmappings; i++) {
		if (i == low)
			continue;
		m->region[1] = (struct gmem_region){ HIGH_RAM, p->mapping[i].len,
						     (uint8_t *)(uintptr_t)p->mapping[i].start };
		m->n = 2;
		n = prove(m, w, proof);
	}
	return n;
}

/*
 * Tries one mapping as RAM from 0 on, possibly with another one from 4 GiB on. Returns the number
 * of proofs.
 */
static unsigned int try_mapping(struct gmem *m, const struct process *p, unsigned int i,
				const struct slots_witness *w, struct slots_proof *pr)
{
	const struct process_mapping *x = &p->mapping[i];
	unsigned int n;

	if (x->len > SURE_RAM) {
		bool sure = choose_split(m, m, x, w);

		n = prove(m, w, pr);
		/* RAM at an uncertain place is reported as unknown. */
		if (n >= LEAST_PROOFS && !sure) {
			m->n = 1;
			m->region[0].size = SURE_RAM;
			pr->partial = true;
		}
	} else {
		lay_out(m, x, UINT64_MAX);
		n = prove(m, w, pr);
	}
	if (n < LEAST_PROOFS && x->len <= HIGH_RAM) {
		lay_out(m, x, UINT64_MAX);
		n = prove_with_high(m, p, i, w, pr);
	}
	return n;
}

static int check_mode(const struct slots_witness *w, struct err *e)
{
	if (!(w->regs.cr0 & CR0_PG) || !(w->regs.efer & EFER_LMA))
		return err_set(e, EAGAIN, "the guest is not in 64-bit mode");
	return 0;
}

int slots_prove(const struct gmem *mem, const struct slots_witness *w, struct slots_proof *proof,
		struct err *e)
{
	struct slots_proof pr = { 0 };
	int ret = check_mode(w, e);

	if (ret)
		return ret;
	if (prove(mem, w, &pr) < LEAST_PROOFS)
		return err_set(e, ENOENT,
			       "the guest's page tables do not agree with its memory slots");
	*proof = pr;
	return 0;
}

int slots_find(struct gmem *mem, const struct process *p, const struct slots_witness *w,
	       struct slots_proof *proof, struct err *e)
{
	struct gmem found = { .remote = mem->remote };
	struct slots_proof of_found = { 0 };
	unsigned int best = 0;
	int ret = check_mode(w, e);

	if (ret)
		return ret;
	for (unsigned int i = 0; i < p->nmappings; i++) {
		struct gmem m = { .remote = mem->remote };
		struct slots_proof pr = { 0 };
		unsigned int n = try_mapping(&m, p, i, w, &pr);

		if (n < LEAST_PROOFS || n < best)
			continue;
		if (n == best)
			return err_set(e, ENOTUNIQ,
				       "process %d: two of its mappings pass for the guest's "
				       "memory",
				       (int)p->pid);
		best = n;
		found = m;
		of_found = pr;
	}
	if (!best)
		return err_set(e, ENOENT,
			       "process %d (%s): none of its %u large mappings is the memory that "
			       "the guest's page tables speak of",
			       (int)p->pid, p->name, p->nmappings);
	*mem = found;
	*proof = of_found;
	return 0;
}
