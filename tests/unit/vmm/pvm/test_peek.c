/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The conversion of a record of the BPF program, without the program. */
#include "vmm/pvm/peek_answer.h"
#include "vmm/pvm/peek_capture.h"
#include "tests/sample_check.h"
#include "vmm/capture/capture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOST UINT64_C(0x7f0000000000)
#define CR4_PAE (1u << 5)
#define CR0_PG_PE 0x80000001u
#define EFER_LMA_LME 0x500u

static struct peek_answer answer;

static void add(uint64_t host, const void *bytes, uint32_t len)
{
	answer.piece[answer.npieces++] = (struct peek_piece){ host, answer.used, len };
	memcpy(answer.data + answer.used, bytes, len);
	answer.used += (len + 7) & ~7u;
}

static void test_read(void **state)
{
	uint8_t page[PEEK_CHUNK], got[PEEK_CHUNK + 16];

	(void)state;
	memset(&answer, 0, sizeof(answer));
	for (unsigned int i = 0; i < sizeof(page); i++)
		page[i] = (uint8_t)(i * 7);
	add(HOST + PEEK_CHUNK, "abcdefgh", 8);
	add(HOST, page, sizeof(page));
	/* Across two pieces that lie the other way round. */
	assert_int_equal(peek_record_read(&answer, HOST + 8, got, PEEK_CHUNK), 0);
	assert_memory_equal(got, page + 8, PEEK_CHUNK - 8);
	assert_memory_equal(got + PEEK_CHUNK - 8, "abcdefgh", 8);
	/* One byte more, one before, and nothing at all. */
	assert_int_equal(peek_record_read(&answer, HOST + 8, got, PEEK_CHUNK + 1), -ENODATA);
	assert_int_equal(peek_record_read(&answer, HOST - 1, got, 2), -ENODATA);
	assert_int_equal(peek_record_read(&answer, 0, got, 1), -ENODATA);
	assert_int_equal(peek_record_read(&answer, HOST, got, 0), 0);
}

static void test_bad_pieces(void **state)
{
	uint8_t byte;

	(void)state;
	memset(&answer, 0, sizeof(answer));
	answer.npieces = UINT32_MAX;
	answer.piece[0] = (struct peek_piece){ HOST, PEEK_DATA + 1, 8 };
	answer.piece[1] = (struct peek_piece){ HOST, 0, PEEK_CHUNK + 1 };
	answer.piece[2] = (struct peek_piece){ HOST, UINT32_MAX, UINT32_MAX };
	answer.piece[3] = (struct peek_piece){ UINT64_MAX, 0, PEEK_CHUNK };
	assert_int_equal(peek_record_read(&answer, HOST + 4, &byte, 1), -ENODATA);
	assert_int_equal(peek_record_read(&answer, HOST + PEEK_CHUNK, &byte, 1), -ENODATA);
}

static struct peek_regs some_regs(void)
{
	struct peek_regs r = { .rip = 0x401000,
			       .rflags = 0x202,
			       .cr0 = CR0_PG_PE,
			       .cr2 = 5,
			       .cr3 = 0x1000,
			       .cr4 = CR4_PAE,
			       .efer = EFER_LMA_LME,
			       .idt_base = 77,
			       .cpl = 3,
			       .cs = 0x33,
			       .ss = 0x2b,
			       .known = 1 };

	for (unsigned int i = 0; i < PEEK_GPRS; i++)
		r.gpr[i] = 0x100 + i;
	return r;
}

static void test_regs(void **state)
{
	struct peek_regs r = some_regs();
	struct kvm_run run;
	struct sample_regs s;

	(void)state;
	memset(&run, 0xff, sizeof(run));
	peek_regs_to_kvm(&r, &run.s.regs.regs, &run.s.regs.sregs);
	capture_regs(&run.s.regs.regs, &run.s.regs.sregs, &s);
	assert_int_equal(s.gpr[GPR_RAX], 0x100);
	assert_int_equal(s.gpr[GPR_RCX], 0x101);
	assert_int_equal(s.gpr[GPR_RDX], 0x102);
	assert_int_equal(s.gpr[GPR_RBX], 0x103);
	assert_int_equal(s.gpr[GPR_RSP], 0x104);
	assert_int_equal(s.gpr[GPR_RBP], 0x105);
	assert_int_equal(s.gpr[GPR_RSI], 0x106);
	assert_int_equal(s.gpr[GPR_RDI], 0x107);
	for (unsigned int i = 8; i < 16; i++)
		assert_int_equal(s.gpr[GPR_R8 + i - 8], 0x100 + i);
	assert_int_equal(s.rip, 0x401000);
	assert_int_equal(s.cr3, 0x1000);
	assert_int_equal(s.cs, 0x33);
	assert_int_equal(s.fs_base, 0);
	assert_int_equal(run.s.regs.sregs.cs.dpl, 3);
	assert_null(peek_regs_differ(&r, &run));
}

