/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks the tables of a kernel's image against its code, and unwinds stacks that are made
 * up from real call sites. No guest is run.
 *
 *	kernel_tables IMAGE [ELF]
 *
 * Prints lines of a word and a number or text, which kernel_tables.py judges. Random
 * choices are the same in each run. With ELF only the kernel inside of IMAGE is written
 * there.
 */
#include "base/cleanup.h"
#include "profile/record/run/kernel.h"
#include "symbolizer/core/elf64.h"
#include "symbolizer/core/insn.h"
#include "symbolizer/kernel/variables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_TOP UINT64_C(0xffffc90000008000)
#define STACK_BYTES 16384u
#define STACKS 4000u
#define MAX_DEPTH 40u
#define MAX_SITES 64u
#define PERMUTATIONS 3u
#define SHOWN 5u

static struct target target;

static uint64_t next_random(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static size_t read_image(void *ctx, uint64_t va, void *dst, size_t len)
{
	size_t avail;
	const uint8_t *p = kimage_ptr(ctx, va, &avail);

	if (!p)
		return 0;
	if (len > avail)
		len = avail;
	memcpy(dst, p, len);
	return len;
}

/* -- entries against code ------------------------------------------------------------ */

struct agreement {
	uint64_t functions, starts; /* starts: with the caller's frame at rsp + 8 */
	uint64_t instructions, agree;
	unsigned int shown;
};

/* A piece that something jumps to in the middle of a frame, or bytes before a function. */
static bool is_whole_function(const struct symbol *s)
{
	return (s->type == 't' || s->type == 'T') && s->size >= 8 && !strstr(s->name, ".cold") &&
	       strncmp(s->name, "__pfx_", 6) && strncmp(s->name, "__cfi_", 6);
}

/* From a function's start to where control may go elsewhere: where is the caller's frame? */
static void follow_function(const struct symbol *s, struct agreement *a)
{
	size_t avail, at = 0;
	const uint8_t *p = kimage_ptr(&target.kernel, s->addr, &avail);
	int64_t depth = 8, frame = 0;

	if (!p)
		return;
	if (avail > s->size)
		avail = s->size;
	while (at < avail) {
		const struct orc_entry *x = orc_lookup(target.orc, s->addr + at);
		struct insn i;
		bool good;

		if (!x || x->type != ORC_CALL || (x->sp_reg != ORC_SP && x->sp_reg != ORC_BP) ||
		    !insn_decode(&i, s->addr + at, p + at, avail - at))
			return;
		good = x->sp_reg == ORC_SP ? x->sp_offset == depth : frame && x->sp_offset == frame;
		if (at == 0) {
			a->functions++;
			a->starts += good && x->bp_reg == ORC_UNDEFINED_REG;
		}
		a->instructions++;
		a->agree += good;
		if (!good && a->shown++ < SHOWN)
			printf("disagree %s+0x%zx: reg %u offset %d, by the code %" PRId64 "\n",
			       s->name, at, x->sp_reg, x->sp_offset, depth);
		if (!good)
			return;
		switch (i.kind) {
		case INSN_PUSH_RBP:
			depth += 8;
			break;
		case INSN_POP_RBP:
			depth -= 8;
			break;
		case INSN_MOV_RSP_RBP:
			frame = depth;
			break;
		case INSN_RSP_ADD:
			depth -= i.value;
			break;
		case INSN_OTHER:
		case INSN_CALL:
		case INSN_CALL_IND:
			break;
		case INSN_JCC: /* what follows goes on as before */
			break;
		default:
			return;
		}
		at += i.len;
	}
}

static void check_entries(void)
{
	struct agreement a = { 0 };

	for (size_t i = 0; i < symtab_count(target.symbols); i++)
		if (is_whole_function(symtab_at(target.symbols, i)))
			follow_function(symtab_at(target.symbols, i), &a);
	printf("functions %" PRIu64 "\nstarts %" PRIu64 "\ninstructions %" PRIu64 "\nagree %" PRIu64
	       "\n",
	       a.functions, a.starts, a.instructions, a.agree);
}

/* -- registers numbered at random ------------------------------------------------------ */

static uint8_t *section_in(uint8_t *elf, size_t len, const char *name, uint64_t *bytes)
{
	struct elf64 f;

	if (elf64_open(&f, "copy", elf, len, NULL) < 0)
		return NULL;
	for (uint32_t i = 0; i < f.shnum; i++) {
		Elf64_Shdr s = elf64_shdr(&f, i);

		if (strcmp(elf64_section_name(&f, &s), name) || s.sh_offset > len ||
		    s.sh_size > len - s.sh_offset)
			continue;
		*bytes = s.sh_size;
		return elf + s.sh_offset;
	}
	return NULL;
}

/* The same table under other numbers must say the same: by the code alone. */
static int check_permutation(uint64_t *lost, uint64_t *wrong)
{
	size_t len = target.kernel.elf_len;
	uint8_t *copy = malloc(len), to[16], *table;
	struct kimage k = target.kernel;
	struct orc *o = NULL;
	struct err e = { 0 };
	uint64_t bytes = 0;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, target.kernel.elf, len);
	table = section_in(copy, len, ".orc_unwind", &bytes);
	for (unsigned int i = 0; i < 16; i++)
		to[i] = (uint8_t)i;
	for (unsigned int i = 15; i > 1; i--) { /* 0 stays: nothing is known there */
		unsigned int j = 1 + (unsigned int)(next_random() % i);
		uint8_t x = to[i];

		to[i] = to[j];
		to[j] = x;
	}
	for (uint64_t i = 0; table && i + 6 <= bytes; i += 6) {
		uint8_t r = table[i + 4];

		table[i + 4] = (uint8_t)(to[r & 15] | to[r >> 4] << 4);
	}
	k.elf = copy;
	if (orc_open(&o, &k, &e) < 0 || orc_count(o) != orc_count(target.orc)) {
		printf("permuted-refused %s\n", e.text);
		*lost += orc_count(target.orc);
	} else {
		for (size_t i = 0; i < orc_count(o); i++) {
			uint64_t va;
			const struct orc_entry *x = orc_at(o, i, &va),
					       *y = orc_at(target.orc, i, &va);

			if (x->type != y->type && x->type == ORC_UNDEFINED)
				(*lost)++;
			else if (x->type != y->type || x->sp_reg != y->sp_reg ||
				 x->bp_reg != y->bp_reg || x->sp_offset != y->sp_offset)
				(*wrong)++;
		}
	}
	orc_destroy(o);
	free(copy);
	return 0;
}

