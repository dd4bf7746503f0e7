/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/simd_run.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Offsets in the area of KVM_GET_XSAVE, which has the format of XSAVE (SDM vol. 1, 13.4). */
#define MXCSR_OFF 24u
#define MXCSR_MASKS 0x1f80u
#define XSTATE_BV_OFF 512u
/* AMX's state lies beyond the 4 KiB of struct kvm_xsave, and needs a permission. */
#define NO_STATES UINT64_C(0x60000)

/* Guest-physical addresses, which are equal to the virtual ones. */
#define PAGE 4096u
#define MEMORY 0x10000u
#define PML4 0x1000u
#define PDPT 0x2000u
#define PD 0x3000u
#define PT 0x4000u
#define TSS 0x6000u
#define CODE 0x8000u
#define DATA 0xa000u
/* The instruction ends at this offset of its page, followed by the OUT. */
#define CODE_END 16u
#define INT3 0xcc
#define PORT 0x80u

#define PTE_PRESENT UINT64_C(1)
#define PTE_WRITE UINT64_C(2)
#define PTE_USER UINT64_C(4)
#define RFLAGS_IOPL UINT64_C(0x3000) /* ring 3 may use ports */
#define CPUID_ENTRIES 256u

struct simd_place {
	pthread_mutex_t lock;
	int vm, vcpu;
	struct kvm_run *run;
	size_t run_size;
	uint8_t *memory;
	struct kvm_sregs sregs;
	uint64_t xcr0;
	bool ready; /* the vCPU is in ring 3: sregs and xcr0 are loaded */
};

static void put64(struct simd_place *p, uint32_t gpa, uint64_t v)
{
	memcpy(p->memory + gpa, &v, sizeof(v));
}

static void place_fill(struct simd_place *p)
{
	const uint8_t out[] = { 0xe6, PORT }; /* out %al, $PORT */

	put64(p, PML4, PDPT | PTE_PRESENT | PTE_WRITE | PTE_USER);
	put64(p, PDPT, PD | PTE_PRESENT | PTE_WRITE | PTE_USER);
	put64(p, PD, PT | PTE_PRESENT | PTE_WRITE | PTE_USER);
	put64(p, PT + TSS / PAGE * 8, TSS | PTE_PRESENT | PTE_WRITE);
	put64(p, PT + CODE / PAGE * 8, CODE | PTE_PRESENT | PTE_USER);
	put64(p, PT + DATA / PAGE * 8, DATA | PTE_PRESENT | PTE_WRITE | PTE_USER);
	memset(p->memory + CODE, INT3, PAGE);
	memcpy(p->memory + CODE + CODE_END, out, sizeof(out));
}

static struct kvm_segment segment(uint16_t selector, bool code)
{
	return (struct kvm_segment){
		.limit = 0xffffffff,
		.selector = selector,
		.type = code ? 11 : 3,
		.present = 1,
		.dpl = 3,
		.db = !code,
		.s = 1,
		.l = code,
		.g = 1,
	};
}

/* Stores the registers that bring the vCPU into ring 3 of 64-bit mode. */
static int place_registers(struct simd_place *p)
{
	struct kvm_sregs *s = &p->sregs;

	if (ioctl(p->vcpu, KVM_GET_SREGS, s) < 0)
		return -errno;
	s->cs = segment(0x33, true);
	s->ds = s->es = s->fs = s->gs = s->ss = segment(0x2b, false);
	s->tr = (struct kvm_segment){
		.base = TSS, .limit = 0x67, .selector = 0x40, .type = 11, .present = 1
	};
	s->gdt.limit = s->idt.limit = 0;
	s->cr0 = 0x80000033; /* PG, NE, ET, MP, PE */
	s->cr3 = PML4;
	s->cr4 = 0x40620; /* PAE, OSFXSR, OSXMMEXCPT, OSXSAVE */
	s->efer = 0x500;  /* LMA, LME */
	return 0;
}

