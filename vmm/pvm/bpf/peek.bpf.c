/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peek.bpf: samples a vCPU in an interrupt of its processor.
 *
 * The program runs in the kernel, by BPF_PROG_TEST_RUN on a processor of our choice: in an
 * interrupt to it, in which `current` is the task that runs there. If that is the vCPU's thread,
 * and KVM's state shows that the interrupt has interrupted the guest itself
 * (handling_intr_from_guest is set around the handling of host interrupts between guest and exit
 * handler and nowhere else), the registers that KVM has saved are the guest's at this instruction.
 * In all other cases the program reports nothing.
 *
 * Guest memory is read through the VMM's own mapping. Memory that is not mapped in at the moment
 * cannot be loaded in an interrupt: then the answer says so. All bytes that are read, including
 * page-table entries, go into the answer with their addresses, so that the same code that reads
 * memory otherwise (capture, mmu) can read this record instead; bytes that are missing there make
 * the sample invalid.
 *
 * Nothing is written except the block that is shared with us.
 *
 * Sources: include/linux/kvm_host.h, arch/x86/include/asm/kvm_host.h, arch/x86/kvm/x86.h
 * (kvm_before_interrupt), x86.c (vcpu_enter_guest), net/bpf/test_run.c; SDM vol. 3, 4.5.
 */
#include "vmm/attach/bpf/kernel.bpf.h"
#include "vmm/pvm/peek_record.h"

struct mm_struct;
struct pid;

struct task_struct {
	struct mm_struct *mm;
	struct files_struct *files;
	struct pid *thread_pid;
	int on_rq, on_cpu;
} KERNEL_TYPE;

struct kvm {
	struct mm_struct *mm;
} KERNEL_TYPE;

struct kvm_vcpu_arch {
	unsigned long regs[17]; /* PEEK_GPRS, and RIP */
	__u32 regs_avail;
	unsigned long cr0, cr2, cr3, cr4;
	__u64 efer;
	__u8 handling_intr_from_guest;
} KERNEL_TYPE;

struct kvm_vcpu {
	struct kvm *kvm;
	int cpu, vcpu_id, mode;
	struct pid *pid;
	struct kvm_vcpu_arch arch;
} KERNEL_TYPE;

enum kvm_reg {
	VCPU_EXREG_CR3 = 1000, /* replaced by the kernel's own value at load time */
};

#define REG_RSP 4
#define REG_RIP 16
#define IN_GUEST_MODE 1

/* Types of KVM on page tables (kvm_pvm), which keeps all state of a vCPU in memory. */
struct kvm_segment {
	__u16 selector;
} KERNEL_TYPE;

struct desc_ptr {
	unsigned long address;
} __attribute__((packed)) KERNEL_TYPE;

struct vcpu_pvm {
	struct kvm_vcpu vcpu;
	struct kvm_segment seg[8];
	struct desc_ptr idt;
	int cpl;
	unsigned long rflags;
} KERNEL_TYPE;

#define SEG_CS 1
#define SEG_SS 2

#define PTE_PRESENT 1ull
#define PTE_LARGE (1ull << 7)
#define PTE_ADDR 0x000ffffffffff000ull
#define PTE_PAT_LARGE (1ull << 12)
#define CR4_LA57 (1ull << 12)
#define CR3_USER_TABLE (1ull << 12)
#define KERNEL_HALF (1ull << 63)

/* Results of reads and walks. */
#define FINE 0
#define UNMAPPED 1 /* it is certain that the guest has nothing there */
#define FAILED 2

char LICENSE[] SEC("license") = "GPL";
/* The only variable of its section, which kvmprof maps. */
struct peek_block block;

/* Results that are too wide for the verifier as return values. */
static __u64 at_host SEC(".data"), at_entry SEC(".data");
/* The table of the last 4 KiB page, which neighbouring pages share. */
static __u64 last_root SEC(".data"), last_top SEC(".data"), last_table SEC(".data");

/* Translates a guest-physical address to the VMM's memory; stores it in at_host, or 0. */
__attribute__((noinline)) int find_host(__u64 gpa)
{
	at_host = 0;
	for (unsigned int i = 0; i < PEEK_REGIONS; i++) {
		const struct peek_region *r = &block.q.region[i];

		if (i >= block.q.nregions)
			break;
		if (gpa - r->gpa < r->size) {
			at_host = r->host + (gpa - r->gpa);
			break;
		}
	}
	return 0;
}