/* Each register that a sample or a page walk uses is looked at. */
static void test_differ(void **state)
{
	struct peek_regs good = some_regs(), bad;
	struct kvm_run run = { 0 };

	(void)state;
	peek_regs_to_kvm(&good, &run.s.regs.regs, &run.s.regs.sregs);
#define DIFFERS(member)                                        \
	do {                                                   \
		bad = good;                                    \
		bad.member ^= 1;                               \
		assert_non_null(peek_regs_differ(&bad, &run)); \
	} while (0)
	for (unsigned int i = 0; i < PEEK_GPRS; i++)
		DIFFERS(gpr[i]);
	DIFFERS(rip);
	DIFFERS(rflags);
	DIFFERS(cr0);
	DIFFERS(cr2);
	DIFFERS(cr3);
	DIFFERS(cr4);
	DIFFERS(efer);
	DIFFERS(idt_base);
	DIFFERS(cpl);
	DIFFERS(cs);
	DIFFERS(ss);
#undef DIFFERS
}

/* -- capture, out of a record ----------------------------------------------------------------- */

struct machine {
	struct vm *vm;
	struct peek_capture c;
	struct peek_block block;
};

static struct machine *fake_machine_new(void)
{
	struct machine *m = calloc(1, sizeof(*m));
	struct gmem mem = { 0 };

	assert_int_equal(
		posix_memalign((void **)&m->vm, 64, sizeof(struct vm) + sizeof(struct vcpu)), 0);
	memset(m->vm, 0, sizeof(struct vm) + sizeof(struct vcpu));
	m->vm->nvcpus = m->vm->places = 1;
	m->vm->vcpu[0].vm = m->vm;
	m->vm->vcpu[0].fd = -1;
	m->vm->vcpu[0].foreign = true;
	m->vm->vcpu[0].stack_max = PEEK_CHUNK;
	atomic_store(&m->vm->control.collect, true);
	atomic_store(&m->vm->vcpu[0].collect, true);
	mem.n = 1;
	mem.region[0] = (struct gmem_region){ 0, 1 << 20, (uint8_t *)(uintptr_t)HOST };
	assert_int_equal(ring_init(&m->vm->vcpu[0].ring, 1 << 20), 0);
	m->c.peek.block = &m->block;
	peek_capture_init(&m->c, &mem);
	return m;
}

static void fake_machine_free(struct machine *m)
{
	ring_deinit(&m->vm->vcpu[0].ring);
	free(m->vm);
	free(m);
}

/* One page of stack at 0x7000, behind four levels of tables from 0x1000 on. */
static void record(struct machine *m, bool whole)
{
	const uint64_t rsp = 0x7ff0;
	uint8_t stack[16];

	memset(&answer, 0, sizeof(answer));
	memset(stack, 0xab, sizeof(stack));
	for (unsigned int level = 4; level >= 1; level--) {
		uint64_t table = 0x1000 * (5 - level);
		uint64_t entry = (level > 1 ? table + 0x1000 : 0x9000) | 7;
		uint64_t index = level > 1 ? 0 : rsp >> 12;

		add(HOST + table + index * 8, &entry, 8);
	}
	if (whole)
		add(HOST + 0x9ff0, stack, sizeof(stack));
	/* The next page is known not to be mapped. */
	add(HOST + 0x4000 + ((rsp >> 12) + 1) * 8, &(uint64_t){ 0 }, 8);
	answer.regs = some_regs();
	answer.regs.gpr[4] = rsp;
	m->block.a = answer;
}

static void test_capture(void **state)
{
	struct machine *m = fake_machine_new();
	const struct capture_cause cause = { .now = 5, .reason = SAMPLE_TIMER, .weight = 9 };
	const struct sample *s;
	size_t len;

	(void)state;
	record(m, true);
	assert_true(peek_capture_sample(&m->c, &m->vm->vcpu[0], &cause));
	s = ring_peek(&m->vm->vcpu[0].ring, &len);
	assert_non_null(s);
	assert_int_equal(sample_check(s, len), 0);
	assert_int_equal(s->mode, SAMPLE_USER);
	assert_int_equal(s->weight, 9);
	assert_int_equal(s->stack_len, 16);
	assert_int_equal(s->stack[15], 0xab);
	assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
	fake_machine_free(m);
}

/* A record that lacks memory makes the sample invalid; nothing is counted, and nothing lost. */
static void test_lacking(void **state)
{
	struct machine *m = fake_machine_new();
	const struct capture_cause cause = { .reason = SAMPLE_TIMER };
	size_t len;

	(void)state;
	record(m, false);
	assert_false(peek_capture_sample(&m->c, &m->vm->vcpu[0], &cause));
	assert_null(ring_peek(&m->vm->vcpu[0].ring, &len));
	assert_int_equal(m->vm->vcpu[0].stats.samples, 0);
	assert_int_equal(ring_dropped(&m->vm->vcpu[0].ring), 0);
	fake_machine_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),	cmocka_unit_test(test_bad_pieces),
		cmocka_unit_test(test_regs),	cmocka_unit_test(test_differ),
		cmocka_unit_test(test_capture), cmocka_unit_test(test_lacking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
