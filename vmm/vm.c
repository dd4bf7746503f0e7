/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/vm.h"

#include "base/clock.h"
#include "base/count.h"
#include "base/thread.h"
#include "vmm/boot/load.h"
#include "vmm/dev/virtio_net.h"
#include "vmm/layout.h"
#include "vmm/machine.h"
#include "vmm/pvm.h"
#include "vmm/snapshot/snapshot_vm.h"
#include "vmm/capture/source_host.h"
#include "vmm/control.h"
#include "vmm/cpu_setup.h"
#include "vmm/dev/virtio_mmio.h"
#include "vmm/devices.h"
#include "vmm/kvm.h"
#include "vmm/vcpu.h"
#include "vmm/vcpu_thread.h"
#include "vmm/config.h"
#include "vmm/image/image.h"
#include "vmm/quirks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/*
 * The shortest period of the guest's tick on hosts that interpret ring 0: a tick costs about 20 ms
 * of interpreted handler work at 100 Hz and above; measured in docs/hosts.md.
 */
#define SLOW_TICK_NS 50000000ull

static void power_end(void *ctx, enum dev_end how)
{
	if (how == DEV_END_POWEROFF)
		machine_end(ctx, VM_END_POWEROFF, NULL, NULL, NULL);
	else
		vm_reset_request(ctx, NULL);
}

static void guest_exits(void *ctx, uint32_t status)
{
	vm_exit(ctx, status);
}

static int add_memory(struct vm *vm, struct err *e)
{
	for (unsigned int i = 0; i < vm->mem.n; i++) {
		const struct gmem_region *r = &vm->mem.region[i];
		struct kvm_userspace_memory_region slot = {
			.slot = i,
			.guest_phys_addr = r->gpa,
			.memory_size = r->size,
			.userspace_addr = (uintptr_t)r->host,
		};

		if (ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &slot) < 0)
			return err_set(e, errno,
				       "KVM refuses %llu MiB of guest memory at 0x%llx: %s",
				       (unsigned long long)(r->size >> 20),
				       (unsigned long long)r->gpa, strerror(errno));
	}
	return 0;
}

/*
 * Creates KVM's timer. Ticks that the guest did not take in time are lost, as on hardware: while
 * KVM reinjects them, it does not let AVIC deliver the guest's interrupts.
 */
static int create_pit2(struct vm *vm, struct err *e)
{
	struct kvm_pit_config pit = { .flags = KVM_PIT_SPEAKER_DUMMY };
	struct kvm_reinject_control lost = { .pit_reinject = 0 };

	if (ioctl(vm->fd, KVM_CREATE_PIT2, &pit) < 0)
		return err_set(e, errno, "KVM_CREATE_PIT2: %s", strerror(errno));
	/* Without this control, ticks are reinjected, which does no harm. */
	(void)ioctl(vm->fd, KVM_REINJECT_CONTROL, &lost);
	return 0;
}

static int add_platform(struct vm *vm, struct dev_irq irq)
{
	struct dev_power power = { power_end, vm };
	int ret =
		serial_init(&vm->serial, &vm->bus, irq, vm->setup->console, vm->setup->console_ctx);

	if (ret)
		return ret;
	ret = platform_init(&vm->platform, &vm->bus, power);
	if (ret)
		return ret;
	ret = pci_init(&vm->pci, &vm->bus, power);
	if (ret)
		return ret;
	return platform_exit_init(&vm->debug_exit, &vm->bus, guest_exits, vm);
}

static int add_devices(struct vm *vm, struct err *e)
{
	struct dev_irq irq = { devices_irq, vm };
	struct pit_load load = { vm->pvm ? vm->pvm->vcpu_runs : NULL, vm };
	int ret = add_platform(vm, irq);

	if (ret)
		return err_set(e, -ret, "cannot register the platform devices: %s", strerror(-ret));
	ret = devices_create(vm, e);
	if (ret)
		return ret;
	if (vm->setup->slow_tick) {
		ret = pit_init(&vm->pit, &vm->bus, irq, load, SLOW_TICK_NS, e);
		vm->have_pit = ret == 0;
		return ret;
	}
	return vm->cfg.host->pit2 ? create_pit2(vm, e) : 0;
}

