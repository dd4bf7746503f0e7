/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs of program.h decide as those that libseccomp makes of the same table. Both are interpreted, for each kind of
 * thread, with arguments that are near those of the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "profile/record/sandbox/program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/kvm.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PID 4242u
#define CODE_MAX 4096u
#define NUMBERS 600u
#define TUPLES 1500u
/* Which of enum sandbox_when are in force besides SANDBOX_ALWAYS. */
#define WHENS 5u
static const unsigned int whens[WHENS] = { 0, 1u << SANDBOX_QEMU, 1u << SANDBOX_GDB,
					   1u << SANDBOX_COUNTERS, ~0u };

struct code {
	size_t len;
	struct sock_filter f[CODE_MAX];
};

/* -- an interpreter -------------------------------------------------------------------------- */

static bool jumps(const struct sock_filter *f, uint32_t a)
{
	switch (BPF_OP(f->code)) {
	case BPF_JEQ:
		return a == f->k;
	case BPF_JGE:
		return a >= f->k;
	case BPF_JGT:
		return a > f->k;
	case BPF_JSET:
		return a & f->k;
	}
	fail_msg("jump 0x%x", f->code);
	return false;
}

/* Returns the action; *steps is the number of instructions. */
static uint32_t run(const struct sock_filter *f, size_t len, const struct seccomp_data *d,
		    unsigned int *steps)
{
	uint32_t a = 0;

	*steps = 0;
	for (size_t at = 0; at < len; at++) {
		++*steps;
		switch (f[at].code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(f[at].k + sizeof(a) <= sizeof(*d));
			memcpy(&a, (const char *)d + f[at].k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f[at].k;
			break;
		case BPF_JMP | BPF_JA:
			at += f[at].k;
			break;
		case BPF_RET | BPF_K:
			return f[at].k;
		default:
			at += jumps(&f[at], a) ? f[at].jt : f[at].jf;
		}
	}
	fail_msg("a program ends without an action");
	return 0;
}

/* -- libseccomp's program ---------------------------------------------------------------------- */

#define LOW(v) UINT32_MAX, (uint32_t)(v)
#define ADD(action, n, ...) seccomp_rule_add(ctx, action, c->number, n, ##__VA_ARGS__)

static int add(scmp_filter_ctx ctx, const struct sandbox_call *c)
{
	switch (c->rule) {
	case SANDBOX_ANY:
		return ADD(SCMP_ACT_ALLOW, 0);
	case SANDBOX_REQUEST:
	case SANDBOX_SECOND:
		return ADD(SCMP_ACT_ALLOW, 1, SCMP_A1(SCMP_CMP_MASKED_EQ, LOW(c->value)));
	case SANDBOX_OURSELF:
		return ADD(SCMP_ACT_ALLOW, 1, SCMP_A0(SCMP_CMP_EQ, PID, 0));
	case SANDBOX_NO_EXEC:
		return ADD(SCMP_ACT_ALLOW, 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	case SANDBOX_FIRST:
		return ADD(SCMP_ACT_ALLOW, 1, SCMP_A0(SCMP_CMP_EQ, c->value, 0));
	case SANDBOX_SELF:
		return ADD(SCMP_ACT_ALLOW, 1, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW(0)));
	case SANDBOX_SETFL:
		return ADD(SCMP_ACT_ALLOW, 2, SCMP_A1(SCMP_CMP_MASKED_EQ, LOW(F_SETFL)),
			   SCMP_A2(SCMP_CMP_MASKED_EQ, O_ASYNC, 0));
	case SANDBOX_NO_WAIT:
		return ADD(SCMP_ACT_ALLOW, 1, SCMP_A2(SCMP_CMP_MASKED_EQ, LOW(WNOHANG)));
	case SANDBOX_COUNT:
		return ADD(SCMP_ACT_ALLOW, 3, SCMP_A1(SCMP_CMP_MASKED_EQ, LOW(0)),
			   SCMP_A2(SCMP_CMP_MASKED_EQ, LOW(-1)),
			   SCMP_A3(SCMP_CMP_MASKED_EQ, LOW(-1)));
	case SANDBOX_FAILS:
		return ADD(SCMP_ACT_ERRNO(EACCES), 0);
	case SANDBOX_NO_PATH:
		return ADD(SCMP_ACT_ALLOW, 1, SCMP_A1(SCMP_CMP_EQ, 0, 0));
	}
	return -EINVAL;
}

static bool in_force(const struct sandbox_call *c, enum thread_kind kind, unsigned int when)
{
	return c->kinds & SANDBOX_KIND(kind) && (c->when == SANDBOX_ALWAYS || when & 1u << c->when);
}

static void reference(enum thread_kind kind, unsigned int when, struct code *out)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_TRAP);
	cleanup_close int fd = memfd_create("reference", MFD_CLOEXEC);
	ssize_t n;

	assert_non_null(ctx);
	assert_true(fd >= 0);
	/* The whole process ends, as with our own programs; libseccomp alone would end the thread. */
	assert_int_equal(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), 0);
	for (const struct sandbox_call *c = sandbox_calls; c->name; c++)
		if (in_force(c, kind, when))
			assert_int_equal(add(ctx, c), 0);
	assert_int_equal(seccomp_export_bpf(ctx, fd), 0);
	seccomp_release(ctx);
	n = pread(fd, out->f, sizeof(out->f), 0);
	assert_true(n > 0 && (size_t)n < sizeof(out->f));
	out->len = (size_t)n / sizeof(*out->f);
}