/* Reads memory of the VMM into the record. Stores the first eight bytes in at_entry. */
__attribute__((noinline)) int read_host(__u64 host, __u64 len)
{
	__u32 off = block.a.used, n = block.a.npieces;

	if (n >= PEEK_PIECES || off >= PEEK_DATA || !len)
		return FAILED;
	/*
	 * This keeps the compiler from merging this check with the last one, which the verifier
	 * cannot follow.
	 */
	asm volatile("" : "+r"(len));
	if (len > PEEK_CHUNK)
		return FAILED;
	if (bpf_probe_read_user(&block.a.data[off & (PEEK_DATA - 1)], len, (void *)host))
		return FAILED;
	at_entry = *(__u64 *)&block.a.data[off & (PEEK_DATA - 8)];
	n &= PEEK_PIECES - 1;
	block.a.piece[n].host = host;
	block.a.piece[n].off = off;
	block.a.piece[n].len = (__u32)len;
	block.a.npieces = n + 1;
	block.a.used = off + (((__u32)len + 7) & ~7u);
	return FINE;
}

/* Reads the page-table entry at gpa into at_entry. There is none outside of RAM. */
__attribute__((noinline)) int read_entry(__u64 gpa)
{
	find_host(gpa);
	if (!at_host)
		return UNMAPPED;
	return read_host(at_host, 8);
}

/*
 * Walks the page tables like mmu_walk(). Stores in at_host the place of va in the VMM; 0 if it is
 * mapped to something other than RAM.
 */
__attribute__((noinline)) int walk(__u64 va, __u64 root)
{
	__u64 table = root & PTE_ADDR;
	int five = (block.a.regs.cr4 & CR4_LA57) != 0;
	int ret;

	at_host = 0;
	if ((__u64)((__s64)(va << (five ? 7 : 16)) >> (five ? 7 : 16)) != va)
		return UNMAPPED;
	if (last_root == root && last_top == va >> 21 && last_table) {
		ret = read_entry(last_table + ((va >> 12 & 511) << 3));
		if (ret)
			return ret;
		if (!(at_entry & PTE_PRESENT))
			return UNMAPPED;
		find_host((at_entry & PTE_ADDR) | (va & 4095));
		return FINE;
	}
	for (int level = 5; level >= 1; level--) {
		int shift = 12 + (level - 1) * 9;
		__u64 offset = (1ull << shift) - 1;

		if (level == 5 && !five)
			continue;
		ret = read_entry(table + ((va >> shift & 511) << 3));
		if (ret)
			return ret;
		if (!(at_entry & PTE_PRESENT))
			return UNMAPPED;
		if (level == 1 || at_entry & PTE_LARGE) {
			__u64 base = at_entry & PTE_ADDR;

			if (level > 3)
				return UNMAPPED;
			if (level > 1)
				base &= ~PTE_PAT_LARGE;
			if (base & offset)
				return UNMAPPED;
			if (level == 1) {
				last_root = root;
				last_top = va >> 21;
				last_table = table;
			}
			find_host(base | (va & offset));
			return FINE;
		}
		table = at_entry & PTE_ADDR;
	}
	return UNMAPPED;
}

/* Reads virtual memory like mmu_read(), as far as it is mapped. */
__attribute__((noinline)) int read_virtual(__u64 va, __u32 len, __u64 root)
{
	for (int i = 0; i < 6; i++) {
		__u32 n = PEEK_CHUNK - (va & (PEEK_CHUNK - 1));
		int ret;

		if (!len)
			return FINE;
		if (n > len)
			n = len;
		ret = walk(va, root);
		if (!ret && !at_host)
			ret = UNMAPPED;
		if (!ret)
			ret = read_host(at_host, n);
		if (ret)
			return ret;
		va += n;
		len -= n;
	}
	return len ? FAILED : FINE;
}

/* Reads the running task, as capture_task() will. */
__attribute__((noinline)) int read_task(__u64 root)
{
	__u64 task;
	int ret;

	if (!block.q.current)
		return FINE;
	ret = read_virtual(block.q.current, 8, root);
	if (ret == UNMAPPED) {
		/* With page-table isolation a program runs on tables without most of the kernel. */
		root &= ~CR3_USER_TABLE;
		ret = read_virtual(block.q.current, 8, root);
	}
	if (ret)
		return ret;
	task = at_entry;
	if (!(task & KERNEL_HALF))
		return FINE;
	for (unsigned int i = 0; i < PEEK_MEMBERS; i++) {
		__u32 len = block.q.member[i].len;

		if (i >= block.q.nmembers)
			break;
		if (len > PEEK_CHUNK)
			return FAILED;
		ret = read_virtual(task + block.q.member[i].off, len, root);
		if (ret)
			return ret;
	}
	return FINE;
}

static __always_inline int are_registers_in_memory(void)
{
	return bpf_core_field_exists(struct vcpu_pvm, cpl) &&
	       bpf_core_field_exists(struct vcpu_pvm, rflags) &&
	       bpf_core_field_exists(struct vcpu_pvm, idt) &&
	       bpf_core_field_exists(struct vcpu_pvm, seg);
}