static int create_kvm_vm(struct vm *vm, struct err *e)
{
	uint64_t identity = GPA_KVM_IDENTITY;
	int ret;

	vm->fd = kvm_vm_create(vm->cfg.host);
	if (vm->fd < 0)
		return err_set(e, -vm->fd, "KVM_CREATE_VM: %s", strerror(-vm->fd));
	/* Needed by older Intel processors only; must come before the first vCPU. */
	if (vm->cfg.host->tss_addr) {
		(void)ioctl(vm->fd, KVM_SET_IDENTITY_MAP_ADDR, &identity);
		(void)ioctl(vm->fd, KVM_SET_TSS_ADDR, GPA_KVM_TSS);
	}
	/* Memory comes before devices: both wait for grace periods, and the first wait is cheap. */
	ret = add_memory(vm, e);
	if (ret)
		return ret;
	if (ioctl(vm->fd, KVM_CREATE_IRQCHIP, 0) < 0)
		return err_set(e, errno, "KVM_CREATE_IRQCHIP: %s", strerror(errno));
	/* An interrupt between a breakpoint and its step would be mistaken for the step. */
	ret = ioctl(vm->cfg.host->fd, KVM_CHECK_EXTENSION, KVM_CAP_SET_GUEST_DEBUG2);
	vm->step_flags = ret > 0 ? (unsigned int)ret & KVM_GUESTDBG_BLOCKIRQ : 0;
	return pvm_create(vm, e);
}

