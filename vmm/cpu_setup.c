/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/cpu_setup.h"

#include "vmm/machine.h"

#include "vmm/boot/load.h"
#include "vmm/layout.h"
#include "vmm/pvm.h"
#include "vmm/kvm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define CPUID_MAX_ENTRIES 256

/* CPUID leaves and bits, SDM vol. 2 table 3-8. */
#define L1_ECX_VMX (1u << 5)
#define L1_ECX_TSC_DEADLINE (1u << 24)
#define L1_ECX_HYPERVISOR (1u << 31)
#define EXT1_ECX_SVM (1u << 2)

#define CR0_PE 0x1u
#define CR0_ET 0x10u
#define CR0_NE 0x20u
#define CR0_PG 0x80000000u
#define CR4_PAE 0x20u
#define EFER_LME 0x100u
#define EFER_LMA 0x400u

#define MSR_IA32_MISC_ENABLE 0x1a0u
#define MISC_ENABLE_FAST_STRING 1u
#define MSR_MTRR_DEF_TYPE 0x2ffu
#define MTRR_ENABLE_WB (1u << 11 | 6u)

/* Local vector table entries in the local APIC page, SDM vol. 3 10.5.1. */
#define APIC_LVT0 0x350
#define APIC_LVT1 0x360
#define APIC_MODE_EXTINT 0x700u
#define APIC_MODE_NMI 0x400u

int cpu_setup_cpuid(const struct vm *vm, struct kvm_cpuid2 **out, struct err *e)
{
	struct kvm_cpuid2 *c = calloc(1, sizeof(*c) + CPUID_MAX_ENTRIES * sizeof(c->entries[0]));

	if (!c)
		return err_set(e, ENOMEM, "out of memory for CPUID");
	c->nent = CPUID_MAX_ENTRIES;
	if (ioctl(vm->cfg.host->fd, KVM_GET_SUPPORTED_CPUID, c) < 0) {
		int code = errno;

		free(c);
		return err_set(e, code, "KVM_GET_SUPPORTED_CPUID: %s", strerror(code));
	}
	for (unsigned int i = 0; i < c->nent; i++) {
		struct kvm_cpuid_entry2 *l = &c->entries[i];

		/* Samples of a nested guest would get names of the guest itself. */
		if (l->function == 0x80000001 && !vm->nested_flag)
			l->ecx &= ~EXT1_ECX_SVM;
		if (l->function != 1)
			continue;
		if (!vm->nested_flag)
			l->ecx &= ~L1_ECX_VMX;
		l->ecx |= L1_ECX_HYPERVISOR;
		if (vm->cfg.host->tsc_deadline)
			l->ecx |= L1_ECX_TSC_DEADLINE;
	}
	pvm_mask_cpuid(vm, c);
	*out = c;
	return 0;
}

static int set_cpuid(struct vcpu *v, const struct kvm_cpuid2 *shared, struct err *e)
{
	size_t size = sizeof(*shared) + shared->nent * sizeof(shared->entries[0]);
	struct kvm_cpuid2 *c = malloc(size);
	unsigned int width = 0;
	int ret = 0;

	if (!c)
		return err_set(e, ENOMEM, "out of memory for CPUID");
	memcpy(c, shared, size);
	while (1u << width < v->vm->nvcpus)
		width++;
	for (unsigned int i = 0; i < c->nent; i++) {
		struct kvm_cpuid_entry2 *l = &c->entries[i];

		switch (l->function) {
		case 1: /* initial APIC id, logical processors in the package */
			l->ebx = (l->ebx & 0xffff) | v->index << 24 | (1u << width) << 16;
			break;
		case 0xb: /* one package of single-thread cores */
		case 0x1f:
			l->edx = v->index;
			if (l->index == 0) {
				l->eax = 0;
				l->ebx = 1;
				l->ecx = 1u << 8;
			} else if (l->index == 1) {
				l->eax = width;
				l->ebx = v->vm->nvcpus;
				l->ecx = 2u << 8 | 1;
			} else {
				l->eax = l->ebx = 0;
				l->ecx = l->index;
			}
			break;
		}
	}
	if (ioctl(v->fd, KVM_SET_CPUID2, c) < 0)
		ret = err_set(e, errno, "vCPU %u: KVM_SET_CPUID2: %s", v->index, strerror(errno));
	free(c);
	return ret;
}

