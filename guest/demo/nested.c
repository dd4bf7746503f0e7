// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mode=nested: the demo as a hypervisor. For seconds=N it alternates between spinning itself and
 * running a guest of its own that spins as long; then it prints
 *
 *   nested: <TSC cycles in its guest> of <TSC cycles in all>
 *
 * or "nested: none" if the processor has no SVM. The guest has the same page tables, so its code
 * has a name here, which its samples must not get. AMD64 APM vol. 2, ch. 15, app. B.
 */
#include "demo.h"

#define EXT1_ECX_SVM (1u << 2)
#define MSR_EFER 0xc0000080u
#define MSR_VM_HSAVE_PA 0xc0010117u
#define EFER_SVME (1u << 12)
#define EXIT_VMMCALL 0x81u
#define SLICE_MS 5u

#define CODE64 0x29bu /* present, code, readable, accessed, 64 bits */
#define DATA 0xc93u

struct segment {
	u16 selector, attributes;
	u32 limit;
	u64 base;
};

static struct vmcb {
	u8 pad0[0x10];
	u32 intercepts; /* VMRUN, which is required, and VMMCALL */
	u8 pad1[0x58 - 0x14];
	u32 asid;
	u8 pad2[0x70 - 0x5c];
	u64 exit_code;
	u8 pad3[0x400 - 0x78];
	struct segment es, cs, ss, ds, fs, gs, gdtr, ldtr, idtr, tr;
	u8 pad4[0x4d0 - 0x4a0];
	u64 efer;
	u8 pad5[0x548 - 0x4d8];
	u64 cr4, cr3, cr0, dr7, dr6, rflags, rip;
	u8 pad6[0x5d8 - 0x580];
	u64 rsp;
	u8 pad7[0x668 - 0x5e0];
	u64 pat;
	u8 pad8[0x1000 - 0x670];
} vmcb __attribute__((aligned(4096)));

_Static_assert(__builtin_offsetof(struct vmcb, tr) == 0x490, "VMCB");
_Static_assert(__builtin_offsetof(struct vmcb, rip) == 0x578, "VMCB");

static u8 host_save[4096] __attribute__((aligned(4096)));
static u64 guest_stack[512];
static u64 guest_budget;

demo_function void nested_guest(void);
demo_function void nested_guest(void)
{
	for (;;) {
		u64 spent = spin(guest_budget);

		demo_keep(spent);
		__asm__ volatile("vmmcall" ::: "memory");
	}
}

demo_function u64 nested_host(u64 budget);
demo_function u64 nested_host(u64 budget)
{
	u64 spent = spin(budget);

	demo_keep(spent);
	return spent;
}

static void vmcb_fill(void)
{
	struct segment data = { 0x10, DATA, 0xffffffff, 0 };
	u64 cr0, cr3, cr4;

	__asm__("movq %%cr0, %0" : "=r"(cr0));
	__asm__("movq %%cr3, %0" : "=r"(cr3));
	__asm__("movq %%cr4, %0" : "=r"(cr4));
	vmcb.intercepts = 3;
	vmcb.asid = 1;
	vmcb.cs = (struct segment){ 8, CODE64, 0xffffffff, 0 };
	vmcb.es = vmcb.ss = vmcb.ds = vmcb.fs = vmcb.gs = data;
	vmcb.efer = rdmsr(MSR_EFER);
	vmcb.cr0 = cr0;
	vmcb.cr3 = cr3;
	vmcb.cr4 = cr4;
	vmcb.dr6 = 0xffff0ff0;
	vmcb.dr7 = 0x400;
	vmcb.rflags = 2; /* no interrupts */
	vmcb.pat = 0x0007040600070406;
}

/* Runs the guest from its beginning, because its registers are lost. */
static void guest_run(void)
{
	vmcb.rip = (u64)nested_guest;
	vmcb.rsp = (u64)(guest_stack + 511);
	__asm__ volatile("pushq %%rbp\n\t"
			 "vmrun %%rax\n\t"
			 "stgi\n\t"
			 "popq %%rbp"
			 :
			 : "a"((u64)&vmcb - KERNEL_MAP)
			 : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
			   "r13", "r14", "r15", "memory", "cc");
}

void nested_run(u64 khz, u64 seconds)
{
	u64 start, inside = 0, before;

	if (cpuid(0x80000000).a < 0x80000001 || !(cpuid(0x80000001).c & EXT1_ECX_SVM)) {
		put_string("nested: none\n");
		return;
	}
	wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SVME);
	wrmsr(MSR_VM_HSAVE_PA, (u64)host_save - KERNEL_MAP);
	vmcb_fill();
	guest_budget = khz * SLICE_MS;
	start = rdtsc();
	while (rdtsc() - start < khz * 1000 * seconds) {
		nested_host(khz * SLICE_MS);
		before = rdtsc();
		guest_run();
		inside += rdtsc() - before;
		if (vmcb.exit_code != EXIT_VMMCALL) {
			put_string("nested: exit ");
			put_number(vmcb.exit_code);
			put_string("\n");
			return;
		}
	}
	put_string("nested: ");
	put_number(inside);
	put_string(" of ");
	put_number(rdtsc() - start);
	put_string("\n");
}