/* -- stacks over real call sites ------------------------------------------------------- */

/* An instruction, and where the frame is while it runs. */
struct site {
	uint64_t va, ret; /* ret: behind a call; 0: another instruction */
	const struct orc_entry *entry;
};

static bool can_make(const struct orc_entry *x)
{
	if (!x || x->type != ORC_CALL || x->bp_offset < -512 || x->bp_offset > 0)
		return false;
	switch (x->sp_reg) {
	case ORC_SP:
		return x->sp_offset >= 8 && x->sp_offset % 8 == 0 && x->sp_offset <= 512 &&
		       (x->bp_reg == ORC_UNDEFINED_REG ||
			(x->bp_reg == ORC_PREV_SP && -x->bp_offset <= x->sp_offset &&
			 x->bp_offset <= -16));
	case ORC_BP:
		return x->sp_offset >= 16 && x->sp_offset <= 64 && x->bp_reg == ORC_PREV_SP &&
		       x->bp_offset == -x->sp_offset;
	case ORC_BP_INDIRECT:
		return x->sp_offset < 0 && x->sp_offset >= -64 && x->bp_reg == ORC_BP &&
		       x->bp_offset == 0;
	default:
		return false;
	}
}

static const struct symbol *function_at(uint64_t va)
{
	uint64_t off;
	const struct symbol *s = symtab_lookup(target.symbols, va, &off);

	return s && off == 0 && is_whole_function(s) ? s : NULL;
}

/* An instruction of a function whose frame can be made: a call of another one, or any other. */
static bool site_in(const struct symbol *s, bool call, struct site *out,
		    const struct symbol **callee)
{
	struct site found[MAX_SITES];
	const struct symbol *to[MAX_SITES];
	unsigned int n = 0, pick;
	size_t avail, at = 0;
	const uint8_t *p = kimage_ptr(&target.kernel, s->addr, &avail);

	if (!p)
		return false;
	if (avail > s->size)
		avail = s->size;
	while (at < avail && n < MAX_SITES) {
		const struct orc_entry *x = orc_lookup(target.orc, s->addr + at);
		struct insn i;

		if (!insn_decode(&i, s->addr + at, p + at, avail - at))
			break;
		to[n] = i.kind == INSN_CALL ? function_at((uint64_t)i.value) : NULL;
		if (can_make(x) && i.kind != INSN_CALL_IND &&
		    (call ? to[n] && strncmp(to[n]->name, "__x86_", 6) && to[n] != s
			  : i.kind != INSN_CALL))
			found[n++] =
				(struct site){ s->addr + at, call ? s->addr + at + i.len : 0, x };
		at += i.len;
	}
	if (!n)
		return false;
	pick = (unsigned int)(next_random() % n);
	*out = found[pick];
	*callee = to[pick];
	return true;
}

