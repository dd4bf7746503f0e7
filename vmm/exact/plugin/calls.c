/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/plugin/calls.h"

#include "vmm/exact/countfile.h"
#include "vmm/exact/shared.h"

#include <string.h>
#include <unistd.h>

#define INSN_MAX 16u /* bytes */

static struct {
	struct callstacks *stacks;
	struct qemu_handle handle[CALLS_REGISTERS];
	struct glib_array *bytes;
	int fd;
	unsigned int vcpus, on;
	uint64_t gs; /* GS base that was seen last, of vCPU calls.on */
	struct exact_cpus cpus;
} calls;

static uint64_t calls_register(enum calls_register which)
{
	return qemu_api_read(&calls.handle[which], calls.bytes);
}

static uint64_t calls_sp(void *ctx)
{
	(void)ctx;
	return calls_register(CALLS_SP);
}

static uint64_t calls_pc(void *ctx)
{
	(void)ctx;
	return calls_register(CALLS_PC);
}

static void calls_regs(void *ctx, struct callstacks_regs *out)
{
	(void)ctx;
	out->sp = calls_register(CALLS_SP);
	out->cr3 = calls_register(CALLS_CR3);
	/* In real mode a code segment has no privilege level. */
	out->cpl = calls_register(CALLS_CR0) & 1 ? calls_register(CALLS_CS) & 3 : 0;
}

static bool calls_read(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	if (!qemu_plugin_read_memory_vaddr(va, calls.bytes, len) || calls.bytes->len < len)
		return false;
	memcpy(dst, calls.bytes->data, len);
	return true;
}

/* Returns the vCPU that runs, or calls.vcpus for one that is being brought up. */
static unsigned int calls_cpu(void)
{
	uint64_t gs = calls_register(CALLS_GS);
	int cpu;

	if (!(gs & EXACT_KERNEL_HALF))
		gs = calls_register(CALLS_KERNEL_GS);
	if (gs == calls.gs)
		return calls.on;
	calls.gs = gs;
	cpu = exact_cpu_of(&calls.cpus, calls.vcpus, gs);
	if (cpu < 0)
		return calls.cpus.n ? calls.vcpus : 0;
	return (unsigned int)cpu;
}

int calls_begin(int fd, unsigned int vcpus, struct glib_array *bytes)
{
	static const struct callstacks_cpu cpu = {
		.sp = calls_sp, .pc = calls_pc, .regs = calls_regs, .read = calls_read
	};

	calls.fd = fd;
	calls.bytes = bytes;
	calls.vcpus = vcpus;
	return callstacks_create(&calls.stacks, &cpu, vcpus > 1 ? vcpus + 1 : 1, CALLTREE_MAX_NODES,
				 CALLTREE_MAX_COUNTS);
}

void calls_set_registers(const struct qemu_handle handle[CALLS_REGISTERS])
{
	memcpy(calls.handle, handle, sizeof(calls.handle));
}

struct callstacks_block *calls_block(struct qemu_plugin_tb *tb, size_t first, size_t n)
{
	uint16_t off[COUNTFILE_MAX_INSNS];
	struct callstacks_block b = { .pc = qemu_plugin_tb_vaddr(tb), .off = off };
	uint64_t at = 0;

	if (!n || n > COUNTFILE_MAX_INSNS)
		return NULL;
	for (size_t i = 0; i < first; i++)
		b.pc += qemu_plugin_insn_size(qemu_plugin_tb_get_insn(tb, i));
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, first + i);
		size_t len = qemu_plugin_insn_size(insn);
		uint8_t bytes[INSN_MAX];
		struct blockend end;

		len = qemu_plugin_insn_data(insn, bytes, len < INSN_MAX ? len : INSN_MAX);
		end = blockend_of(bytes, len);
		off[i] = (uint16_t)at;
		at += qemu_plugin_insn_size(insn);
		b.moves_sp |= end.moves_sp;
		if (i + 1 < n)
			continue;
		b.kind = (uint8_t)end.kind;
		b.has_target = end.has_target;
		b.end = b.pc + at;
		b.target = end.has_target ? b.end + (uint64_t)end.target : 0;
	}
	b.insns = (uint16_t)n;
	return callstacks_block(calls.stacks, &b);
}

void calls_run(struct callstacks_block *block)
{
	if (calls.vcpus > 1) {
		calls.on = calls_cpu();
		callstacks_switch_cpu(calls.stacks, calls.on);
	}
	if (block)
		callstacks_run(calls.stacks, block);
	else
		callstacks_lose(calls.stacks);
}

void calls_reset(void)
{
	if (calls.stacks)
		callstacks_zero(calls.stacks);
}

void calls_begin_part(uint32_t part)
{
	if (calls.stacks)
		callstacks_set_part(calls.stacks, part);
}

void calls_end(void)
{
	if (!calls.stacks)
		return;
	/* The reader reports a file that is incomplete. */
	(void)countfile_write(calls.fd, calls.stacks);
	callstacks_destroy(calls.stacks);
	calls.stacks = NULL;
}