static int create_vcpu(struct vm *vm, unsigned int index, struct err *e)
{
	struct vcpu *v = &vm->vcpu[index];

	v->fd = ioctl(vm->fd, KVM_CREATE_VCPU, index);
	if (v->fd < 0)
		return err_set(e, errno, "vCPU %u: KVM_CREATE_VCPU: %s", index, strerror(errno));
	v->run = mmap(NULL, vm->cfg.host->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	if (v->run == MAP_FAILED) {
		v->run = NULL;
		return err_set(e, errno, "vCPU %u: cannot map kvm_run: %s", index, strerror(errno));
	}
	(void)madvise(v->run, vm->cfg.host->run_size, MADV_DONTFORK);
	if (ring_init(&v->ring, vm->cfg.ring_size) < 0)
		return err_set(e, ENOMEM, "vCPU %u: no memory for a ring of %zu bytes", index,
			       vm->cfg.ring_size);
	return 0;
}

static int create_vcpus(struct vm *vm, struct err *e)
{
	struct kvm_cpuid2 *cpuid = NULL;
	int ret = cpu_setup_cpuid(vm, &cpuid, e);

	for (unsigned int i = 0; !ret && i < vm->nvcpus; i++) {
		ret = create_vcpu(vm, i, e);
		ret = ret ? ret : cpu_setup_vcpu(&vm->vcpu[i], cpuid, e);
	}
	free(cpuid);
	return ret;
}

static int load_kernel(struct vm *vm, struct err *e)
{
	struct boot_config boot = {
		.way = vm->setup->boot,
		.entry = vm->setup->entry,
		.name = vm->setup->image_name,
		.module = vm->setup->module,
		.nmodules = vm->setup->nmodules,
		.cmdline = vm->setup->cmdline,
		.initrd = vm->setup->initrd,
		.initrd_len = vm->setup->initrd_len,
		.vcpus = vm->nvcpus,
		.pci = vm->pci.n != 0,
	};
	struct buf cmdline;
	uint8_t seed[BOOT_RNG_SEED];
	struct boot_entry entry;
	int ret;

	if (getrandom(seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed))
		boot.rng_seed = seed;
	buf_init(&cmdline);
	if (vm->setup->transport == VM_VIRTIO_MMIO)
		boot.virtio_mmio = vm->nvirtio;
	/* They go in front, because what follows a -- is for init. */
	if (boot.virtio_mmio && vm->setup->image->is_linux) {
		virtio_mmio_cmdline(vm->nvirtio, &cmdline);
		buf_add(&cmdline, boot.cmdline, strlen(boot.cmdline) + 1);
		if (cmdline.failed) {
			buf_deinit(&cmdline);
			return err_nomem(e);
		}
		boot.cmdline = (const char *)cmdline.data;
	}
	vm->result.load_ns = clock_mono_ns();
	ret = boot_load(&vm->mem, vm->setup->image, &boot, &entry, e);

	vm->result.load_ns = clock_mono_ns() - vm->result.load_ns;
	buf_deinit(&cmdline);
	if (ret)
		return ret;
	vm->boot_low = entry.low;
	vm->boot_high = entry.high;
	return cpu_setup_entry(&vm->vcpu[0], &entry, e);
}

static int alloc_memory(struct vm *vm, struct err *e)
{
	struct gmem_config cfg = {
		.size = vm->setup->mem_size,
		.pages = vm->setup->pages,
		.bind = vm->setup->bind_memory,
		.node = vm->setup->numa_node,
	};

	return gmem_alloc(&vm->mem, &cfg, e);
}

/*
 * Loads the snapshot's RAM. File pages are neither huge nor on a chosen node: if that was
 * requested, the RAM is copied.
 */
static int restore_memory(struct vm *vm, struct err *e)
{
	return vm->setup->pages > GMEM_PAGES_SMALL || vm->setup->bind_memory
		       ? snapshot_read_ram(vm->setup->snapshot, &vm->mem, e)
		       : snapshot_map_ram(vm->setup->snapshot, &vm->mem, e);
}

static void own_destroy(struct vm *vm)
{
	devices_destroy(vm);
	if (vm->have_pit)
		pit_deinit(&vm->pit);
	pvm_stop(vm);
	for (unsigned int i = 0; i < vm->nvcpus; i++) {
		struct vcpu *v = &vm->vcpu[i];

		source_host_release(v);
		if (v->stat_fd >= 0)
			close(v->stat_fd);
		if (v->run)
			munmap(v->run, vm->cfg.host->run_size);
		if (v->fd >= 0)
			close(v->fd);
	}
	if (vm->fd >= 0)
		close(vm->fd);
	gmem_alloc_free(&vm->mem);
	snapshot_boot_free(vm->boot);
	serial_deinit(&vm->serial);
	pci_deinit(&vm->pci);
	platform_deinit(&vm->platform);
}

void vm_destroy(struct vm *vm)
{
	if (!vm)
		return;
	vm->ops->destroy(vm);
	machine_free(vm);
}

static void own_join(struct vm *vm)
{
	for (unsigned int i = 0; i < vm->nvcpus; i++) {
		struct vcpu *v = &vm->vcpu[i];

		if (v->started)
			pthread_join(v->thread, NULL);
		v->started = false;
	}
	/* The guest is gone, so its packets and their records are complete. */
	if (vm->net)
		virtio_net_end(vm->net);
}

static int own_start(struct vm *vm, struct err *e)
{
	struct err why = { 0 };
	int ret;

	vcpu_install_handler();
	ret = devices_start(vm, e);
	if (ret)
		return ret;
	ret = pvm_start(vm, e);
	if (ret)
		return ret;
	/* vCPUs wait for this lock before their first instruction. */
	pthread_mutex_lock(&vm->start_lock);
	for (unsigned int i = 0; !ret && i < vm->nvcpus; i++) {
		ret = thread_start_early(&vm->vcpu[i].thread, THREAD_VCPU, vcpu_early, vcpu_main,
					 &vm->vcpu[i]);
		vm->vcpu[i].started = ret == 0;
		if (ret)
			ret = err_set(&why, ret, "cannot start a vCPU thread: %s", strerror(ret));
	}
	if (!ret && vm->setup->ready)
		ret = vm->setup->ready(vm->setup->ready_ctx, &why);
	if (ret)
		machine_end(vm, VM_END_ERROR, NULL, NULL, &why);
	pthread_mutex_unlock(&vm->start_lock);
	if (ret) {
		own_join(vm);
		return err_set(e, -ret, "%s", why.text);
	}
	return 0;
}

static void own_wake(struct vm *vm)
{
	for (unsigned int i = 0; i < vm->nvcpus; i++)
		vcpu_kick(&vm->vcpu[i]);
}

static const struct gmem *own_memory(const struct vm *vm)
{
	return &vm->mem;
}

const struct machine_ops machine_own = {
	.start = own_start,
	.wake = own_wake,
	.join = own_join,
	.destroy = own_destroy,
	.memory = own_memory,
};

static struct vm_sampling sampling_of(const struct vm_config *cfg)
{
	struct vm_sampling s = {
		.host = cfg->host,
		.quirks = cfg->quirks,
		.nevents = cfg->nevents,
		.idle_start = cfg->idle_start,
		.nbreakpoints = cfg->nbreakpoints,
		.reached = cfg->reached,
		.reached_ctx = cfg->reached_ctx,
		.look_for_kernel = cfg->look_for_kernel,
		.plan = cfg->plan,
		.ring_size = cfg->ring_size,
	};

	memcpy(s.event, cfg->event, sizeof(s.event));
	memcpy(s.breakpoint, cfg->breakpoint, sizeof(s.breakpoint));
	return s;
}

/* Creates the parts of a machine. After an error the caller's vm_destroy() frees what exists. */
static int create_parts(struct vm *vm, struct err *e)
{
	const struct vm_config *cfg = vm->setup;
	int ret = alloc_memory(vm, e);

	if (ret)
		return ret;
	ret = cfg->snapshot ? restore_memory(vm, e) : 0;
	if (ret)
		return ret;
	ret = create_kvm_vm(vm, e);
	if (ret)
		return ret;
	ret = add_devices(vm, e);
	if (ret)
		return ret;
	ret = create_vcpus(vm, e);
	if (ret)
		return ret;
	for (unsigned int i = 0; i < cfg->nevents; i++)
		for (unsigned int k = 0; cfg->event[i].kind == VM_EVENT_HOST && k < vm->nvcpus; k++)
			source_host_prepare(&vm->vcpu[k]);
	ret = cfg->snapshot ? snapshot_restore(vm, cfg->snapshot, e) : load_kernel(vm, e);
	return ret || !cfg->reboots ? ret : snapshot_boot_save(&vm->boot, vm, e);
}

int vm_create(struct vm **out, const struct vm_config *cfg, struct err *e)
{
	struct vm *vm;
	int ret;

	if (cfg->vcpus < 1 || cfg->vcpus > VM_MAX_VCPUS)
		return err_set(e, EINVAL, "%u vCPUs: expected 1 to %d", cfg->vcpus, VM_MAX_VCPUS);
	if (posix_memalign((void **)&vm, 64, sizeof(*vm) + cfg->vcpus * sizeof(vm->vcpu[0])))
		return err_nomem(e);
	memset(vm, 0, sizeof(*vm) + cfg->vcpus * sizeof(vm->vcpu[0]));
	vm->setup = malloc(sizeof(*vm->setup));
	if (!vm->setup) {
		free(vm);
		return err_nomem(e);
	}
	*vm->setup = *cfg;
	vm->cfg = sampling_of(cfg);
	vm->ops = &machine_own;
	vm->pvm = pvm_ops_for(cfg->quirks);
	vm->nested_flag = cfg->host->nested_flag;
	vm->fd = vm->end_fd = -1;
	vm->nvcpus = vm->places = cfg->vcpus;
	pthread_mutex_init(&vm->end_lock, NULL);
	pthread_mutex_init(&vm->start_lock, NULL);
	for (unsigned int i = 0; i < vm->nvcpus; i++) {
		vm->vcpu[i].index = i;
		vm->vcpu[i].vm = vm;
		vm->vcpu[i].fd = vm->vcpu[i].account_fd = -1;
		vm->vcpu[i].halt_fd = vm->vcpu[i].stat_fd = -1;
	}
	vm_control_init(vm);
	vm->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = vm->end_fd < 0 ? err_set(e, errno, "eventfd: %s", strerror(errno))
			     : create_parts(vm, e);
	if (ret) {
		vm_destroy(vm);
		return ret;
	}
	*out = vm;
	return 0;
}

int vm_start(struct vm *vm, struct err *e)
{
	return vm->ops->start(vm, e);
}

bool vm_reset_is_due(const struct vm *vm)
{
	return atomic_load(&((struct vm *)vm)->reset_due);
}

/* Forgets cached values of a vCPU's registers, which belong to the previous kernel. */
static void forget_registers(struct vcpu *v)
{
	v->kernel_gs = v->swapped_gs = v->swapped_ns = v->lstar = 0;
	atomic_store(&v->dead_looks, 0);
	v->run->kvm_dirty_regs = 0;
}

int vm_boot_again(struct vm *vm, struct err *e)
{
	int ret = vm_pause(vm, e);

	if (ret)
		return ret;
	ret = snapshot_boot_restore(vm->boot, vm, e);
	for (unsigned int i = 0; i < vm->nvcpus; i++)
		forget_registers(&vm->vcpu[i]);
	atomic_store(&vm->reset_due, false);
	/* After an error the vCPUs stay stopped until the end. */
	if (!ret)
		vm_resume(vm);
	return ret;
}

int vm_end_fd(const struct vm *vm)
{
	return vm->end_fd;
}

void vm_join(struct vm *vm)
{
	vm->ops->join(vm);
}

int64_t vm_tsc_jump_ms(const struct vm *vm)
{
	return vm->cfg.quirks->tsc_khz ? vm->tsc_jump / (int64_t)vm->cfg.quirks->tsc_khz : 0;
}

uint64_t vm_first_entry_ns(const struct vm *vm)
{
	return atomic_load(&((struct vm *)vm)->first_entry_ns);
}

uint64_t vm_reached_ns(const struct vm *vm, unsigned int breakpoint)
{
	return atomic_load(&((struct vm *)vm)->reached_ns[breakpoint]);
}

unsigned int vm_vcpus(const struct vm *vm)
{
	return vm->nvcpus;
}

unsigned int vm_vcpus_most(const struct vm *vm)
{
	return vm->places;
}

struct ring *vm_ring(struct vm *vm, unsigned int vcpu)
{
	return &vm->vcpu[vcpu].ring;
}

struct vcpu_stats vm_stats(const struct vm *vm, unsigned int vcpu)
{
	struct vcpu_stats s;

	_Static_assert(sizeof(s) % 8 == 0, "count_copy() takes words");
	count_copy(&s, vm->vcpu[vcpu].shown ? vm->vcpu[vcpu].shown : &vm->vcpu[vcpu].stats,
		   sizeof(s));
	return s;
}

int vm_vcpu_tid(const struct vm *vm, unsigned int vcpu)
{
	return vm->ops->vcpu_tid ? vm->ops->vcpu_tid(vm, vcpu)
				 : atomic_load(&((struct vm *)vm)->vcpu[vcpu].tid);
}

int vm_stats_fd(const struct vm *vm, unsigned int vcpu)
{
	return kvm_stats_fd(vm->cfg.host, vm->vcpu[vcpu].fd);
}

const struct gmem *vm_memory(const struct vm *vm)
{
	return vm->ops->memory(vm);
}

void vm_refresh_memory(struct vm *vm)
{
	if (vm->ops->refresh_memory)
		vm->ops->refresh_memory(vm);
}

void vm_wait_samples(struct vm *vm, uint64_t ns)
{
	const struct timespec nap = { .tv_nsec = (long)ns };

	if (vm->ops->wait)
		vm->ops->wait(vm, ns);
	else
		nanosleep(&nap, NULL);
}

void vm_consumer_gone(struct vm *vm)
{
	if (vm->ops->consumer_gone)
		vm->ops->consumer_gone(vm);
}

bool vm_is_exact(const struct vm *vm)
{
	return vm->ops->now != NULL;
}

uint64_t vm_now_ns(const struct vm *vm)
{
	return machine_now_ns(vm);
}

void vm_boot_memory(const struct vm *vm, uint64_t *low, uint64_t *high)
{
	*low = vm->boot_low;
	*high = vm->boot_high;
}

void vm_set_slide(struct vm *vm, uint64_t slide)
{
	atomic_store(&vm->slide, slide);
	atomic_store(&vm->slide_known, true);
	machine_changed(vm, VM_CHANGED_SLIDE, &slide);
	/* Breakpoints wait for the slide. */
	if (vm->cfg.nbreakpoints)
		vm_control_notify(vm);
}

bool vm_slide(const struct vm *vm, uint64_t *slide)
{
	if (!atomic_load(&((struct vm *)vm)->slide_known))
		return false;
	*slide = atomic_load(&((struct vm *)vm)->slide);
	return true;
}

void vm_set_task_plan(struct vm *vm, const struct capture_task_plan *plan)
{
	unsigned int n = atomic_load(&vm->late_tasks);

	/* vCPUs may be reading the previous plan, so it is left unchanged. */
	if (n == VM_LATE_TASK_PLANS)
		return;
	vm->late_task[n] = *plan;
	atomic_store_explicit(&vm->late_tasks, n + 1, memory_order_release);
	machine_changed(vm, VM_CHANGED_TASK, plan);
}
