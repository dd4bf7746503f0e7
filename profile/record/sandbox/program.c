/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/program.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/kvm.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Numbers of x32 have this bit (asm/unistd.h). */
#define X32_BIT UINT32_C(0x40000000)
/* The number of a call that a tracer has skipped. It is in no list. */
#define SKIPPED UINT32_MAX

/* struct seccomp_data (linux/seccomp.h); an argument has two halves, the low one first. */
#define DATA_NUMBER offsetof(struct seccomp_data, nr)
#define DATA_ARCH offsetof(struct seccomp_data, arch)
#define DATA_IP offsetof(struct seccomp_data, instruction_pointer)
#define DATA_ARG(i) (offsetof(struct seccomp_data, args) + (i) * sizeof(uint64_t))
#define HIGH 4u

/*
 * The action for a call's number. Values from TARGET_BLOCK on are the conditions of block[target -
 * TARGET_BLOCK].
 */
enum target { TARGET_TRAP, TARGET_ALLOW, TARGET_FAIL, TARGET_KILL, TARGET_BLOCK };

#define BLOCKS_MAX 32u
#define RANGES_MAX 256u
#define NUMBERS_MAX 512u
#define FIXUPS_MAX 1024u

struct program_range {
	uint32_t begin; /* the first number; the range ends where the next one begins */
	uint8_t target;
};

/* A jump whose target has no address yet. */
struct fixup {
	uint16_t at;
	uint8_t target;
	bool when_true; /* jt, otherwise jf */
};

struct program_maker {
	struct program *p;
	const struct program_config *config;
	uint32_t kind; /* SANDBOX_KIND() */
	uint8_t target[NUMBERS_MAX];
	struct program_range range[RANGES_MAX];
	unsigned int nranges;
	uint32_t block[BLOCKS_MAX]; /* numbers with conditions */
	unsigned int nblocks;
	struct fixup fixup[FIXUPS_MAX];
	unsigned int nfixups;
	bool failed;
};

/* -- instructions ---------------------------------------------------------------------------- */

static unsigned int emit(struct program_maker *m, uint16_t code, uint32_t k)
{
	struct program *p = m->p;

	if (p->len == PROGRAM_MAX) {
		m->failed = true;
		return 0;
	}
	p->code[p->len] = (struct sock_filter){ .code = code, .k = k };
	return p->len++;
}

static void emit_load(struct program_maker *m, uint32_t off)
{
	emit(m, BPF_LD | BPF_W | BPF_ABS, off);
}

static void jump_to(struct program_maker *m, unsigned int at, bool when_true, uint8_t target)
{
	if (m->nfixups == FIXUPS_MAX)
		m->failed = true;
	else
		m->fixup[m->nfixups++] = (struct fixup){ (uint16_t)at, target, when_true };
}

/* Sets one branch of the jump at `at` to the later instruction `to`. */
static void jump_set(struct program_maker *m, unsigned int at, bool when_true, unsigned int to)
{
	struct sock_filter *f = &m->p->code[at];
	unsigned int distance = to - at - 1;

	if (distance > UINT8_MAX)
		m->failed = true;
	else if (when_true)
		f->jt = (uint8_t)distance;
	else
		f->jf = (uint8_t)distance;
}

/* Emits a comparison that continues with the next instruction, or at `target`. */
static void emit_if(struct program_maker *m, uint16_t op, uint32_t k, uint8_t target)
{
	jump_to(m, emit(m, BPF_JMP | BPF_K | op, k), true, target);
}

static void emit_unless(struct program_maker *m, uint16_t op, uint32_t k, uint8_t target)
{
	jump_to(m, emit(m, BPF_JMP | BPF_K | op, k), false, target);
}

/* Defines the target's address as here, and completes all jumps to it. */
static void program_place(struct program_maker *m, uint8_t target)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < m->nfixups; i++) {
		const struct fixup f = m->fixup[i];

		if (f.target == target)
			jump_set(m, f.at, f.when_true, m->p->len);
		else
			m->fixup[kept++] = f;
	}
	m->nfixups = kept;
}

static void program_place_return(struct program_maker *m, uint8_t target, uint32_t action)
{
	program_place(m, target);
	emit(m, BPF_RET | BPF_K, action);
}

/* -- the table ------------------------------------------------------------------------------- */

static bool in_list(const struct program_maker *m, const struct sandbox_call *c)
{
	return c->kinds & m->kind && m->config->when[c->when];
}

