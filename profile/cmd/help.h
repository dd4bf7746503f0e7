/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * help: the texts of `kvmprof help`: examples, and topics. Called by the main thread. Failed writes
 * are not reported here, but by cmd_flush_stdout().
 */
#ifndef KVMPROF_PROFILE_CMD_HELP_H
#define KVMPROF_PROFILE_CMD_HELP_H

#include "base/nearest.h"

#include <stdbool.h>
#include <stdio.h>

/* Prints the examples that `kvmprof help` shows below its overview. */
void help_examples(FILE *out);

/* Prints a topic, or for "topics" their list. Returns false if there is no such topic. */
bool help_topic(FILE *out, const char *name);
/* Adds the names of all topics to the candidates for a mistyped word. */
void help_topics_near(struct nearest *n);

#endif
