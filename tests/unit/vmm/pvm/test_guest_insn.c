/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where an instruction and its operands lie: what guest_insn.c finds, across pages
 * and where nothing is mapped, and what complete.c says of one that it cannot do.
 */
#include "vmm/pvm/guest_insn.h"

#include "vmm/pvm/complete.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/insn_fixture.h"

#define CR0_WP 0x10000u

static void address_size_32(void **state)
{
	struct kvm_regs *r = &f.v->run->s.regs.regs;

	(void)state;
	fake_map(&f, 0xfffff000, FAKE_P | FAKE_W | FAKE_U);
	fake_put64(&f, 0xfffffff8, 0x1f);
	CODE_BYTES(0x67, 0xf3, 0x0f, 0xb8, 0x48, 0xf8); /* popcnt ecx, [eax-8] */
	r->rax = UINT64_C(0x7777777700000000);
	completes(6);
	assert_int_equal(r->rcx, 5);
}

static void memory_faults(void **state)
{
	static const uint8_t load[] = { 0x0f, 0x38, 0xf0, 0x08 };  /* movbe ecx, [rax] */
	static const uint8_t store[] = { 0x0f, 0x38, 0xf1, 0x08 }; /* movbe [rax], ecx */
	struct kvm_regs *r = &f.v->run->s.regs.regs;
	uint64_t read_only = DATA + 0x10000;

	(void)state;
	fake_map(&f, read_only, FAKE_P);
	for (int i = 0; i < 5; i++) {
		static const uint64_t at[] = { DATA + 4096, DATA + DATA_SIZE - 2, 0,
					       UINT64_C(0x800000000000), DATA + 0x10000 };
		struct err e = { 0 };
		bool can_read = at[i] == DATA + 4096 || at[i] == read_only;

		r->rax = at[i];
		r->rcx = 0x11223344;
		put_code(load, sizeof(load));
		assert_int_equal(complete_instruction(f.v, &e), can_read ? 0 : -ENOTSUP);
		if (!can_read) {
			assert_int_equal(r->rcx, 0x11223344);
			assert_int_equal(r->rip, CODE);
			assert_non_null(strstr(e.text, "movbe"));
		}
		put_code(store, sizeof(store));
		err_clear(&e);
		assert_int_equal(complete_instruction(f.v, &e), i == 0 ? 0 : -ENOTSUP);
	}
	/* cmpxchg16b: misaligned is a fault, as on the CPU */
	{
		struct err e = { 0 };

		r->rdi = DATA + 8;
		CODE_BYTES(0x48, 0x0f, 0xc7, 0x0f);
		assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
		r->rdi = read_only;
		CODE_BYTES(0x48, 0x0f, 0xc7, 0x0f);
		err_clear(&e);
		assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
	}
}

/* Without CR0.WP ring 0 writes pages that are read-only; programs never do, nor access pages of the kernel. */
static void page_rights(void **state)
{
	static const uint8_t load[] = { 0x0f, 0x38, 0xf0, 0x08 };  /* movbe ecx, [rax] */
	static const uint8_t store[] = { 0x0f, 0x38, 0xf1, 0x08 }; /* movbe [rax], ecx */
	struct kvm_regs *r = &f.v->run->s.regs.regs;
	struct kvm_sregs *s = &f.v->run->s.regs.sregs;

	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		const bool wp = i & 1, user = i & 2, page_user = i & 4, page_write = i & 8;
		const uint64_t at = DATA + 0x10000 + i * UINT64_C(0x1000);
		const bool reads = !user || page_user;
		const bool writes = reads && (page_write || (!user && !wp));
		struct err e = { 0 };

		fake_map(&f, at, FAKE_P | (page_user ? FAKE_U : 0) | (page_write ? FAKE_W : 0));
		s->cr0 = (FAKE_CR0 & ~(uint64_t)CR0_WP) | (wp ? CR0_WP : 0);
		s->cs.selector = user ? 0x33 : 0x10;
		r->rax = at;
		put_code(load, sizeof(load));
		assert_int_equal(complete_instruction(f.v, &e), reads ? 0 : -ENOTSUP);
		r->rcx = 0x11223344;
		put_code(store, sizeof(store));
		err_clear(&e);
		assert_int_equal(complete_instruction(f.v, &e), writes ? 0 : -ENOTSUP);
		assert_memory_equal(fake_host(&f, at), writes ? "\x11\x22\x33\x44" : "\0\0\0", 4);
	}
}

static void refused(void **state)
{
	static const struct {
		uint8_t b[4];
		unsigned int n;
		const char *name, *hex;
	} insn[] = {
		{ { 0xf4 }, 1, "hlt", "f4 90" },
		{ { 0x0f, 0xa2 }, 2, "cpuid", "0f a2 90" },
		{ { 0x48, 0x01, 0xd8 }, 3, "add rax, rbx", "48 01 d8" },
		{ { 0x06 }, 1, NULL, "06 90" }, /* not an instruction in 64-bit mode */
	};
	struct kvm_regs *r = &f.v->run->s.regs.regs, before;

	(void)state;
	f.v->index = 2;
	for (size_t i = 0; i < sizeof(insn) / sizeof(insn[0]); i++) {
		struct err e = { 0 };

		put_code(insn[i].b, insn[i].n);
		before = *r;
		assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
		assert_non_null(strstr(e.text, "vCPU 2"));
		assert_non_null(strstr(e.text, insn[i].hex));
		assert_non_null(strstr(e.text, "rip 0x200000000000"));
		if (insn[i].name)
			assert_non_null(strstr(e.text, insn[i].name));
		assert_memory_equal(&before, r, sizeof(before));
		assert_int_equal(f.v->run->kvm_dirty_regs, 0);
	}
}

static void rip_not_mapped(void **state)
{
	struct guest_insn g;
	struct err e = { 0 };

	(void)state;
	f.v->run->s.regs.regs.rip = UINT64_C(0xffffffff81000000);
	assert_int_equal(guest_insn_decode(&g, f.v), -EFAULT);
	assert_null(g.insn);
	assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "rip 0xffffffff81000000"));
	assert_non_null(strstr(e.text, "not mapped"));

	/* the instruction goes on where nothing is mapped */
	memcpy(fake_host(&f, CODE + 4094), "\xf3\x0f", 2);
	f.v->run->s.regs.regs.rip = CODE + 4094;
	assert_int_equal(guest_insn_decode(&g, f.v), -EILSEQ);
	assert_int_equal(g.nbytes, 2);
	err_clear(&e);
	assert_int_equal(complete_instruction(f.v, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "f3 0f"));
}

static void instruction_across_pages(void **state)
{
	struct kvm_regs *r = &f.v->run->s.regs.regs;
	struct err e = { 0 };

	(void)state;
	fake_put(&f, DATA + 4094, "\xf3\x0f\xb8\xc1", 4); /* popcnt eax, ecx */
	r->rip = DATA + 4094;
	r->rcx = 0xff;
	assert_int_equal(complete_instruction(f.v, &e), 0);
	assert_int_equal(r->rax, 8);
	assert_int_equal(r->rip, DATA + 4098);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(address_size_32), TEST(memory_faults),  TEST(page_rights),
		TEST(refused),	       TEST(rip_not_mapped), TEST(instruction_across_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