static uint8_t block_of(struct program_maker *m, uint32_t number)
{
	if (m->nblocks == BLOCKS_MAX) {
		m->failed = true;
		return TARGET_TRAP;
	}
	m->block[m->nblocks] = number;
	return (uint8_t)(TARGET_BLOCK + m->nblocks++);
}

/* An entry without conditions overrides those with conditions for the same call. */
static void read_table(struct program_maker *m)
{
	for (const struct sandbox_call *c = sandbox_calls; c->name; c++) {
		if (!in_list(m, c))
			continue;
		if ((uint32_t)c->number >= NUMBERS_MAX)
			m->failed = true;
		else if (c->rule == SANDBOX_ANY)
			m->target[c->number] = TARGET_ALLOW;
		else if (c->rule == SANDBOX_FAILS)
			m->target[c->number] = TARGET_FAIL;
		else if (m->target[c->number] == TARGET_TRAP)
			m->target[c->number] = block_of(m, (uint32_t)c->number);
	}
}

static void find_ranges(struct program_maker *m)
{
	for (uint32_t i = 0; i < NUMBERS_MAX; i++) {
		if (i && m->target[i] == m->target[i - 1])
			continue;
		if (m->nranges == RANGES_MAX) {
			m->failed = true;
			return;
		}
		m->range[m->nranges++] = (struct program_range){ i, m->target[i] };
	}
}

/* -- parts of the program ---------------------------------------------------------------------- */

/* Emits the test for a call that returns to config->pass. */
static void emit_pass(struct program_maker *m)
{
	uint64_t ip = m->config->pass;
	unsigned int low, high;

	emit_load(m, DATA_IP);
	low = emit(m, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)ip);
	emit_load(m, DATA_IP + HIGH);
	high = emit(m, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(ip >> 32));
	emit(m, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	jump_set(m, low, false, m->p->len);
	jump_set(m, high, false, m->p->len);
}

/* Searches range[begin..end), which has two or more entries, for the number. */
static void emit_search(struct program_maker *m, unsigned int begin, unsigned int end)
{
	unsigned int middle = begin + (end - begin) / 2;
	unsigned int at = emit(m, BPF_JMP | BPF_JGE | BPF_K, m->range[middle].begin);

	if (middle - begin == 1)
		jump_to(m, at, false, m->range[begin].target);
	else
		emit_search(m, begin, middle); /* the next instruction: jf is 0 */
	if (end - middle == 1) {
		jump_to(m, at, true, m->range[middle].target);
	} else {
		jump_set(m, at, true, m->p->len);
		emit_search(m, middle, end);
	}
}

/* Compares all 64 bits of the argument, which the kernel uses. */
static void emit_whole(struct program_maker *m, unsigned int arg, uint32_t value)
{
	emit_load(m, DATA_ARG(arg) + HIGH);
	emit_unless(m, BPF_JEQ, 0, TARGET_TRAP);
	emit_load(m, DATA_ARG(arg));
	emit_unless(m, BPF_JEQ, value, TARGET_TRAP);
}

/* Compares the lower half only, of which the kernel makes an int. */
static void emit_low(struct program_maker *m, unsigned int arg, uint32_t value)
{
	emit_load(m, DATA_ARG(arg));
	emit_unless(m, BPF_JEQ, value, TARGET_TRAP);
}

static void emit_without(struct program_maker *m, unsigned int arg, uint32_t bits)
{
	emit_load(m, DATA_ARG(arg));
	emit_if(m, BPF_JSET, bits, TARGET_TRAP);
}

