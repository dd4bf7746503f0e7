/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/rootfs/exec_console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ESCAPE 0x1b

void exec_console_init(struct exec_console *c, const char *nonce, exec_console_put_fn *put,
		       void *put_ctx, exec_console_found_fn *found, void *found_ctx)
{
	*c = (struct exec_console){ .lock = PTHREAD_MUTEX_INITIALIZER,
				    .put = put,
				    .put_ctx = put_ctx,
				    .found = found,
				    .found_ctx = found_ctx };
	if (nonce)
		c->prefix_len = (size_t)snprintf(c->prefix, sizeof(c->prefix), "\033_kvmprof;%.*s;",
						 (int)EXEC_NONCE_LEN, nonce);
}

static void take_failure(struct exec_console *c, const char *s)
{
	char *end;
	unsigned long error = strtoul(s, &end, 10);
	size_t n = 0;

	c->failed = true;
	c->error = error < 4096 ? (int)error : 0;
	for (s = *end == ';' ? end + 1 : end; *s; s++)
		c->text[n++] = *s >= 0x20 && *s < 0x7f ? *s : '?';
	c->text[n] = 0;
}

/* Takes the times, and ignores numbers that are no times. */
static void take_times(struct exec_console *c, const char *s)
{
	uint64_t *const to[] = { &c->real_ns, &c->user_ns, &c->system_ns };
	uint64_t v[3];
	char *end;

	for (unsigned int i = 0; i < 3; i++) {
		v[i] = strtoull(s, &end, 10);
		if (end == s || *end != (i < 2 ? ';' : '\0') || v[i] > INT64_MAX)
			return;
		s = end + 1;
	}
	for (unsigned int i = 0; i < 3; i++)
		*to[i] = v[i];
	c->have_time = true;
}

static void take_message(struct exec_console *c)
{
	unsigned long status;
	char *end;

	c->body[c->body_len] = 0;
	if (!strncmp(c->body, "exit;", 5)) {
		status = strtoul(c->body + 5, &end, 10);
		if (end == c->body + 5 || *end || status > 255)
			return;
		c->have_status = true;
		c->status = (unsigned int)status;
	} else if (!strncmp(c->body, "time;", 5)) {
		take_times(c, c->body + 5);
		return; /* the status follows */
	} else if (!strncmp(c->body, "fail;", 5)) {
		take_failure(c, c->body + 5);
	} else {
		return;
	}
	c->found(c->found_ctx);
}

/* Takes a byte within a message. Returns false if the message has ended. */
static bool take_body(struct exec_console *c, uint8_t byte)
{
	if (c->after_escape || c->body_len == EXEC_MESSAGE_MAX) {
		if (c->after_escape && byte == '\\' && !c->have_status && !c->failed)
			take_message(c);
		return false;
	}
	c->after_escape = byte == ESCAPE;
	if (!c->after_escape)
		c->body[c->body_len++] = (char)byte;
	return true;
}

static void let_go(struct exec_console *c)
{
	/* After a complete prefix the bytes are part of the message. */
	for (size_t i = 0; c->matched < c->prefix_len && i < c->matched; i++)
		c->put(c->put_ctx, (uint8_t)c->prefix[i]);
	c->matched = 0;
}

static void take_byte(struct exec_console *c, uint8_t byte)
{
	if (c->prefix_len && c->matched == c->prefix_len) {
		if (!take_body(c, byte)) {
			c->matched = c->body_len = 0;
			c->after_escape = false;
		}
		return;
	}
	/* ESC occurs only at the start of the prefix, so a new match can begin only here. */
	if (c->matched && byte != (uint8_t)c->prefix[c->matched])
		let_go(c);
	if (c->prefix_len && byte == (uint8_t)c->prefix[c->matched])
		c->matched++;
	else
		c->put(c->put_ctx, byte);
}

void exec_console_put(void *exec_console, uint8_t byte)
{
	struct exec_console *c = exec_console;

	pthread_mutex_lock(&c->lock);
	take_byte(c, byte);
	pthread_mutex_unlock(&c->lock);
}

void exec_console_pending(const struct exec_console *c, struct buf *out)
{
	buf_add(out, c->prefix, c->matched);
	buf_add(out, c->body, c->body_len);
	if (c->after_escape)
		buf_u8(out, ESCAPE);
	buf_u8(out, 0);
}

void exec_console_end(struct exec_console *c)
{
	if (c->put)
		let_go(c);
}
