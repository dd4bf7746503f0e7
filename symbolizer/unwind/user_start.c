/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/unwind/user_start.h"

#include "base/linux_regs.h"
#include "symbolizer/core/insn.h"
#include "symbolizer/unwind/unwind_user.h"

#include <string.h>

/* System calls of x86-64, arch/x86/entry/syscalls/syscall_64.tbl. */
#define SYSCALL_EXIT 60u
#define SYSCALL_EXIT_GROUP 231u

#define MAX_INSNS 6u /* from the return to the end */
/* Bytes of two frames of the C library: __libc_start_call_main() and __libc_start_main(). */
#define NEAR_BYTES 512u
#define FUNCTION_BYTES 1024u /* each of these two is far shorter */
#define PROGRAM_MIN 4096u
#define PROGRAM_END (UINT64_C(1) << LINUX_USER_BITS)

/* Recognises mov %eax,%edi or mov %rax,%rdi: the result becomes an argument. */
static bool passes_result(const uint8_t *p, size_t n)
{
	return (n >= 2 && p[0] == 0x89 && p[1] == 0xc7) ||
	       (n >= 3 && p[0] == 0x48 && p[1] == 0x89 && p[2] == 0xc7);
}

/* Returns whether the program or the thread ends straight after ret. */
static bool ends_there(const uint8_t *p, size_t n, uint64_t ret)
{
	bool passes = passes_result(p, n), called = false;
	uint32_t eax = UINT32_MAX;
	size_t at = 0;

	for (unsigned int k = 0; k < MAX_INSNS && at < n; k++) {
		struct insn i;

		if (p[at] == 0xf4) /* hlt */
			return !called || passes;
		if (n - at >= 2 && p[at] == 0x0f && p[at + 1] == 0x05) /* syscall */
			return passes && !called &&
			       (eax == SYSCALL_EXIT || eax == SYSCALL_EXIT_GROUP);
		if (!insn_decode(&i, ret + at, p + at, n - at))
			return false;
		if (p[at] == 0xb8 && i.len == 5) /* mov $number,%eax */
			memcpy(&eax, p + at + 1, 4);
		if (i.kind == INSN_CALL || i.kind == INSN_CALL_IND)
			called = true;
		else if (i.kind != INSN_OTHER && i.kind != INSN_RSP_ADD)
			return false;
		at += i.len;
	}
	return false;
}

/* Searches the n bytes for xor %rbp,%rbp in one of its forms without REX.R and REX.B. */
static bool clears_rbp(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i + 2 <= n; i++)
		if ((p[i] == 0x31 || p[i] == 0x33) && p[i + 1] == 0xed)
			return true;
	return false;
}

/*
 * Returns whether rsp points to what the kernel passes to a program: argc, that many addresses of
 * arguments, 0.
 */
static bool is_initial_stack(const struct walk *w, uint64_t rsp)
{
	uint64_t argc, first, end;

	return walk_read(w, rsp, &argc, 8) >= 0 && argc >= 1 && argc <= 65536 &&
	       walk_read(w, rsp + 8, &first, 8) >= 0 && first > rsp + 8 * argc &&
	       first < PROGRAM_END && walk_read(w, rsp + 8 + 8 * argc, &end, 8) >= 0 && end == 0;
}

static bool begins_there(const struct walk *w, const uint8_t *p, size_t n, uint64_t rsp)
{
	static const uint8_t aligned[5] = { 0x48, 0x83, 0xe4, 0xf0, 0xe8 };
	static const uint8_t passed[4] = { 0x48, 0x89, 0xe7, 0xe8 };

	if (n >= 9 && !memcmp(p + n - 9, aligned, sizeof(aligned)))
		return clears_rbp(p, n - 9);
	return n >= 8 && !memcmp(p + n - 8, passed, sizeof(passed)) && is_initial_stack(w, rsp);
}

bool user_start_is(const struct walk *w, uint64_t ret, uint64_t rsp)
{
	uint8_t p[48];
	size_t n = w->u->read_text(w->u->ctx, ret, p, sizeof(p));

	if (ends_there(p, n < sizeof(p) ? n : sizeof(p), ret))
		return true;
	n = 32;
	return w->u->read_text(w->u->ctx, ret - n, p, n) == n && begins_there(w, p, n, rsp);
}

/*
 * A direct call says where it led to: it made this frame only if that is the function at rip,
 * or the stub of a linkage table through which that is reached.
 */
static bool may_be_caller(const struct walk *w, uint64_t target, uint64_t rip)
{
	uint64_t slot, function;

	if (!target || rip - target < FUNCTION_BYTES)
		return true;
	return walk_linkage_stub(w, target, &slot) &&
	       (w->u->read_text(w->u->ctx, slot, &function, 8) < 8 ||
		rip - function < FUNCTION_BYTES);
}

bool user_start_is_near(const struct walk *w, uint64_t rip, uint64_t rsp)
{
	unsigned int returns = 0;

	for (uint64_t at = (rsp + 7) & ~UINT64_C(7); at - rsp < NEAR_BYTES && returns < 2;
	     at += 8) {
		uint64_t ret, target;

		if (walk_read(w, at, &ret, 8) < 0)
			return false;
		/* Most words are numbers. */
		if (ret < PROGRAM_MIN || ret >= PROGRAM_END || !walk_is_return(w, ret, &target))
			continue;
		/* A frame's unused words keep return addresses of calls that are over. */
		if (!may_be_caller(w, target, rip))
			continue;
		if (user_start_is(w, ret, at + 8))
			return true;
		rip = ret;
		returns++;
	}
	return false;
}
