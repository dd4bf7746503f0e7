/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The requests that the tracing process of `attach` serves for the other one: whatever a message
 * contains, no byte outside of guest memory is read, no reply is longer than its buffer, and an
 * accepted order keeps within the arrays of a sample.
 *
 * The first byte chooses: 0 a request for memory, else an order. The rest is the message.
 */
#include "tests/fuzz/fuzz.h"

#include "vmm/attach/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST UINT64_C(0x10000)
#define SECOND UINT64_C(0xfffffffffff00000)
#define SECOND_SIZE UINT64_C(0x80000)

static uint64_t asked_host;
static size_t asked_len;

static int read_guest(void *ctx, bool tables, uint64_t host, void *dst, size_t len)
{
	(void)ctx;
	(void)tables;
	if (len > SERVE_MAX || !((host >= FIRST && host + len <= FIRST + SERVE_MAX * 2) ||
				 (host >= SECOND && host + len <= SECOND + SECOND_SIZE)))
		abort();
	asked_host = host;
	asked_len = len;
	memset(dst, 0x5a, len);
	return host & 1 ? -ENODATA : 0;
}

static void check_memory(const uint8_t *data, size_t size)
{
	static struct serve_answer answer;
	struct serve_memory m = { .n = 2, .read = read_guest };
	size_t n;

	m.region[0] =
		(struct gmem_region){ .host = (void *)(uintptr_t)FIRST, .size = SERVE_MAX * 2 };
	m.region[1] =
		(struct gmem_region){ .host = (void *)(uintptr_t)SECOND, .size = SECOND_SIZE };
	asked_len = 0;
	n = serve_memory(&m, data, size, &answer);
	if (n > sizeof(answer) || (n && n < SERVE_ANSWER_HEAD))
		abort();
	if (n > SERVE_ANSWER_HEAD && (n != SERVE_ANSWER_HEAD + asked_len || answer.ret))
		abort();
	if (n && size != sizeof(struct serve_request))
		abort();
}

static void check_task(const struct capture_task_plan *t)
{
	if (t->comm_size > SAMPLE_COMM || t->returns.entry > SAMPLE_MAX_RETURNS ||
	    t->returns.unit > SAMPLE_MAX_RETURNS || t->returns.node > SAMPLE_MAX_RETURNS)
		abort();
}

static void check_layout(const struct capture_python_layout *l)
{
	const uint64_t span = l->span;

	if (span > CAPTURE_PYTHON_MAX_SPAN || l->code + UINT64_C(8) > span ||
	    l->previous + UINT64_C(8) > span || l->instr + UINT64_C(8) > span ||
	    l->owner + UINT64_C(1) > span)
		abort();
}

static void check_order(const uint8_t *data, size_t size)
{
	struct serve_order o = { .op = SERVE_THREAD + 1 };

	if (serve_order(&o, data, size)) {
		if (o.op != SERVE_THREAD + 1)
			abort();
		return;
	}
	if (o.op < SERVE_START || o.op > SERVE_THREAD || size != sizeof(o))
		abort();
	if (o.op == SERVE_TASK)
		check_task(&o.u.task);
	else if (o.op == SERVE_LAYOUT)
		check_layout(&o.u.layout);
	else if (o.op == SERVE_THREAD && o.u.thread.layout >= CAPTURE_PYTHON_LAYOUTS)
		abort();
	else if (o.op == SERVE_CONTROL &&
		 (o.u.control.stack_max > SAMPLE_MAX_SLICE || !o.u.control.period))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (!data[0]) {
		check_memory(data + 1, size - 1);
		return 0;
	}
	check_order(data + 1, size - 1);
	/* Mutations seldom keep a length: the same bytes as a whole order. */
	if (size - 1 != sizeof(struct serve_order)) {
		uint8_t whole[sizeof(struct serve_order)] = { 0 };

		memcpy(whole, data + 1, size - 1 < sizeof(whole) ? size - 1 : sizeof(whole));
		check_order(whole, sizeof(whole));
	}
	return 0;
}
