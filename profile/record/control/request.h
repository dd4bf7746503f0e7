/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_request: one line from a client of the control socket -> a checked request; and the form of replies.
 *
 * Form: docs/control.md. The line comes from another process and is not believed: what
 * is too long, unknown, missing or of the wrong type is an error with a reason. No I/O,
 * no state; any thread. What a request names (events, vCPUs) may not exist.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_REQUEST_H
#define KVMPROF_PROFILE_RECORD_CONTROL_REQUEST_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_VERSION 1u
#define CONTROL_MAX_LINE 8192u /* bytes of a request, without its line feed */
#define CONTROL_MAX_PATH 4096u
#define CONTROL_MAX_NAME 128u
#define CONTROL_MAX_EVENTS 8u
#define CONTROL_MAX_TEXT 65536u

enum control_cmd {
	CONTROL_HELLO,
	CONTROL_STATUS,
	CONTROL_STATS,
	CONTROL_COLLECT,
	CONTROL_VCPU,
	CONTROL_ARM,
	CONTROL_DISARM,
	CONTROL_EVENT,
	CONTROL_PERIOD,
	CONTROL_FREQ,
	CONTROL_STACK_SIZE,
	CONTROL_MAX_STACK,
	CONTROL_SNAPSHOT,
	CONTROL_MARK,
	CONTROL_PROFILE,
	CONTROL_TEXT,
	CONTROL_PS,
	CONTROL_STOP,
	CONTROL_CMDS
};

/* By name, or by index where the name is "". */
struct control_event {
	char name[CONTROL_MAX_NAME];
	uint32_t index;
};

struct control_request {
	enum control_cmd cmd;
	bool has_id;
	int64_t id;
	bool on;  /* of PS: all frames of the stacks */
	bool all; /* vCPUs */
	uint32_t vcpu;
	struct control_event event[CONTROL_MAX_EVENTS];
	unsigned int nevents;
	uint64_t value; /* a period, bytes, frames, a version; never 0 */
	double hz;
	char path[CONTROL_MAX_PATH];
	char name[CONTROL_MAX_NAME];	/* of a marker */
	uint64_t since;			/* 0: from the beginning */
	uint32_t max_stacks, max_depth; /* 0: not said */
	uint64_t addr;
	uint32_t len; /* 0: not said */
};

/*
 * line has len bytes, no line feed. On failure (-EINVAL) the error is for the client, and
 * out->has_id and out->id are set when the line told an id.
 */
int control_request_parse(struct control_request *out, const char *line, size_t len, struct err *e);

/* "stack-size" */
const char *control_cmd_name(enum control_cmd cmd);

/*
 * A reply is begun, gets its members through w, and is ended; or it is an error as a whole. Whether memory
 * sufficed is in b->failed.
 */

/* Begins {"ok":true,"id":ID in b. */
void control_reply_begin(struct json_writer *w, struct buf *b, const struct control_request *r);
/* Writes the closing brace; no line feed. */
void control_reply_end(struct json_writer *w);
/* Writes a whole reply that says no. r may be one that could not be parsed. */
void control_reply_error(struct buf *b, const struct control_request *r, const char *text);

#endif