/* Behind the call of do_syscall_64: registers of a program are at rsp there. */
static uint64_t find_root(void)
{
	const struct symbol *entry = symtab_find(target.symbols, "entry_SYSCALL_64"),
			    *to = symtab_find(target.symbols, "do_syscall_64");
	size_t avail;
	const uint8_t *p = entry ? kimage_ptr(&target.kernel, entry->addr, &avail) : NULL;

	for (size_t at = 0; p && to && at + 5 < 1024 && at + 5 < avail; at++) {
		int32_t rel;

		memcpy(&rel, p + at + 1, 4);
		if (p[at] == 0xe8 && entry->addr + at + 5 + (uint64_t)(int64_t)rel == to->addr)
			return entry->addr + at + 5;
	}
	return 0;
}

struct made {
	struct sample *s;
	uint8_t *bytes; /* bytes of the whole stack */
	uint64_t sp, rbp;
	uint64_t ip[MAX_DEPTH + 2];
	unsigned int n;
};

static void poke(struct made *m, uint64_t va, uint64_t v)
{
	memcpy(m->bytes + (va - (STACK_TOP - STACK_BYTES)), &v, 8);
}

/* The frame of x below what is there: m->sp and m->rbp become those while it runs. */
static void push_frame(struct made *m, const struct orc_entry *x, uint64_t ret)
{
	uint64_t cfa = m->sp, rbp = next_random() | 1;

	poke(m, cfa - 8, ret);
	switch (x->sp_reg) {
	case ORC_SP:
		m->sp = cfa - (uint64_t)x->sp_offset;
		if (x->bp_reg == ORC_PREV_SP) {
			poke(m, cfa + (uint64_t)(int64_t)x->bp_offset, m->rbp);
			m->rbp = rbp;
		}
		break;
	case ORC_BP:
		poke(m, cfa - (uint64_t)x->sp_offset, m->rbp);
		m->rbp = cfa - (uint64_t)x->sp_offset;
		m->sp = m->rbp - 8 * (next_random() % 16);
		break;
	default: /* a stack that was aligned: its frame says where the caller's is */
		rbp = (cfa - 64) & ~31ull;
		poke(m, rbp, m->rbp);
		poke(m, rbp + (uint64_t)(int64_t)x->sp_offset, cfa);
		m->rbp = rbp;
		m->sp = rbp - 64 - 8 * (next_random() % 16);
		break;
	}
}

static bool make_stack(struct made *m, uint64_t root)
{
	unsigned int depth = 1 + (unsigned int)(next_random() % MAX_DEPTH);
	uint64_t ret[MAX_DEPTH + 1], regs = STACK_TOP - 168;
	const struct symbol *f = NULL, *none;
	unsigned int n = 0;
	struct site x;

	memset(m->bytes, 0x11, STACK_BYTES);
	poke(m, regs + 128, 0x401000); /* ip, cs, flags, sp, ss */
	poke(m, regs + 136, 0x33);
	poke(m, regs + 144, 0x202);
	poke(m, regs + 152, 0x7ffffffff000);
	poke(m, regs + 160, 0x2b);
	m->sp = regs;
	m->rbp = 0x1234;
	ret[0] = root;
	/* From a random function on, as a system call by a pointer, along calls that there are. */
	while (!f || !is_whole_function(f) || !site_in(f, true, &x, &none))
		f = symtab_at(target.symbols,
			      (size_t)(next_random() % symtab_count(target.symbols)));
	while (n < depth && site_in(f, true, &x, &none)) {
		f = none;
		push_frame(m, x.entry, ret[n]);
		ret[++n] = x.ret;
	}
	if (!site_in(f, false, &x, &none))
		return false;
	push_frame(m, x.entry, ret[n]);
	m->n = 0;
	m->ip[m->n++] = x.va;
	for (unsigned int i = 0; i <= n; i++)
		m->ip[m->n++] = ret[n - i];
	m->s->version = SAMPLE_VERSION;
	m->s->mode = SAMPLE_KERNEL;
	m->s->reason = SAMPLE_TIMER;
	m->s->regs.rip = x.va;
	m->s->regs.cs = 0x10;
	m->s->regs.gpr[GPR_RSP] = m->sp;
	m->s->regs.gpr[GPR_RBP] = m->rbp;
	m->s->nslices = 1;
	m->s->stack_len = (uint32_t)(STACK_TOP - m->sp);
	m->s->slice[0] = (struct sample_slice){ m->sp, 0, m->s->stack_len };
	memcpy(m->s->stack, m->bytes + STACK_BYTES - m->s->stack_len, m->s->stack_len);
	return true;
}

