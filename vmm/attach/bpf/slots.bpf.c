/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slots.bpf: reads the memory slots of a machine from KVM.
 *
 * The program runs in the context of kvmprof's thread (BPF_PROG_TEST_RUN without a processor), so
 * `current` is that thread. One of its descriptors is a vCPU of the other process, copied for this
 * call. The way leads from there to struct kvm_vcpu, struct kvm and the slots of address space 0.
 *
 * KVM keeps the slots in an array (before Linux 5.17) or in a hash table by number (since). libbpf
 * finds from the kernel's types which of the two it has, and where members are (CO-RE). A change
 * replaces the list or raises its generation: both are compared at the end.
 *
 * Sources: include/linux/kvm_host.h (struct kvm_memslots, kvm_memory_slot), virt/kvm/kvm_main.c
 * (kvm_swap_active_memslots).
 */
#include "vmm/attach/bpf/kernel.bpf.h"
#include "vmm/attach/slots_record.h"

struct task_struct {
	struct files_struct *files;
} KERNEL_TYPE;

struct hlist_node {
	struct hlist_node *next;
} KERNEL_TYPE;

struct hlist_head {
	struct hlist_node *first;
} KERNEL_TYPE;

struct kvm_memory_slot {
	struct hlist_node id_node[2]; /* since 5.17: in the active list and in the other one */
	__u64 base_gfn;
	unsigned long npages, userspace_addr;
	__u32 flags;
} KERNEL_TYPE;

struct kvm_memslots {
	__u64 generation;
	struct hlist_head id_hash[1 << 7];
	int node_idx;
} KERNEL_TYPE;

struct kvm_memslots___array {
	__u64 generation;
	int used_slots;
	struct kvm_memory_slot memslots[1];
} KERNEL_TYPE;

struct kvm {
	struct kvm_memslots *memslots[1]; /* RAM as it is outside of SMM */
} KERNEL_TYPE;

struct kvm_vcpu {
	struct kvm *kvm;
} KERNEL_TYPE;

#define UPDATE_IN_PROGRESS (1ull << 63) /* bit of a generation */
#define BUCKETS 128u

char LICENSE[] SEC("license") = "GPL";
/* The only variable of its section, which kvmprof maps. */
struct slots_block block;
/*
 * The position of the walk through the hash table: the buckets, the next one, the next link of a
 * slot.
 */
static __u64 heads SEC(".data"), link_off SEC(".data"), at_link SEC(".data");
static __u32 bucket SEC(".data"), nbuckets SEC(".data");

static __always_inline struct kvm *machine_of(unsigned int fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct kvm_vcpu *v = bpf_file_data(BPF_CORE_READ(task, files), fd);

	return v ? BPF_CORE_READ(v, kvm) : 0;
}

static __always_inline void add_slot(struct kvm_memory_slot *slot)
{
	__u32 n = block.n;

	if (n < SLOTS_MAX) {
		struct slots_entry *x = &block.slot[n & (SLOTS_MAX - 1)];

		x->gfn = BPF_CORE_READ(slot, base_gfn);
		x->npages = BPF_CORE_READ(slot, npages);
		x->host = BPF_CORE_READ(slot, userspace_addr);
		x->flags = BPF_CORE_READ(slot, flags);
	}
	block.n = n + 1;
}

/*
 * Reads the head of one bucket, or one slot. Returns SLOTS_NONE if there is more. A function of its
 * own, so that it is verified only once.
 */
__attribute__((noinline)) int read_step(void)
{
	if (at_link) {
		add_slot((struct kvm_memory_slot *)(at_link - link_off));
		at_link = (__u64)BPF_CORE_READ((struct hlist_node *)at_link, next);
		return SLOTS_NONE;
	}
	if (bucket >= nbuckets)
		return SLOTS_READ;
	if (bpf_probe_read_kernel(&at_link, sizeof(at_link), (void *)(heads + bucket * 8)))
		return SLOTS_CHANGED;
	bucket++;
	return SLOTS_NONE;
}

static __always_inline int read_from_hash(struct kvm_memslots *slots)
{
	int ret = SLOTS_NONE;

	heads = (__u64)slots + bpf_core_field_offset(struct kvm_memslots, id_hash);
	nbuckets = bpf_core_field_size(struct kvm_memslots, id_hash) / 8;
	if (nbuckets > BUCKETS)
		return SLOTS_UNKNOWN;
	/* A slot has a link for each of the two lists. */
	link_off = bpf_core_field_offset(struct kvm_memory_slot, id_node);
	if (BPF_CORE_READ(slots, node_idx))
		link_off += bpf_core_type_size(struct hlist_node);
	at_link = bucket = 0;
	for (__u32 i = 0; !ret && i < SLOTS_MAX + BUCKETS + 1; i++)
		ret = read_step();
	return ret ? ret : SLOTS_TOO_MANY;
}

static __always_inline int read_from_array(struct kvm_memslots___array *slots)
{
	__u64 first = (__u64)slots + bpf_core_field_offset(struct kvm_memslots___array, memslots);
	__u32 used = (__u32)BPF_CORE_READ(slots, used_slots);

	if (used > SLOTS_MAX)
		return SLOTS_TOO_MANY;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < SLOTS_MAX; i++) {
		if (i >= used)
			break;
		add_slot((struct kvm_memory_slot *)(first + i * bpf_core_type_size(
									struct kvm_memory_slot)));
	}
	return SLOTS_READ;
}

SEC("raw_tp")
int slots(void *ctx)
{
	struct kvm *kvm = machine_of(block.fd);
	struct kvm_memslots *list;
	__u64 generation;
	int ret;

	(void)ctx;
	block.n = 0;
	block.machine = (__u64)kvm;
	block.status = SLOTS_NO_VCPU;
	if (!kvm)
		return 0;
	list = BPF_CORE_READ(kvm, memslots[0]);
	generation = BPF_CORE_READ(list, generation);
	if (bpf_core_field_exists(struct kvm_memslots, id_hash) &&
	    bpf_core_field_exists(struct kvm_memory_slot, id_node))
		ret = read_from_hash(list);
	else if (bpf_core_field_exists(struct kvm_memslots___array, used_slots))
		ret = read_from_array((struct kvm_memslots___array *)list);
	else
		ret = SLOTS_UNKNOWN;
	if (ret == SLOTS_READ &&
	    (generation & UPDATE_IN_PROGRESS || BPF_CORE_READ(kvm, memslots[0]) != list ||
	     BPF_CORE_READ(list, generation) != generation))
		ret = SLOTS_CHANGED;
	block.status = ret;
	return 0;
}
