/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_control: the effect of requests at the control socket on a run (docs/control.md).
 *
 * Requests are answered by the server's thread, through vmm/control.h; those that need the profile
 * are jobs of the pipeline's consumer thread. All functions here are called by the main thread
 * unless their comment says otherwise.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_CONTROL_H
#define KVMPROF_PROFILE_RECORD_RUN_CONTROL_H

#include "base/err.h"

#include <stdint.h>

/* The most changes that are recorded; later ones are only counted. */
#define RUN_CONTROL_MAX_CHANGES 4096u

struct json_writer;
struct run;
struct run_control;

/*
 * Listens at path as control_listen() does, without answering. To be called before other threads
 * exist. Returns 0 or -errno with the reason in *e. The caller frees *out with
 * run_control_destroy().
 */
int run_control_open(struct run_control **out, const char *path, struct err *e);
/*
 * Starts to answer requests about r, which must stay until run_control_stop(). Returns 0 or -errno.
 */
int run_control_start(struct run_control *c, struct run *r, struct err *e);
/*
 * Stops answering; to be called before pipeline_finish(). Changes that were made stay. NULL and
 * repeated calls are allowed.
 */
void run_control_stop(struct run_control *c);
/* Stops, removes the socket and frees c. NULL is allowed. */
void run_control_destroy(struct run_control *c);
/* Returns the path of the socket, owned by c. */
const char *run_control_path(const struct run_control *c);

/* Returns the number of changes that were made, 0 if c is NULL. Any thread. */
uint64_t run_control_changes(struct run_control *c);
/*
 * Writes the members changes, changes_beyond and snapshots into the JSON object that is open in *w;
 * an empty list if c is NULL. Any thread.
 */
void run_control_json(struct run_control *c, struct json_writer *w);

#endif
