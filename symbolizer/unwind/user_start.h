/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_start: is it the code that a program or a thread begins with?
 *
 * Such code is the outermost frame: nobody called it. Evidence is what it does with
 * the return of what it called, or how it calls:
 *
 *	hlt				a program may not: it never gets there (glibc's _start)
 *	exit(result), hlt		the same, older
 *	mov %rax,%rdi; mov $60,%eax; syscall	the result ends the thread (clone, clone3);
 *					231 ends the program
 *	xor %rbp,%rbp ... and $-16,%rsp; call	both are done by nobody else (musl's _start)
 *	mov %rsp,%rdi; call		at the stack that the kernel made (ld.so's _start)
 *
 * Inside of unwind_user.c; not for others.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_USER_START_H
#define KVMPROF_SYMBOLIZER_UNWIND_USER_START_H

#include "symbolizer/unwind/walk.h"

/* Is `ret`, the return address of a call, in such code? rsp: after the return. */
bool user_start_is(const struct walk *w, uint64_t ret, uint64_t rsp);

/*
 * Does such code lie right above the frame of the function at rip, whose stack is at rsp, with
 * one return address in between at most? Then no more than one function is missing, and it is
 * the C library's: what calls main(), or a thread's function. Return addresses of direct calls
 * of other functions do not count: they are left over from calls that have returned.
 */
bool user_start_is_near(const struct walk *w, uint64_t rip, uint64_t rsp);

#endif
