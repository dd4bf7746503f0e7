/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_request: parses a line from a client of the control socket into a checked request, and
 * writes replies.
 *
 * Format: docs/control.md. The line comes from another process and is not trusted: a part that is
 * too long, unknown, missing or of the wrong type is an error with a reason. No I/O, no state; any
 * thread. Events and vCPUs that a request names need not exist.
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

/* An event, by name; by index if the name is "". */
struct control_event {
	char name[CONTROL_MAX_NAME];
	uint32_t index;
};

struct control_request {
	enum control_cmd cmd;
	bool has_id;
	int64_t id;
	bool on;  /* with CONTROL_PS: all frames of the stacks */
	bool all; /* all vCPUs */
	uint32_t vcpu;
	struct control_event event[CONTROL_MAX_EVENTS];
	unsigned int nevents;
	uint64_t value; /* a period, bytes, frames, or a version; never 0 */
	double hz;
	char path[CONTROL_MAX_PATH];
	char name[CONTROL_MAX_NAME];	/* name of a marker */
	uint64_t since;			/* 0: from the beginning */
	uint32_t max_stacks, max_depth; /* 0: not given */
	uint64_t addr;
	uint32_t len; /* 0: not given */
};

/*
 * Parses a line of len bytes without line feed. Returns 0, or -EINVAL with a reason for the client
 * in *e; out->has_id and out->id are then set if the line contains an id.
 */
int control_request_parse(struct control_request *out, const char *line, size_t len, struct err *e);

/* Returns the name of a command, such as "stack-size"; a static string. */
const char *control_cmd_name(enum control_cmd cmd);

/*
 * A reply is begun, gets its members through *w, and is ended; or it is an error as a whole. A lack
 * of memory sets b->failed.
 */

/* Appends {"ok":true,"id":ID to *b. */
void control_reply_begin(struct json_writer *w, struct buf *b, const struct control_request *r);
/* Appends the closing brace, without a line feed. */
void control_reply_end(struct json_writer *w);
/* Appends a complete reply that refuses the request. r may be one that could not be parsed. */
void control_reply_error(struct buf *b, const struct control_request *r, const char *text);

#endif
