/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * devices: the virtio devices of a machine, including its disks, and the transport by which the
 * guest finds them.
 */
#include "vmm/devices.h"

#include "base/limits.h"
#include "vmm/machine.h"
#include "vmm/dev/virtio_9p.h"
#include "vmm/dev/virtio_blk.h"
#include "vmm/dev/virtio_console.h"
#include "vmm/dev/virtio_net.h"
#include "vmm/dev/virtio_rng.h"
#include "vmm/config.h"
#include "vmm/dev/virtio_mmio.h"
#include "vmm/dev/virtio_pci.h"
#include "vmm/io_log.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

bool vm_has_virtio(const struct vm_config *cfg)
{
	return cfg->ndisks || cfg->nshares || cfg->rng || cfg->virtio_console ||
	       cfg->net.kind != NET_NONE;
}

void devices_irq(void *ctx, unsigned int irq, int level)
{
	struct vm *vm = ctx;
	struct kvm_irq_level l = { .irq = irq, .level = (uint32_t)level };

	(void)ioctl(vm->fd, KVM_IRQ_LINE, &l);
}

/* Delivers an interrupt. An invalid address or data from the guest harms only the guest. */
static void send_msi(void *ctx, uint64_t addr, uint32_t data)
{
	struct vm *vm = ctx;
	struct kvm_msi msi = {
		.address_lo = (uint32_t)addr,
		.address_hi = (uint32_t)(addr >> 32),
		.data = data,
	};

	(void)ioctl(vm->fd, KVM_SIGNAL_MSI, &msi);
}

static int devices_add_transport(struct vm *vm, struct machine_virtio *v, struct err *e)
{
	if (vm->nvirtio == VM_MAX_VIRTIO)
		return err_set(e, ENOSPC, "%s: more than %u virtio devices", v->d->name,
			       VM_MAX_VIRTIO);
	for (unsigned int i = 0; i < vm->nvirtio; i++)
		if (!strcmp(vm->virtio[i].d->name, v->d->name))
			return err_set(e, EEXIST, "there are two virtio devices with the name %s",
				       v->d->name);
	if (vm->setup->transport == VM_VIRTIO_PCI)
		return virtio_pci_new(&v->pci, v->d, &vm->pci, (struct dev_msi){ send_msi, vm }, e);
	return virtio_mmio_new(&v->mmio, v->d, vm->nvirtio, &vm->bus,
			       (struct dev_irq){ devices_irq, vm }, e);
}

/*
 * Adds a device whose name no other one has (else -EEXIST). The machine owns d from here on, also
 * after an error.
 */
static int add_virtio(struct vm *vm, struct virtio *d, struct err *e)
{
	struct machine_virtio v = { .d = d };
	int ret = devices_add_transport(vm, &v, e);

	/* It is released when the whole machine is restored. */
	if (vm->setup->snapshot)
		virtio_hold(d, true);

	if (ret)
		d->ops->destroy(d);
	else
		vm->virtio[vm->nvirtio++] = v;
	return ret;
}

static int add_rng(struct vm *vm, struct err *e)
{
	struct virtio *d;
	int ret = virtio_rng_new(&d, &vm->mem, e);

	return ret ? ret : add_virtio(vm, d, e);
}

static int add_console(struct vm *vm, struct err *e)
{
	struct virtio *d;
	int ret = virtio_console_new(&d, &vm->mem, vm->setup->console, vm->setup->console_ctx, e);

	if (ret)
		return ret;
	ret = add_virtio(vm, d, e);
	if (ret)
		return ret;
	vm->hvc = d;
	return 0;
}

static int add_net(struct vm *vm, struct err *e)
{
	struct virtio *d;
	const struct dev_io io = io_log_device(vm, MACHINE_IO_PACKETS);
	struct net_config net = vm->setup->net;
	int ret;

	net.bind = vm->setup->bind_network;
	net.ended = vm->setup->network_ended;
	net.ctx = vm->setup->share_ctx;
	ret = virtio_net_new(&d, &vm->mem, &net, e);
	if (ret)
		return ret;
	virtio_net_watch(d, &io);
	ret = add_virtio(vm, d, e);
	if (ret)
		return ret;
	vm->net = d;
	return 0;
}

bool vm_net(const struct vm *vm, struct net_stats *out)
{
	if (vm->net)
		virtio_net_stats(vm->net, out);
	return vm->net != NULL;
}

/*
 * Returns how many descriptors the guest may keep open in a share's process, which needs some
 * itself.
 */
static unsigned int files_of_share(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur == RLIM_INFINITY || l.rlim_cur > UINT32_MAX)
		return UINT32_MAX;
	return (unsigned int)(l.rlim_cur - l.rlim_cur / 8);
}

static int bind_share(void *ctx, struct p9_share *s, struct err *e)
{
	const struct vm_config *cfg = ((struct vm *)ctx)->setup;

	return cfg->bind_share ? cfg->bind_share(cfg->share_ctx, s, e) : 0;
}