static __always_inline void read_regs(struct kvm_vcpu *v)
{
	struct peek_regs *r = &block.a.regs;
	struct vcpu_pvm *pvm = (struct vcpu_pvm *)v;
	unsigned long regs[17];

	r->known = 0;
	if (!are_registers_in_memory())
		return;
	if (bpf_core_read(regs, sizeof(regs), &v->arch.regs))
		return;
	for (int i = 0; i < 16; i++)
		r->gpr[i] = regs[i];
	r->rip = regs[REG_RIP];
	r->cr0 = BPF_CORE_READ(v, arch.cr0);
	r->cr2 = BPF_CORE_READ(v, arch.cr2);
	r->cr3 = BPF_CORE_READ(v, arch.cr3);
	r->cr4 = BPF_CORE_READ(v, arch.cr4);
	r->efer = BPF_CORE_READ(v, arch.efer);
	r->cpl = BPF_CORE_READ(pvm, cpl);
	r->rflags = BPF_CORE_READ(pvm, rflags);
	r->idt_base = BPF_CORE_READ(pvm, idt.address);
	r->cs = BPF_CORE_READ(pvm, seg[SEG_CS].selector);
	r->ss = BPF_CORE_READ(pvm, seg[SEG_SS].selector);
	r->known = 1;
}

/* Returns whether KVM has cached these registers, on hosts where it reads them only when needed. */
static __always_inline int are_cached(struct kvm_vcpu *v)
{
	__u32 want = 1u << REG_RSP | 1u << REG_RIP |
		     1u << bpf_core_enum_value(enum kvm_reg, VCPU_EXREG_CR3);

	return (BPF_CORE_READ(v, arch.regs_avail) & want) == want;
}

/*
 * Returns the vCPU behind the descriptor of the thread that runs here, if it is the requested one,
 * else 0.
 */
static __always_inline struct kvm_vcpu *own_vcpu(struct task_struct *task)
{
	struct kvm_vcpu *v = bpf_file_data(BPF_CORE_READ(task, files), block.q.fd);

	/* It belongs to this process, has this number, and was last run by this thread. */
	if (!v || BPF_CORE_READ(v, kvm, mm) != BPF_CORE_READ(task, mm) ||
	    (__u32)BPF_CORE_READ(v, vcpu_id) != block.q.vcpu_id ||
	    BPF_CORE_READ(v, pid) != BPF_CORE_READ(task, thread_pid))
		return 0;
	return v;
}

static __always_inline int bpf_peek_take(void)
{
	struct bpf_pidns_info id = { 0 };
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct kvm_vcpu *v;
	int ret;

	if (bpf_get_ns_current_pid_tgid(block.q.pidns_dev, block.q.pidns_ino, &id, sizeof(id)) ||
	    id.pid != block.q.tid)
		return PEEK_ELSEWHERE;
	v = own_vcpu(task);
	if (!v)
		return PEEK_NO_VCPU;
	block.a.vcpu = (__u64)v;
	block.a.task = (__u64)task;
	if (!BPF_CORE_READ(v, arch.handling_intr_from_guest))
		return PEEK_OUTSIDE;
	if (!are_cached(v))
		return PEEK_UNCACHED;
	read_regs(v);
	if (!block.a.regs.known)
		return PEEK_UNCACHED;
	if (block.a.regs.cpl != 3)
		return PEEK_KERNEL;
	last_table = 0;
	ret = read_task(block.a.regs.cr3);
	if (ret != FAILED)
		ret = read_virtual(block.a.regs.gpr[REG_RSP], block.q.stack_len, block.a.regs.cr3);
	return ret == FAILED ? PEEK_ABSENT : PEEK_TAKEN;
}

SEC("raw_tp")
int peek(void *ctx)
{
	struct kvm_vcpu *v = (struct kvm_vcpu *)block.q.vcpu;
	struct task_struct *task = (struct task_struct *)block.q.task;

	(void)ctx;
	block.a.npieces = block.a.used = 0;
	block.a.status = PEEK_NONE;
	switch (block.q.what) {
	case PEEK_SAMPLE:
		block.a.status = bpf_peek_take();
		break;
	case PEEK_LOOK:
		block.a.supported = are_registers_in_memory();
		block.a.running = BPF_CORE_READ(v, mode) == IN_GUEST_MODE;
		block.a.cpu = BPF_CORE_READ(v, cpu);
		block.a.waiting = BPF_CORE_READ(task, on_rq) && !BPF_CORE_READ(task, on_cpu);
		break;
	case PEEK_STATE:
		read_regs(v);
		break;
	}
	return 0;
}