/* -- calls that are tried ---------------------------------------------------------------------- */

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % n;
}

/* A value of the table, or one near to what conditions have, with or without an upper half. */
static uint64_t random_argument(uint32_t number)
{
	static const uint32_t near[] = { 0,	     1,
					 PID,	     PID + 1,
					 PROT_EXEC,  PROT_READ | PROT_EXEC,
					 O_ASYNC,    O_NONBLOCK,
					 F_SETFL,    UINT32_MAX,
					 PROT_WRITE, WNOHANG | 2,
					 KVM_RUN,    KVM_CREATE_VM };
	uint32_t values = 0, pick;
	uint64_t v = 0;

	for (const struct sandbox_call *c = sandbox_calls; c->name; c++)
		values += (uint32_t)c->number == number;
	pick = random_below(2 * values + ARRAY_SIZE(near));
	if (pick >= 2 * values)
		v = near[pick - 2 * values];
	else
		for (const struct sandbox_call *c = sandbox_calls; c->name; c++)
			if ((uint32_t)c->number == number && pick-- / 2 == 0) {
				v = c->value;
				break;
			}
	if (!random_below(4))
		v |= (uint64_t)(random_below(2) ? UINT32_MAX : 1) << 32;
	return v;
}

static bool has_conditions(uint32_t number)
{
	for (const struct sandbox_call *c = sandbox_calls; c->name; c++)
		if ((uint32_t)c->number == number && c->rule != SANDBOX_ANY)
			return true;
	return false;
}

static struct program_config config_of(unsigned int when)
{
	struct program_config config = { .pid = PID };

	for (unsigned int i = 0; i < SANDBOX_WHEN_MAX; i++)
		config.when[i] = i == SANDBOX_ALWAYS || when & 1u << i;
	return config;
}

struct seen {
	unsigned int allowed, trapped, failed, killed;
};

static void compare(const struct program *p, const struct code *ref, const struct seccomp_data *d,
		    struct seen *seen)
{
	unsigned int steps;
	uint32_t want = run(ref->f, ref->len, d, &steps);
	uint32_t is = run(p->code, p->len, d, &steps);

	if (is != want)
		fail_msg("call %d of 0x%x (0x%llx, 0x%llx, 0x%llx, 0x%llx): 0x%x, not 0x%x", d->nr,
			 d->arch, d->args[0], d->args[1], d->args[2], d->args[3], is, want);
	seen->allowed += is == SECCOMP_RET_ALLOW;
	seen->trapped += is == SECCOMP_RET_TRAP;
	seen->failed += is == (SECCOMP_RET_ERRNO | EACCES);
	seen->killed += is == SECCOMP_RET_KILL_PROCESS;
}

static void compare_kind(enum thread_kind kind, unsigned int when, struct seen *seen)
{
	static const uint32_t odd[] = { UINT32_MAX, UINT32_MAX - 1,
					0x40000000, 0x40000000 + SYS_write,
					0x3fffffff, 0x7fffffff };
	const struct program_config config = config_of(when);
	struct seccomp_data d = { .arch = AUDIT_ARCH_X86_64 };
	static struct program p;
	static struct code ref;

	assert_int_equal(program_make(kind, &config, &p), 0);
	reference(kind, when, &ref);
	for (uint32_t nr = 0; nr < NUMBERS + ARRAY_SIZE(odd); nr++) {
		unsigned int tuples = has_conditions(nr) ? TUPLES : 4;

		d.nr = (int)(nr < NUMBERS ? nr : odd[nr - NUMBERS]);
		for (unsigned int i = 0; i < tuples; i++) {
			for (unsigned int arg = 0; arg < 6; arg++)
				d.args[arg] = random_argument(nr);
			compare(&p, &ref, &d, seen);
		}
		d.arch = AUDIT_ARCH_I386;
		compare(&p, &ref, &d, seen);
		d.arch = AUDIT_ARCH_X86_64;
	}
}