static int add_share(struct vm *vm, const struct vm_share *s, struct err *e)
{
	const struct virtio_9p_config cfg = {
		.tag = s->tag,
		.share = { .dir = s->dir,
			   .read_only = s->read_only,
			   .max_files = files_of_share() },
		.confine = { bind_share, vm },
		.ended = vm->setup->share_ended,
		.ended_ctx = vm->setup->share_ctx,
	};
	struct virtio *d;
	int ret = virtio_9p_new(&d, &vm->mem, &cfg, e);

	return ret ? ret : add_virtio(vm, d, e);
}

static const char *const disk_name[] = { "vda", "vdb", "vdc", "vdd", "vde", "vdf", "vdg", "vdh" };
_Static_assert(sizeof(disk_name) / sizeof(disk_name[0]) == VM_MAX_DISKS, "one for each");
_Static_assert(VM_MAX_DISKS <= VM_MAX_VIRTIO, "vm->disk has room for them");

static int add_disks(struct vm *vm, struct err *e)
{
	for (unsigned int i = 0; i < vm->setup->ndisks; i++) {
		struct virtio_blk_config cfg = {
			.disk = vm->setup->disk[i].disk,
			.name = disk_name[i],
			.serial = vm->setup->disk[i].serial,
			.limit = vm->setup->disk[i].limit,
			.index = i,
			.queues = vm->nvcpus,
		};
		struct virtio *d;
		int ret;

		cfg.io = io_log_device(vm, MACHINE_IO_REQUESTS);
		ret = virtio_blk_create(&d, &vm->mem, &cfg, e);
		if (ret)
			return ret;
		ret = add_virtio(vm, d, e);
		if (ret)
			return ret;
		vm->disk[i] = d;
	}
	return 0;
}

int devices_create(struct vm *vm, struct err *e)
{
	int ret = io_log_create(vm, e);

	if (vm->setup->nshares ||
	    vm->setup->net.kind == NET_USER) /* their processes must not have guest memory */
		gmem_alloc_dont_fork(&vm->mem);
	if (!ret && vm->setup->virtio_console)
		ret = add_console(vm, e);
	if (!ret && vm->setup->rng)
		ret = add_rng(vm, e);
	if (!ret && vm->setup->net.kind != NET_NONE)
		ret = add_net(vm, e);
	for (unsigned int i = 0; !ret && i < vm->setup->nshares; i++)
		ret = add_share(vm, &vm->setup->share[i], e);
	return ret ? ret : add_disks(vm, e);
}

bool vm_disk(const struct vm *vm, unsigned int i, struct vm_disk_info *out)
{
	const struct disk *disk;

	if (!vm->setup || i >= vm->setup->ndisks || !vm->disk[i])
		return false;
	disk = vm->setup->disk[i].disk;
	*out = (struct vm_disk_info){
		.name = disk_name[i],
		.path = disk_path(disk),
		.size = disk_size(disk),
		.overlay_bytes = disk_overlay_bytes(disk),
		.no_room = disk_overlay_refused(disk),
	};
	virtio_blk_stats(vm->disk[i], &out->io);
	return true;
}

int devices_start(struct vm *vm, struct err *e)
{
	int ret = vm->have_pit ? pit_start(&vm->pit, e) : 0;

	for (unsigned int i = 0; !ret && i < vm->nvirtio; i++) {
		struct virtio *d = vm->virtio[i].d;

		ret = d->ops->start ? d->ops->start(d, e) : 0;
	}
	return ret;
}

void devices_destroy(struct vm *vm)
{
	for (unsigned int i = 0; i < vm->nvirtio; i++) {
		struct machine_virtio *v = &vm->virtio[i];

		v->d->ops->destroy(v->d); /* its threads may still raise interrupts until then */
		virtio_pci_destroy(v->pci);
		virtio_mmio_destroy(v->mmio);
	}
	vm->nvirtio = 0;
	vm->net = NULL;
	io_log_destroy(vm);
}

size_t vm_console_input(struct vm *vm, const uint8_t *data, size_t len)
{
	if (vm->hvc && virtio_console_ready(vm->hvc))
		return virtio_console_input(vm->hvc, data, len);
	return serial_input(&vm->serial, data, len);
}

void devices_virtio_hold(struct vm *vm, bool on)
{
	for (unsigned int i = 0; i < vm->nvirtio; i++)
		virtio_hold(vm->virtio[i].d, on);
}

int devices_virtio_save(void *what, struct buf *out, struct err *e)
{
	struct vm *vm = what;
	int ret = pci_save(&vm->pci, out, e);

	for (unsigned int i = 0; !ret && i < vm->nvirtio; i++) {
		struct machine_virtio *v = &vm->virtio[i];

		if (v->d->ops->drain)
			v->d->ops->drain(v->d);
		ret = v->pci ? virtio_pci_save(v->pci, out, e) : virtio_mmio_save(v->mmio, out, e);
	}
	return ret;
}

int devices_virtio_restore(void *what, struct cursor *in, struct err *e)
{
	struct vm *vm = what;
	int ret = pci_restore(&vm->pci, in, e);

	for (unsigned int i = 0; !ret && i < vm->nvirtio; i++) {
		struct machine_virtio *v = &vm->virtio[i];

		ret = v->pci ? virtio_pci_restore(v->pci, in, e)
			     : virtio_mmio_restore(v->mmio, in, e);
	}
	return !ret && (in->bad || cursor_left(in))
		       ? err_set(e, EINVAL, "the saved state of virtio devices is damaged")
		       : ret;
}
