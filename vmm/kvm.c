/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/kvm.h"

#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define KVM_DEVICE "/dev/kvm"

static int cap(const struct kvm_host *h, long id)
{
	int v = ioctl(h->fd, KVM_CHECK_EXTENSION, id);

	return v < 0 ? 0 : v;
}

int kvm_host_open(struct kvm_host *h, struct err *e)
{
	int v;

	memset(h, 0, sizeof(*h));
	h->fd = open(KVM_DEVICE, O_RDWR | O_CLOEXEC);
	if (h->fd < 0) {
		switch (errno) {
		case ENOENT:
		case ENODEV:
		case ENXIO:
			return err_set(e, ENOENT,
				       KVM_DEVICE
				       ": no KVM on this host: load kvm_intel or kvm_amd, "
				       "enable virtualization in the firmware, or pass "
				       "--device " KVM_DEVICE " to the container");
		case EACCES:
		case EPERM:
			return err_set(e, EACCES,
				       KVM_DEVICE
				       ": permission denied: join the group that owns it "
				       "(usually `usermod -aG kvm USER`, then log in again) or run "
				       "as root");
		default:
			return err_set(e, errno, KVM_DEVICE ": cannot open: %s", strerror(errno));
		}
	}
	h->api = ioctl(h->fd, KVM_GET_API_VERSION, 0);
	v = ioctl(h->fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (h->api != KVM_API_VERSION || v < (int)sizeof(struct kvm_run)) {
		int api = h->api;

		kvm_host_close(h);
		return err_set(e, EPROTO, KVM_DEVICE ": speaks API version %d, expected %d", api,
			       KVM_API_VERSION);
	}
	h->run_size = (size_t)v;
	h->sync_regs = (unsigned int)cap(h, KVM_CAP_SYNC_REGS);
	h->max_vcpus = (unsigned int)cap(h, KVM_CAP_MAX_VCPUS);
	h->immediate_exit = cap(h, KVM_CAP_IMMEDIATE_EXIT);
	h->irqchip = cap(h, KVM_CAP_IRQCHIP);
	h->pit2 = cap(h, KVM_CAP_PIT2);
	h->user_memory = cap(h, KVM_CAP_USER_MEMORY);
	h->tss_addr = cap(h, KVM_CAP_SET_TSS_ADDR);
	h->mp_state = cap(h, KVM_CAP_MP_STATE);
	h->guest_debug = cap(h, KVM_CAP_SET_GUEST_DEBUG);
	h->emulation_exit = cap(h, KVM_CAP_EXIT_ON_EMULATION_FAILURE);
	h->stats_fd = cap(h, KVM_CAP_BINARY_STATS_FD);
	h->tsc_khz = cap(h, KVM_CAP_GET_TSC_KHZ);
	h->tsc_deadline = cap(h, KVM_CAP_TSC_DEADLINE_TIMER);
	h->nested_flag = cap(h, KVM_CAP_X86_GUEST_MODE);
	return 0;
}

void kvm_host_close(struct kvm_host *h)
{
	if (h->fd >= 0)
		close(h->fd);
	h->fd = -1;
}

int kvm_vm_create(const struct kvm_host *h)
{
	int fd;

	do
		fd = ioctl(h->fd, KVM_CREATE_VM, 0);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int kvm_stats_fd(const struct kvm_host *h, int vcpu_fd)
{
	int fd;

	if (!h->stats_fd)
		return -ENOTSUP;
	fd = ioctl(vcpu_fd, KVM_GET_STATS_FD, NULL);
	return fd < 0 ? -errno : fd;
}

uint32_t kvm_tsc_khz(const struct kvm_host *h, int vcpu_fd)
{
	int khz = h->tsc_khz ? ioctl(vcpu_fd, KVM_GET_TSC_KHZ, 0) : 0;

	return khz > 0 ? (uint32_t)khz : 0;
}

int kvm_host_require(const struct kvm_host *h, struct err *e)
{
	static const char fix[] = "this kernel's KVM is too old for kvmprof (Linux 4.18 or later)";

	if (!h->user_memory || !h->irqchip)
		return err_set(e, ENOTSUP, KVM_DEVICE ": no in-kernel irqchip or user memory: %s",
			       fix);
	if (!h->immediate_exit)
		return err_set(e, ENOTSUP, KVM_DEVICE ": no KVM_CAP_IMMEDIATE_EXIT: %s", fix);
	if ((h->sync_regs & (KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS)) !=
	    (KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS))
		return err_set(e, ENOTSUP, KVM_DEVICE ": no KVM_CAP_SYNC_REGS: %s", fix);
	if (!h->mp_state)
		return err_set(e, ENOTSUP, KVM_DEVICE ": no KVM_CAP_MP_STATE: %s", fix);
	return 0;
}

static void *close_both(void *arg)
{
	struct kvm_closer *c = arg;

	if (c->vcpu >= 0)
		close(c->vcpu);
	if (c->vm >= 0)
		close(c->vm);
	c->vcpu = c->vm = -1;
	return NULL;
}

void kvm_closer_start(struct kvm_closer *c)
{
	c->started = thread_start(&c->thread, THREAD_PROBE, close_both, c) == 0;
}

void kvm_closer_finish(struct kvm_closer *c)
{
	if (c->started)
		pthread_join(c->thread, NULL);
	else
		close_both(c);
	c->started = false;
}