/* Gives the vCPU all features that the host supports. */
static int place_cpuid(struct simd_place *p, const struct kvm_host *h)
{
	struct kvm_cpuid2 *c = calloc(1, sizeof(*c) + CPUID_ENTRIES * sizeof(c->entries[0]));
	int ret = 0;

	if (!c)
		return -ENOMEM;
	c->nent = CPUID_ENTRIES;
	if (ioctl(h->fd, KVM_GET_SUPPORTED_CPUID, c) < 0 || ioctl(p->vcpu, KVM_SET_CPUID2, c) < 0)
		ret = -errno;
	for (unsigned int i = 0; !ret && i < c->nent; i++) {
		const struct kvm_cpuid_entry2 *l = &c->entries[i];

		if (l->function == 0xd && l->index == 0)
			p->xcr0 = (l->eax | (uint64_t)l->edx << 32) & ~NO_STATES;
	}
	free(c);
	return ret ? ret : p->xcr0 ? 0 : -ENOTSUP;
}

/* Brings the vCPU into ring 3, at first and after an exception. */
static int place_reset(struct simd_place *p)
{
	struct kvm_xcrs x = { .nr_xcrs = 1, .xcrs = { { .xcr = 0, .value = p->xcr0 } } };
	struct kvm_vcpu_events none = { 0 };

	if (ioctl(p->vcpu, KVM_SET_SREGS, &p->sregs) < 0 || ioctl(p->vcpu, KVM_SET_XCRS, &x) < 0 ||
	    ioctl(p->vcpu, KVM_SET_VCPU_EVENTS, &none) < 0)
		return -errno;
	p->ready = true;
	return 0;
}