static int set_msrs(struct vcpu *v, struct err *e)
{
	static const struct kvm_msr_entry wanted[] = {
		{ .index = MSR_IA32_MISC_ENABLE, .data = MISC_ENABLE_FAST_STRING },
		{ .index = MSR_MTRR_DEF_TYPE, .data = MTRR_ENABLE_WB },
	};
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry;
	} m = { .head.nmsrs = 1 };

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		m.entry = wanted[i];
		/* A host that lacks one of these is no error: both are defaults. */
		if (ioctl(v->fd, KVM_SET_MSRS, &m) < 0)
			return err_set(e, errno, "vCPU %u: KVM_SET_MSRS: %s", v->index,
				       strerror(errno));
	}
	return 0;
}

/* Sets virtual wire mode: the PIC's INTR arrives at LINT0, NMI at LINT1. */
static int set_lapic(struct vcpu *v, struct err *e)
{
	struct kvm_lapic_state lapic;
	uint32_t lvt;

	if (ioctl(v->fd, KVM_GET_LAPIC, &lapic) < 0)
		return err_set(e, errno, "vCPU %u: KVM_GET_LAPIC: %s", v->index, strerror(errno));
	lvt = APIC_MODE_EXTINT;
	memcpy(lapic.regs + APIC_LVT0, &lvt, sizeof(lvt));
	lvt = APIC_MODE_NMI;
	memcpy(lapic.regs + APIC_LVT1, &lvt, sizeof(lvt));
	if (ioctl(v->fd, KVM_SET_LAPIC, &lapic) < 0)
		return err_set(e, errno, "vCPU %u: KVM_SET_LAPIC: %s", v->index, strerror(errno));
	return 0;
}

int cpu_setup_vcpu(struct vcpu *v, const struct kvm_cpuid2 *cpuid, struct err *e)
{
	int ret = set_cpuid(v, cpuid, e);

	if (ret)
		return ret;
	ret = set_msrs(v, e);
	if (ret)
		return ret;
	return set_lapic(v, e);
}

static struct kvm_segment segment(uint16_t selector, uint8_t type, bool code64)
{
	return (struct kvm_segment){
		.limit = 0xffffffff,
		.selector = selector,
		.type = type,
		.present = 1,
		.db = !code64,
		.s = 1,
		.l = code64,
		.g = 1,
	};
}

int cpu_setup_entry(struct vcpu *v, const struct boot_entry *entry, struct err *e)
{
	struct kvm_regs regs = { .rip = entry->rip,
				 .rsi = entry->rsi,
				 .rax = entry->rax,
				 .rbx = entry->rbx,
				 .rflags = 2 };
	bool long_mode = entry->mode == BOOT_MODE_LONG;
	struct kvm_sregs s;

	if (ioctl(v->fd, KVM_GET_SREGS, &s) < 0)
		return err_set(e, errno, "vCPU %u: KVM_GET_SREGS: %s", v->index, strerror(errno));
	s.cs = segment(GDT_CODE, 11, long_mode);
	s.ds = s.es = s.fs = s.gs = s.ss = segment(GDT_DATA, 3, false);
	s.tr = (struct kvm_segment){ .selector = GDT_TSS, .limit = 0x67, .type = 11, .present = 1 };
	s.gdt.base = entry->gdt_base;
	s.gdt.limit = entry->gdt_limit;
	s.idt.base = 0;
	s.idt.limit = 0;
	s.cr0 = CR0_PE | CR0_ET | CR0_NE;
	s.cr3 = s.cr4 = s.efer = 0;
	if (long_mode) {
		s.cr0 |= CR0_PG;
		s.cr3 = entry->cr3;
		s.cr4 = CR4_PAE;
		s.efer = EFER_LME | EFER_LMA;
	}
	if (ioctl(v->fd, KVM_SET_SREGS, &s) < 0 || ioctl(v->fd, KVM_SET_REGS, &regs) < 0)
		return err_set(e, errno, "vCPU %u: cannot set the entry registers: %s", v->index,
			       strerror(errno));
	return 0;
}
