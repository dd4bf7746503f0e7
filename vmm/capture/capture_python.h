/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capture_python: frames of Python's interpreter, copied with a sample. */
#ifndef KVMPROF_VMM_CAPTURE_CAPTURE_PYTHON_H
#define KVMPROF_VMM_CAPTURE_CAPTURE_PYTHON_H

#include "base/capture_plan.h"

#include <stdint.h>

struct capture_view;
struct sample;
struct vcpu;
struct vm;

/*
 * Copy the frames of Python's interpreter with each sample of these threads. One thread, not
 * after vm_join(). capture_python_find_layout(): number of the layout, or -ENOSPC after
 * CAPTURE_PYTHON_LAYOUTS, or -ENOMEM. capture_python_find_thread(): the thread of the program with this mm (as in
 * struct sample_task) whose fs_base is this has its state at tstate; it takes the place of
 * another one when VM_PYTHON_THREADS are known.
 */
#define VM_PYTHON_THREADS 4096u
int capture_python_find_layout(struct vm *vm, const struct capture_python_layout *layout);
void capture_python_find_thread(struct vm *vm, const struct capture_python_thread *t);

/* Frames of Python's interpreter. Needs room for SAMPLE_MAX_PYTHON_BYTES. */
void capture_python(const struct vcpu *v, const struct capture_view *w, struct sample *s);

#endif