static int place_open(struct simd_place *p, const struct kvm_host *h)
{
	struct kvm_userspace_memory_region region = { .memory_size = MEMORY };
	void *at;

	p->vm = kvm_vm_create(h);
	if (p->vm < 0)
		return p->vm;
	at = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	p->memory = at;
	region.userspace_addr = (uint64_t)(uintptr_t)at;
	if (ioctl(p->vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		return -errno;
	p->vcpu = ioctl(p->vm, KVM_CREATE_VCPU, 0);
	if (p->vcpu < 0)
		return -errno;
	at = mmap(NULL, h->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, p->vcpu, 0);
	if (at == MAP_FAILED)
		return -errno;
	/* It is shared memory, which the process of a device must not have. */
	(void)madvise(at, h->run_size, MADV_DONTFORK);
	p->run = at;
	p->run_size = h->run_size;
	return 0;
}

static int place_prepare(struct simd_place *p, const struct kvm_host *h)
{
	int ret = place_open(p, h);

	if (ret)
		return ret;
	place_fill(p);
	ret = place_cpuid(p, h);
	if (ret)
		return ret;
	ret = place_registers(p);
	return ret ? ret : place_reset(p);
}

struct simd_place *simd_place_create(const struct kvm_host *h)
{
	struct simd_place *p = h->immediate_exit ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return NULL;
	p->vm = p->vcpu = -1;
	pthread_mutex_init(&p->lock, NULL);
	if (place_prepare(p, h)) {
		simd_place_destroy(p);
		return NULL;
	}
	return p;
}

void simd_place_destroy(struct simd_place *p)
{
	if (!p)
		return;
	if (p->run)
		munmap(p->run, p->run_size);
	if (p->vcpu >= 0)
		close(p->vcpu);
	if (p->vm >= 0)
		close(p->vm);
	if (p->memory)
		munmap(p->memory, MEMORY);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Writes the instruction, and checks the bytes at the place where they will be executed. */
static bool place_code(struct simd_place *p, const struct simd_form *f)
{
	uint8_t *end = p->memory + CODE + CODE_END;
	struct simd_form placed = *f;

	if (!f->len || f->len > SIMD_FORM_MAX || f->memory_size > SIMD_OPERAND_MAX)
		return false;
	memset(p->memory + CODE, INT3, CODE_END - f->len);
	memcpy(end - f->len, f->code, f->len);
	memcpy(placed.code, end - f->len, f->len);
	return simd_form_check(&placed);
}

/* Runs up to the OUT. Returns 0, or -ENOTSUP if something else ended it. */
static int place_run(struct simd_place *p)
{
	int ret;

	p->run->immediate_exit = 0;
	do /* a signal is for the guest's vCPU, which has noted it */
		ret = ioctl(p->vcpu, KVM_RUN, 0);
	while (ret < 0 && (errno == EINTR || errno == EAGAIN));
	if (ret < 0 || p->run->exit_reason != KVM_EXIT_IO || p->run->io.port != PORT ||
	    p->run->io.direction != KVM_EXIT_IO_OUT)
		return -ENOTSUP;
	/*
	 * KVM advances past the OUT at the next entry, which ends before the guest's first
	 * instruction.
	 */
	p->run->immediate_exit = 1;
	return ioctl(p->vcpu, KVM_RUN, 0) < 0 && errno == EINTR ? 0 : -ENOTSUP;
}

static uint32_t mxcsr_of(const struct kvm_xsave *x)
{
	uint32_t mxcsr;

	memcpy(&mxcsr, (const uint8_t *)x->region + MXCSR_OFF, sizeof(mxcsr));
	return mxcsr;
}

static void set_mxcsr(struct kvm_xsave *x, uint32_t mxcsr)
{
	memcpy((uint8_t *)x->region + MXCSR_OFF, &mxcsr, sizeof(mxcsr));
}

static int place_enter(struct simd_place *p, const struct simd_form *f, const struct simd_values *v)
{
	struct kvm_regs r = { .rax = v->rax,
			      .rdx = v->rdx,
			      .rbx = f->memory_size ? DATA + PAGE - f->memory_size : 0,
			      .rip = CODE + CODE_END - f->len,
			      .rflags = v->rflags | RFLAGS_IOPL };
	struct kvm_xsave x = v->vectors;
	uint64_t states;

	memcpy(&states, (uint8_t *)x.region + XSTATE_BV_OFF, sizeof(states));
	states &= p->xcr0;
	memcpy((uint8_t *)x.region + XSTATE_BV_OFF, &states, sizeof(states));
	set_mxcsr(&x, mxcsr_of(&x) | MXCSR_MASKS);
	memset(p->memory + DATA, 0, PAGE);
	memcpy(p->memory + DATA + PAGE - f->memory_size, v->memory, f->memory_size);
	if (ioctl(p->vcpu, KVM_SET_XSAVE, &x) < 0 || ioctl(p->vcpu, KVM_SET_REGS, &r) < 0)
		return -errno;
	return 0;
}

static int place_leave(struct simd_place *p, const struct simd_form *f, struct simd_values *v)
{
	uint32_t mxcsr = mxcsr_of(&v->vectors);
	struct kvm_xsave x;
	struct kvm_regs r;

	if (ioctl(p->vcpu, KVM_GET_REGS, &r) < 0 || ioctl(p->vcpu, KVM_GET_XSAVE, &x) < 0)
		return -errno;
	set_mxcsr(&x, (mxcsr_of(&x) & ~MXCSR_MASKS) | (mxcsr & MXCSR_MASKS));
	v->vectors = x;
	if (f->gpr_written != SIMD_NO_GPR)
		v->rax = r.rax;
	if (f->index)
		v->rcx = r.rcx;
	if (f->flags)
		v->rflags = r.rflags;
	memcpy(v->memory, p->memory + DATA + PAGE - f->memory_size, f->memory_size);
	return 0;
}

int simd_run(struct simd_place *p, const struct simd_form *f, struct simd_values *v)
{
	int ret;

	pthread_mutex_lock(&p->lock);
	ret = !place_code(p, f) ? -ENOTSUP : p->ready ? 0 : place_reset(p);
	ret = ret ? ret : place_enter(p, f, v);
	if (!ret) {
		p->ready = false;
		ret = place_run(p);
		p->ready = !ret;
	}
	ret = ret ? ret : place_leave(p, f, v);
	pthread_mutex_unlock(&p->lock);
	return ret;
}
