/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * help: the texts of `kvmprof help`: examples, and topics.
 */
#ifndef KVMPROF_PROFILE_CMD_HELP_H
#define KVMPROF_PROFILE_CMD_HELP_H

#include "base/nearest.h"

#include <stdbool.h>
#include <stdio.h>

/* The examples below the overview of `kvmprof help'. */
void help_examples(FILE *out);

/* Prints a topic, or for "topics" their list. Returns false if there is no such topic. */
bool help_topic(FILE *out, const char *name);
/* Adds the names of all topics to the candidates for a mistyped word. */
void help_topics_near(struct nearest *n);

#endif
