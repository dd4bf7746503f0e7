/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_special: handles frames that no table describes: those of traced functions, signals and
 * HotSpot. Only for files in this folder.
 */
#ifndef KVMPROF_SYMBOLIZER_UNWIND_UNWIND_SPECIAL_H
#define KVMPROF_SYMBOLIZER_UNWIND_UNWIND_SPECIAL_H

#include "symbolizer/unwind/walk.h"

/*
 * Replaces *ret, which was read at address `at`, by the function's original return address if it
 * is the address of a tracer. The function graph tracer replaces a return address by
 * return_to_handler, and a return probe by its trampoline. *ret is unchanged if the original is
 * unknown.
 */
void walk_traced(const struct walk *w, uint64_t at, uint64_t *ret);
/* Returns whether va is in return_to_handler. */
bool walk_in_handler(const struct walk *w, uint64_t va);
/*
 * Continues from return_to_handler, in which r is, at the place to which the traced function
 * returns. Returns STEP_UNKNOWN if that is not known.
 */
enum step walk_from_handler(struct walk *w, struct scan_regs *r);

/*
 * Returns whether the interpreter of a Java machine continues at ret, where a method returns to
 * it. rbp is then its frame.
 */
bool walk_java_return(const struct walk *w, uint64_t ret);
/*
 * Stores the caller's rsp in *rsp and returns true if the frame at fp can be the interpreter's.
 * calls: it has called a method.
 */
bool walk_java_sender(const struct walk *w, uint64_t fp, bool calls, uint64_t *rsp);

/*
 * Returns whether a signal handler returns to ret, judged by the code there, and then sets
 * w->signal_return.
 */
bool walk_signal_return(struct walk *w, uint64_t ret);
/* Returns whether rip is in such code, or after its system call. */
bool walk_signal_interrupted(const struct walk *w, uint64_t rip);
/*
 * Continues at the place that the signal has interrupted; w->regs must be in such code. Never
 * returns STEP_UNKNOWN.
 */
enum step walk_from_signal(struct walk *w);

#endif