static void test_as_libseccomp(void **state)
{
	struct seen seen = { 0 };
	unsigned int kinds = 0;

	(void)state;
	for (unsigned int kind = 0; kind < THREAD_KINDS; kind++) {
		if (!sandbox_has_list(kind))
			continue;
		kinds++;
		for (unsigned int i = 0; i < WHENS; i++)
			compare_kind(kind, whens[i], &seen);
	}
	print_message("%u kinds of threads: %u calls allowed, %u trapped, %u failed, %u killed\n",
		      kinds, seen.allowed, seen.trapped, seen.failed, seen.killed);
	assert_true(kinds > 20 && seen.allowed > 10000 && seen.trapped > 10000 && seen.failed &&
		    seen.killed > 1000);
}

/* -- what the kernel makes of them -------------------------------------------------------------- */

/* Calls whose entries have no conditions must depend on the number alone: the kernel then remembers that they are allowed. */
static void test_shape(void **state)
{
	const struct program_config config = config_of(~0u);
	struct seccomp_data d = { .arch = AUDIT_ARCH_X86_64 };
	struct program p;
	unsigned int steps;

	(void)state;
	for (unsigned int kind = 0; kind < THREAD_KINDS; kind++) {
		if (!sandbox_has_list(kind))
			continue;
		assert_int_equal(program_make(kind, &config, &p), 0);
		for (unsigned int i = 0; i < p.len;
		     i++) /* seccomp_is_const_allow() follows these */
			switch (p.code[i].code) {
			case BPF_LD | BPF_W | BPF_ABS:
			case BPF_RET | BPF_K:
			case BPF_JMP | BPF_JEQ | BPF_K:
			case BPF_JMP | BPF_JGE | BPF_K:
			case BPF_JMP | BPF_JSET | BPF_K:
				break;
			default:
				fail_msg("instruction 0x%x", p.code[i].code);
			}
		for (d.nr = 0; d.nr < (int)NUMBERS; d.nr++)
			if (!has_conditions((uint32_t)d.nr)) {
				run(p.code, p.len, &d, &steps);
				assert_in_range(steps, 1, 16);
			}
	}
	assert_int_equal(program_make(THREAD_VCPU, &config, &p), 0);
	d.nr = SYS_ioctl;
	d.args[1] = KVM_RUN;
	assert_int_equal(run(p.code, p.len, &d, &steps), SECCOMP_RET_ALLOW);
	assert_in_range(steps, 1, 7);
}

/* A thread whose calls are only watched makes them from one place. */
static void test_pass(void **state)
{
	struct program_config config = config_of(0);
	struct seccomp_data d = { .arch = AUDIT_ARCH_X86_64, .nr = SYS_execve };
	const uint64_t at = UINT64_C(0x555512345678);
	struct program p;
	unsigned int steps;

	(void)state;
	config.pass = at;
	for (unsigned int kind = 0; kind < THREAD_KINDS; kind++) {
		if (!sandbox_has_list(kind))
			continue;
		assert_int_equal(program_make(kind, &config, &p), 0);
		d.instruction_pointer = at;
		assert_int_equal(run(p.code, p.len, &d, &steps), SECCOMP_RET_ALLOW);
		d.instruction_pointer = at + 1;
		assert_int_equal(run(p.code, p.len, &d, &steps), SECCOMP_RET_TRAP);
		d.instruction_pointer = at ^ UINT64_C(1) << 32;
		assert_int_equal(run(p.code, p.len, &d, &steps), SECCOMP_RET_TRAP);
	}
	config.pass = 0;
	assert_int_equal(program_make(THREAD_MAIN, &config, &p), 0);
	d.instruction_pointer = 0;
	assert_int_equal(run(p.code, p.len, &d, &steps), SECCOMP_RET_TRAP);
}

/* The host's kernel takes each of them. */
static void test_loaded(void **state)
{
	const struct program_config config = config_of(~0u);
	struct program p;

	(void)state;
	for (unsigned int kind = 0; kind < THREAD_KINDS; kind++) {
		struct sock_fprog program = { 0, p.code };
		int status = -1;
		pid_t pid;

		if (!sandbox_has_list(kind))
			continue;
		assert_int_equal(program_make(kind, &config, &p), 0);
		program.len = p.len;
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			long ret = syscall(SYS_prctl, 38 /* PR_SET_NO_NEW_PRIVS */, 1, 0, 0, 0);

			ret = ret ? ret
				  : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
			/* The sanitizers' _exit() makes calls that are in no list. */
			syscall(SYS_exit_group, ret ? 3 : 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_libseccomp),
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_pass),
		cmocka_unit_test(test_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