/* Emits the conditions of a call's only entry, up to the last one's "else". */
static void emit_conditions(struct program_maker *m, const struct sandbox_call *c)
{
	switch (c->rule) {
	case SANDBOX_OURSELF:
		emit_whole(m, 0, m->config->pid);
		break;
	case SANDBOX_NO_EXEC:
		emit_without(m, 2, PROT_EXEC);
		break;
	case SANDBOX_SELF:
		emit_low(m, 0, 0);
		break;
	case SANDBOX_NO_WAIT:
		emit_low(m, 2, WNOHANG);
		break;
	case SANDBOX_COUNT:
		emit_low(m, 1, 0);
		emit_low(m, 2, UINT32_MAX);
		emit_low(m, 3, UINT32_MAX);
		break;
	case SANDBOX_NO_PATH:
		emit_whole(m, 1, 0);
		break;
	default: /* one of emit_values() */
		m->failed = true;
	}
	emit(m, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

static bool is_value(const struct sandbox_call *c)
{
	return c->rule == SANDBOX_REQUEST || c->rule == SANDBOX_SECOND || c->rule == SANDBOX_FIRST;
}

/* Returns whether an entry of this call allows the value, whatever the other arguments are. */
static bool has_value(const struct program_maker *m, uint32_t number, uint32_t value)
{
	for (const struct sandbox_call *c = sandbox_calls; c->name; c++)
		if (in_list(m, c) && (uint32_t)c->number == number && is_value(c) &&
		    c->value == value)
			return true;
	return false;
}

/*
 * Emits the comparisons for ioctl(2), fcntl(2), ptrace(2) and socket(2), where one argument selects
 * the operation.
 */
static void emit_values(struct program_maker *m, uint32_t number)
{
	bool first = false, setfl = false;

	for (const struct sandbox_call *c = sandbox_calls; c->name; c++)
		if (in_list(m, c) && (uint32_t)c->number == number) {
			first |= c->rule == SANDBOX_FIRST;
			setfl |= c->rule == SANDBOX_SETFL;
			m->failed |= !is_value(c) && c->rule != SANDBOX_SETFL;
		}
	if (first) {
		emit_load(m, DATA_ARG(0) + HIGH);
		emit_unless(m, BPF_JEQ, 0, TARGET_TRAP);
	}
	emit_load(m, DATA_ARG(first ? 0 : 1));
	/* Each VM exit ends with this request, so it comes first. */
	if (number == SYS_ioctl && has_value(m, number, KVM_RUN))
		emit_if(m, BPF_JEQ, KVM_RUN, TARGET_ALLOW);
	for (const struct sandbox_call *c = sandbox_calls; c->name; c++)
		if (in_list(m, c) && (uint32_t)c->number == number && is_value(c) &&
		    !(number == SYS_ioctl && c->value == KVM_RUN)) {
			/* No call has both kinds of arguments. */
			m->failed |= first != (c->rule == SANDBOX_FIRST);
			emit_if(m, BPF_JEQ, c->value, TARGET_ALLOW);
		}
	if (setfl) {
		emit_unless(m, BPF_JEQ, F_SETFL, TARGET_TRAP);
		emit_without(m, 2, O_ASYNC);
		emit(m, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	} else {
		emit(m, BPF_RET | BPF_K, SECCOMP_RET_TRAP);
	}
}

static void emit_block(struct program_maker *m, uint32_t number)
{
	const struct sandbox_call *only = NULL;
	unsigned int n = 0;

	program_place(m, m->target[number]);
	for (const struct sandbox_call *c = sandbox_calls; c->name; c++)
		if (in_list(m, c) && (uint32_t)c->number == number) {
			only = c;
			n++;
		}
	if (n == 1 && !is_value(only) && only->rule != SANDBOX_SETFL)
		emit_conditions(m, only);
	else
		emit_values(m, number);
}

int program_make(enum thread_kind kind, const struct program_config *config, struct program *out)
{
	struct program_maker m = { .p = out, .config = config, .kind = SANDBOX_KIND(kind) };
	unsigned int at;

	out->len = 0;
	read_table(&m);
	find_ranges(&m);
	if (config->pass)
		emit_pass(&m);
	emit_load(&m, DATA_ARCH);
	emit_unless(&m, BPF_JEQ, AUDIT_ARCH_X86_64, TARGET_KILL);
	emit_load(&m, DATA_NUMBER);
	if (m.target[SYS_ioctl] != TARGET_TRAP)
		emit_if(&m, BPF_JEQ, SYS_ioctl, m.target[SYS_ioctl]);
	at = emit(&m, BPF_JMP | BPF_JGE | BPF_K, X32_BIT);
	jump_set(&m, at, false, at + 3);
	emit_if(&m, BPF_JEQ, SKIPPED, TARGET_TRAP);
	emit(&m, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	if (m.nranges > 1)
		emit_search(&m, 0, m.nranges);
	else
		emit(&m, BPF_RET | BPF_K, SECCOMP_RET_TRAP);
	for (unsigned int i = 0; i < m.nblocks; i++)
		if (m.target[m.block[i]] >= TARGET_BLOCK)
			emit_block(&m, m.block[i]);
	program_place_return(&m, TARGET_ALLOW, SECCOMP_RET_ALLOW);
	program_place_return(&m, TARGET_TRAP, SECCOMP_RET_TRAP);
	program_place_return(&m, TARGET_FAIL, SECCOMP_RET_ERRNO | EACCES);
	program_place_return(&m, TARGET_KILL, SECCOMP_RET_KILL_PROCESS);
	return m.failed || m.nfixups ? -E2BIG : 0;
}
