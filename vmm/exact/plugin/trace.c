/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/plugin/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define INSN_MAX 15u /* bytes */
/* Odd, so that each step of the sums is invertible and no difference is lost. */
#define FLOW_TIMES UINT64_C(0x9e3779b97f4a7c15)
#define VALUES_TIMES UINT64_C(0xd1342543de82ef95)

/*
 * A block. The sum after it is sum * times + add, whatever the sum before, so the sum does not
 * depend on where blocks are cut.
 */
struct traced {
	uint64_t pc, times, add;
	uint16_t insns, len;
	uint8_t *length, *code;
	uint64_t term[]; /* one term of the sum for each instruction */
};

static struct {
	struct trace_head *head;
	uint8_t *data;
	size_t size; /* bytes of data */
	struct trace_plan plan;
	uint64_t next;	/* instruction count of the next check */
	bool recording; /* the block that runs is being recorded */
} trace;

static uint64_t trace_mix(uint64_t x)
{
	x = (x ^ x >> 32) * UINT64_C(0xff51afd7ed558ccd);
	x = (x ^ x >> 29) * UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 32;
}

int plugin_trace_begin(int fd, const struct trace_plan *plan)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size < (off_t)TRACE_DATA)
		return -EINVAL;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	trace.head = at;
	trace.data = (uint8_t *)at + TRACE_DATA;
	trace.size = (size_t)st.st_size - TRACE_DATA;
	trace.plan = *plan;
	trace.next = plan->step;
	trace.head->magic = TRACE_MAGIC;
	trace.head->step = plan->step;
	trace.head->has_values = qemu_plugin_mem_get_value != NULL;
	return 0;
}

/* -- accesses ------------------------------------------------------------------------------- */

static void trace_put(const void *p, size_t n)
{
	memcpy(trace.data + trace.head->used, p, n);
	trace.head->used += n;
}

static bool trace_has_room(size_t n)
{
	if (trace.size - trace.head->used >= n)
		return true;
	trace.head->full++;
	return false;
}

static void trace_access(unsigned int vcpu, uint32_t info, uint64_t va, void *ctx)
{
	struct trace_access a = {
		.kind = qemu_plugin_mem_is_store(info) ? TRACE_WRITE : TRACE_READ,
		.off = (uint16_t)(uintptr_t)ctx,
		.size = (uint16_t)(1u << qemu_plugin_mem_size_shift(info)),
		.va = va,
	};
	struct trace_head *h = trace.head;

	(void)vcpu;
	if (qemu_plugin_mem_get_value) {
		struct qemu_value v = qemu_plugin_mem_get_value(info);

		a.value = v.low;
		if (a.size < 8)
			a.value &= (UINT64_C(1) << 8 * a.size) - 1;
		a.high = a.size == 16 ? v.high : 0;
	}
	h->sums.values = h->sums.values * VALUES_TIMES +
			 trace_mix(va ^ trace_mix(a.value + a.high * 3 + a.kind));
	if (trace.recording && trace_has_room(sizeof(a)))
		trace_put(&a, sizeof(a));
}

/* -- blocks --------------------------------------------------------------------------------- */

static uint64_t trace_term(uint64_t pc, const uint8_t *code, size_t len)
{
	uint64_t words[2] = { 0, 0 };

	memcpy(words, code, len);
	return trace_mix(pc ^ trace_mix(words[0] ^ trace_mix(words[1] + len)));
}

struct traced *plugin_trace_block(struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct traced *t = malloc(sizeof(*t) + n * (sizeof(t->term[0]) + 1 + INSN_MAX));

	if (!t)
		return NULL;
	*t = (struct traced){ .pc = qemu_plugin_tb_vaddr(tb), .times = 1, .insns = (uint16_t)n };
	t->length = (uint8_t *)&t->term[n];
	t->code = t->length + n;
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t *code = t->code + t->len;
		size_t len = qemu_plugin_insn_data(insn, code, INSN_MAX);

		t->length[i] = (uint8_t)len;
		t->term[i] = trace_term(t->pc + t->len, code, len);
		t->add = t->add * FLOW_TIMES + t->term[i];
		t->times *= FLOW_TIMES;
		qemu_plugin_register_vcpu_mem_cb(insn, trace_access, QEMU_NO_REGISTERS,
						 QEMU_READS_AND_WRITES, (void *)(uintptr_t)t->len);
		t->len = (uint16_t)(t->len + len);
	}
	return t;
}

static void trace_check(const struct traced *t, uint64_t n)
{
	struct trace_head *h = trace.head;
	struct trace_sums now = h->sums;

	for (uint64_t i = 0; i < n; i++)
		now.flow = now.flow * FLOW_TIMES + t->term[i];
	if ((h->nchecks + 1) * sizeof(now) > trace.size) {
		h->full++;
		return;
	}
	memcpy(trace.data + h->nchecks * sizeof(now), &now, sizeof(now));
	h->nchecks++;
}

bool plugin_trace_run(const struct traced *t, uint64_t before)
{
	struct trace_head *h = trace.head;
	uint64_t after = before + t->insns;

	trace.recording = false;
	if (trace.plan.step) {
		for (; __builtin_expect(after >= trace.next, 0); trace.next += trace.plan.step)
			trace_check(t, trace.next - before);
	} else {
		for (unsigned int i = 0; i < TRACE_WINDOWS; i++)
			trace.recording |= before < trace.plan.window[i].to &&
					   after > trace.plan.window[i].from;
	}
	h->sums.flow = h->sums.flow * t->times + t->add;
	h->count = after;
	return trace.recording;
}

void plugin_trace_record(const struct traced *t, uint64_t before, const struct exact_regs *regs)
{
	const struct trace_block b = { .kind = TRACE_BLOCK,
				       .insns = t->insns,
				       .len = t->len,
				       .before = before,
				       .pc = exact_is_alias(t->pc, regs->rip) ? regs->rip : t->pc,
				       .regs = *regs };
	size_t size = (sizeof(b) + t->insns + t->len + 7u) & ~(size_t)7;

	if (!trace_has_room(size))
		return;
	/* The bytes up to the next record are 0, because the file is sparse there. */
	trace_put(&b, sizeof(b));
	trace_put(t->length, t->insns);
	trace_put(t->code, t->len);
	trace.head->used += size - sizeof(b) - t->insns - t->len;
}
