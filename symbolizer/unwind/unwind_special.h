/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind_special: frames that no table describes: of traced functions, signals and HotSpot. */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND_SPECIAL_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND_SPECIAL_H

#include "symbolizer/unwind/walk.h"

/*
 * The function graph tracer puts the address of return_to_handler in the place of
 * the one that a function returns to, and a return probe that of its trampoline. *ret was read at
 * `at`: is it one of these, then it becomes the function's own, where that is known.
 */
void walk_traced(const struct walk *w, uint64_t at, uint64_t *ret);
/* Is va in return_to_handler? */
bool walk_in_handler(const struct walk *w, uint64_t va);
/*
 * r is in return_to_handler: go on where the function returns to for which it was reached.
 * STEP_UNKNOWN: that is not known.
 */
enum step walk_from_handler(struct walk *w, struct scan_regs *r);

/*
 * Does the interpreter of a Java machine go on at ret, where a method returns to it?
 * Then rbp is its frame there.
 */
bool walk_java_return(const struct walk *w, uint64_t ret);
/* The caller's rsp, if the frame at fp can be the interpreter's; calls: it has called a method. */
bool walk_java_sender(const struct walk *w, uint64_t fp, bool calls, uint64_t *rsp);

/* Does a signal's handler return to ret, by the code that is there? Then it is w->signal_return. */
bool walk_signal_return(struct walk *w, uint64_t ret);
/* Is rip in such code, or behind its system call? */
bool walk_signal_interrupted(const struct walk *w, uint64_t rip);
/* w->regs are in such code: go on at the interrupted place. Never STEP_UNKNOWN. */
enum step walk_from_signal(struct walk *w);

#endif
