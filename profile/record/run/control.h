/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_control: what requests to the control socket do to a run (docs/control.md).
 *
 * Requests are answered on the server's thread, which asks the machine through vmm/control.h; what
 * needs the profile is a job for the pipeline's consumer. All functions here are for the
 * main thread, where it says nothing else.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_CONTROL_H
#define KVMPROF_PROFILE_RECORD_RUN_CONTROL_H

#include "base/err.h"

#include <stdint.h>

#define RUN_CONTROL_MAX_CHANGES 4096u

struct json_writer;
struct run;
struct run_control;

/* Listen at path, see control_listen(): before there are other threads. Nothing is answered yet. */
int run_control_open(struct run_control **out, const char *path, struct err *e);
/* The run goes on: answer. r must stay until run_control_stop(). */
int run_control_start(struct run_control *c, struct run *r, struct err *e);
/* Answer no more; before pipeline_finish(). What was changed stays. NULL is fine, and twice. */
void run_control_stop(struct run_control *c);
void run_control_destroy(struct run_control *c);
/* Of its socket. */
const char *run_control_path(const struct run_control *c);

/* How often something was changed; NULL: 0. Any thread. */
uint64_t run_control_changes(struct run_control *c);
/* Writes the members changes, changes_beyond and snapshots; NULL: an empty list. Any thread. */
void run_control_json(struct run_control *c, struct json_writer *w);

#endif
