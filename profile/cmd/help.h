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

/* Prints a topic, or with "topics" their list; false: there is none of that name. */
bool help_topic(FILE *out, const char *name);
/* Adds the names of all topics to those that a mistyped word could have been. */
void help_topics_near(struct nearest *n);

#endif
