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
 * The first two functions make samples of these threads include the frames of Python's
 * interpreter. One thread calls them (the consumer's), before vm_join(). vCPU threads may sample
 * at the same time.
 *
 * capture_python_find_layout() adds a copy of *layout and returns its number, -ENOSPC after
 * CAPTURE_PYTHON_LAYOUTS, or -ENOMEM. capture_python_find_thread() records where the interpreter's
 * state of a thread is: the thread is identified by t->mm (as in struct sample_task) and
 * t->fs_base, its state is at t->tstate. The table has VM_PYTHON_THREADS entries; an entry may
 * replace another one with the same hash.
 */
#define VM_PYTHON_THREADS 4096u
int capture_python_find_layout(struct vm *vm, const struct capture_python_layout *layout);
void capture_python_find_thread(struct vm *vm, const struct capture_python_thread *t);

/*
 * Appends to *s the frames of Python's interpreter, if the task of the sample is a known thread. s
 * needs room for SAMPLE_MAX_PYTHON_BYTES. Called by capture while the vCPU is stopped.
 */
void capture_python(const struct vcpu *v, const struct capture_view *w, struct sample *s);

#endif
