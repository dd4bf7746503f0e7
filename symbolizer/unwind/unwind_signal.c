/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way from a signal's handler to what it has interrupted, told by code alone.
 *
 * The handler returns to a few instructions that ask the kernel to go on, rt_sigreturn(2). The GNU C
 * library has call frame information for them; musl has none, and Go's runtime says of the function
 * that returns there that it has no caller. The kernel knows no other way (SA_RESTORER):
 *
 *	mov $15, %rax	(or %eax)
 *	syscall
 *
 * rsp is the address of a struct ucontext there, with all registers of the interrupted place.
 * Sources: arch/x86/kernel/signal_64.c, arch/x86/include/uapi/asm/ucontext.h and sigcontext.h.
 */
#include "symbolizer/unwind/walk.h"

#include <string.h>

#define UCONTEXT_MCONTEXT 40u /* uc_flags, uc_link, uc_stack before it */
#define SYSCALL_LEN 2u

/* struct sigcontext, as far as we need it. */
static const uint8_t of_sigcontext[] = {
	CFI_R8,	 CFI_R9,  CFI_R10, CFI_R11, CFI_R12, CFI_R13, CFI_R14, CFI_R15, CFI_RDI,
	CFI_RSI, CFI_RBP, CFI_RBX, CFI_RDX, CFI_RAX, CFI_RCX, CFI_RSP, CFI_RIP,
};

static const uint8_t long_form[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t short_form[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };

#define LONGEST sizeof(long_form)

static bool signal_code(const uint8_t *p)
{
	return !memcmp(p, long_form, sizeof(long_form)) ||
	       !memcmp(p, short_form, sizeof(short_form));
}

bool walk_signal_return(struct walk *w, uint64_t ret)
{
	uint8_t p[LONGEST] = { 0 };

	if (!w->program || w->u->read_text(w->u->ctx, ret, p, sizeof(p)) < sizeof(short_form) ||
	    !signal_code(p))
		return false;
	w->signal_return = ret;
	return true;
}

bool walk_signal_interrupted(const struct walk *w, uint64_t rip)
{
	/* Of this or that form: at its first instruction, at its system call, or behind that. */
	static const uint8_t done[] = { 0, sizeof(long_form) - SYSCALL_LEN, sizeof(long_form),
					sizeof(short_form) - SYSCALL_LEN, sizeof(short_form) };
	uint8_t p[2 * LONGEST] = { 0 };
	size_t n = w->u->read_text(w->u->ctx, rip - LONGEST, p, sizeof(p));

	for (unsigned int i = 0; n >= LONGEST && i < sizeof(done); i++)
		if (signal_code(p + LONGEST - done[i]))
			return true;
	return false;
}

enum step walk_from_signal(struct walk *w)
{
	uint64_t at = w->regs.r[CFI_RSP] + UCONTEXT_MCONTEXT, value[sizeof(of_sigcontext)];
	struct cfi_regs next = { .known = 0 };
	enum step st;

	if (walk_read(w, at, value, sizeof(value)) < 0)
		return walk_finish(w, walk_missing(w, at + sizeof(value) - 1));
	for (unsigned int i = 0; i < sizeof(of_sigcontext); i++)
		cfi_set(&next, of_sigcontext[i], value[i]);
	st = walk_interrupted(w, &next);
	return st == STEP_UNKNOWN ? walk_finish(w, STACK_END_BAD_CHAIN) : st;
}
