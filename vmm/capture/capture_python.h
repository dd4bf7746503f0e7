/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capture_python: copies the frames of Python's interpreter with a sample. */
#ifndef KVMPROF_VMM_CAPTURE_CAPTURE_PYTHON_H
#define KVMPROF_VMM_CAPTURE_CAPTURE_PYTHON_H

#include "base/capture_plan.h"

#include <stdint.h>

struct capture_view;
struct sample;
struct vcpu;
struct vm;

/*
 * The first two functions make samples of a program's threads include the frames of Python's
 * interpreter. One thread, the consumer's, calls them before vm_join(). vCPU threads may sample at
 * the same time.
 */
#define VM_PYTHON_THREADS 4096u
/* Adds a copy of *layout. Returns its number, -ENOSPC after CAPTURE_PYTHON_LAYOUTS, or -ENOMEM. */
int capture_python_find_layout(struct vm *vm, const struct capture_python_layout *layout);
/*
 * Records where the interpreter keeps the state of a thread. t->mm (as in struct sample_task) and
 * t->fs_base identify the thread, and t->tstate is the address of its state. The table has
 * VM_PYTHON_THREADS entries; an entry may replace another one with the same hash.
 */
void capture_python_find_thread(struct vm *vm, const struct capture_python_thread *t);

/*
 * Appends to *s the frames of Python's interpreter, if the task of the sample is a known thread. s
 * needs room for SAMPLE_MAX_PYTHON_BYTES. Called by capture while the vCPU is stopped.
 */
void capture_python(const struct vcpu *v, const struct capture_view *w, struct sample *s);

#endif
