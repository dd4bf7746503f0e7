/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_start: recognises the code with which a program or a thread begins.
 *
 * Such code is the outermost frame: it has no caller. It is recognised by what it does after the
 * function that it called has returned, or by how it calls:
 *
 *	hlt				a program may not: it never gets there (glibc's _start)
 *	exit(result), hlt		the same, older
 *	mov %rax,%rdi; mov $60,%eax; syscall	the result ends the thread (clone, clone3);
 *					231 ends the program
 *	xor %rbp,%rbp ... and $-16,%rsp; call	no other code does both (musl's _start)
 *	mov %rsp,%rdi; call		at the stack that the kernel made (ld.so's _start)
 *
 * Only for unwind_user.c. No state of its own: called by the thread that uses the walk.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_USER_START_H
#define KVMPROF_SYMBOLIZER_UNWIND_USER_START_H

#include "symbolizer/unwind/walk.h"

/* Returns whether the return address `ret` is in such code. rsp is its value after the return. */
bool user_start_is(const struct walk *w, uint64_t ret, uint64_t rsp);

/*
 * Returns whether such code is directly above the frame of the function at rip, whose stack is at
 * rsp, with at most one return address in between. Then at most one function is missing, which is
 * the C library's: the caller of main(), or of a thread's function. Return addresses of direct
 * calls of other functions do not count: they are left over from calls that have returned.
 */
bool user_start_is_near(const struct walk *w, uint64_t rip, uint64_t rsp);

#endif