static void check_stacks(const char *what, bool orc)
{
	static uint8_t bytes[STACK_BYTES];
	static uint8_t room[sizeof(struct sample) + STACK_BYTES] __attribute__((aligned(16)));
	static struct stack out;
	struct made m = { .s = (struct sample *)room, .bytes = bytes };
	struct unwinder u = { .read_text = read_image,
			      .ctx = &target.kernel,
			      .symbols = target.symbols,
			      .text_start = target.kernel.text,
			      .text_end = target.kernel.etext,
			      .orc = orc ? target.orc : NULL };
	uint64_t root = find_root(), whole = 0, frames = 0, right = 0, invented = 0, made = 0;
	unsigned int shown = 0;

	while (root && made < STACKS) {
		unsigned int good = 0, at = 0;

		if (!make_stack(&m, root))
			continue;

		unwind(&u, m.s, &out);
		made++;
		/* Frames in their order; one that the stack does not have is invented. */
		for (unsigned int i = 0; i < out.n_kernel; i++) {
			unsigned int k = at;

			while (k < m.n && m.ip[k] != out.ip[i])
				k++;
			if (k == m.n) {
				invented++;
				continue;
			}
			at = k + 1;
			good++;
		}
		frames += m.n;
		right += good;
		if (good == m.n && out.n_kernel == m.n && out.end == STACK_END_USER)
			whole++;
		else if (orc && shown++ < SHOWN)
			printf("broken after %u of %u frames at %" PRIx64 ": %s\n", out.n_kernel,
			       m.n, out.ip[out.n - 1], stack_end_name(out.end));
	}
	printf("%s-stacks %" PRIu64 "\n%s-whole %" PRIu64 "\n%s-frames %" PRIu64
	       "\n%s-right %" PRIu64 "\n%s-invented %" PRIu64 "\n",
	       what, made, what, whole, what, frames, what, right, what, invented);
}

/* -- variables that the image does not name ------------------------------------------- */

/* Returns the symbols that a kernel without CONFIG_KALLSYMS_ALL has. */
static struct symtab *functions_only(void)
{
	struct symtab *t = symtab_create();

	for (size_t i = 0; t && i < symtab_count(target.symbols); i++) {
		const struct symbol *s = symtab_at(target.symbols, i);

		if (strchr("tTwW", s->type) && symtab_add(t, s->addr, s->size, s->type, s->name))
			exit(1);
	}
	if (!t || symtab_freeze(t, NULL))
		exit(1);
	return t;
}

/* By content and code, against what the image says itself. */
static void check_variables(void)
{
	static const char *const name[] = { "init_task",	"current_task", "__per_cpu_offset",
					    "page_offset_base", "vmemmap_base", "modules" };
	struct symtab *t = functions_only();

	if (variables_add(&target.kernel, &t, NULL))
		exit(1);
	for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
		const struct symbol *is = symtab_find(target.symbols, name[i]),
				    *found = symtab_find(t, name[i]);

		/* 6.2 to 6.14 have it there, as the first member. */
		if (!is && i == 1)
			is = symtab_find(target.symbols, "pcpu_hot");
		printf("variable %s %s\n", name[i],
		       !is && !found		 ? "none"
		       : !is			 ? "invented"
		       : !found			 ? "missing"
		       : is->addr == found->addr ? "right"
						 : "wrong");
	}
	symtab_destroy(t);
}

/* -- the image itself, for images that are damaged on purpose ------------------------- */

static int write_elf(const char *to)
{
	FILE *f = fopen(to, "wb");
	bool good = f && fwrite(target.elf, 1, target.elf_len, f) == target.elf_len;

	if (f && fclose(f))
		good = false;
	return good ? 0 : -EIO;
}

/* Entries of the image's table that were left out, as they are for addresses outside of the text. */
static size_t orc_outside(void)
{
	uint64_t va, len;

	if (!kimage_section(&target.kernel, ".orc_unwind", &va, &len))
		return 0;
	return (size_t)(len / 6) - orc_count(target.orc);
}

int main(int argc, char **argv)
{
	uint64_t lost = 0, wrong = 0;
	struct boot_image image;
	struct err e = { 0 };
	int ret = 0;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: kernel_tables IMAGE [ELF]\n");
		return 2;
	}
	if (kernel_open(&image, &target, argv[1], NULL, &e) < 0) {
		fprintf(stderr, "kernel_tables: %s\n", e.text);
		return 1;
	}
	if (argc == 3) {
		ret = write_elf(argv[2]);
	} else if (target.orc && target.symbols) {
		printf("orc %zu\noutside %zu\n", orc_count(target.orc), orc_outside());
		check_entries();
		for (unsigned int i = 0; i < PERMUTATIONS && ret == 0; i++)
			ret = check_permutation(&lost, &wrong);
		printf("permuted-lost %" PRIu64 "\npermuted-wrong %" PRIu64 "\n", lost, wrong);
		check_stacks("orc", true);
		check_stacks("scan", false);
	}
	if (argc == 2 && target.symbols && symtab_find(target.symbols, "init_task"))
		check_variables();
	target_close(&target);
	return ret ? 1 : 0;
}
