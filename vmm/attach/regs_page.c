/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/regs_page.h"

#include "base/cleanup.h"
#include "vmm/attach/process.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define WANTED (KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS)
#define TAG UINT64_C(0x31464f52504d564b) /* "KVMPROF1" */

int regs_page_map(struct kvm_run **out, pid_t pid, int fd, struct err *e)
{
	cleanup_close int copy = process_borrow(pid, fd, e);
	void *p;

	if (copy < 0)
		return -e->code;
	p = mmap(NULL, REGS_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
	if (p == MAP_FAILED)
		return err_set(e, errno, "process %d: cannot map its descriptor %d: %s", (int)pid,
			       fd, strerror(errno));
	*out = p;
	return 0;
}

/*
 * Returns the place of the tag: the last bytes of the area for registers, far behind the registers.
 */
static uint64_t *tag_of(struct kvm_run *run)
{
	_Static_assert(sizeof(run->s.regs) + sizeof(uint64_t) <= sizeof(run->s.padding),
		       "no room for a tag");
	return (uint64_t *)(void *)(run->s.padding + sizeof(run->s.padding) - sizeof(uint64_t));
}

enum regs_page_owner regs_page_begin(struct kvm_run *run)
{
	/* Any bit there means that somebody uses the page. */
	bool used = run->kvm_valid_regs || run->kvm_dirty_regs;

	if (used && *tag_of(run) != TAG)
		return (run->kvm_valid_regs & WANTED) == WANTED ? REGS_PAGE_THEIRS
								: REGS_PAGE_PARTIAL;
	*tag_of(run) = TAG;
	regs_page_mark(run);
	__atomic_fetch_or(&run->kvm_valid_regs, (__u64)WANTED, __ATOMIC_RELEASE);
	return REGS_PAGE_OURS;
}

void regs_page_end(struct kvm_run *run)
{
	__atomic_fetch_and(&run->kvm_valid_regs, ~(__u64)WANTED, __ATOMIC_RELEASE);
	*tag_of(run) = 0;
}

void regs_page_unmap(struct kvm_run *run)
{
	if (run)
		munmap(run, REGS_PAGE_SIZE);
}

uint64_t regs_page_mark(struct kvm_run *run)
{
	return __atomic_exchange_n(&run->s.regs.regs.rflags, (__u64)0, __ATOMIC_ACQ_REL);
}

bool regs_page_is_fresh(const struct kvm_run *run)
{
	return __atomic_load_n(&run->s.regs.regs.rflags, __ATOMIC_ACQUIRE) != 0;
}

void regs_page_unmark(struct kvm_run *run, uint64_t hidden)
{
	__u64 none = 0;

	__atomic_compare_exchange_n(&run->s.regs.regs.rflags, &none, (__u64)hidden, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
