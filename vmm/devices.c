/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * devices: which virtio devices a machine has, and the transport that its guest finds them by.
 */
#include "vmm/machine.h"

#include "vmm/dev/virtio_9p.h"
#include "vmm/dev/virtio_console.h"
#include "vmm/dev/virtio_net.h"
#include "vmm/dev/virtio_rng.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

bool vm_has_virtio(const struct vm_config *cfg)
{
	return cfg->ndisks || cfg->nshares || cfg->rng || cfg->virtio_console ||
	       cfg->net.kind != NET_NONE;
}

void machine_irq(void *ctx, unsigned int irq, int level)
{
	struct vm *vm = ctx;
	struct kvm_irq_level l = { .irq = irq, .level = (uint32_t)level };

	(void)ioctl(vm->fd, KVM_IRQ_LINE, &l);
}

/* A guest's address or data that means nothing is its own loss. */
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
	if (vm->cfg.transport == VM_VIRTIO_PCI)
		return virtio_pci_new(&v->pci, v->d, &vm->pci, (struct dev_msi){ send_msi, vm }, e);
	return virtio_mmio_new(&v->mmio, v->d, vm->nvirtio, &vm->bus,
			       (struct dev_irq){ machine_irq, vm }, e);
}

int machine_add_virtio(struct vm *vm, struct virtio *d, struct err *e)
{
	struct machine_virtio v = { .d = d };
	int ret = devices_add_transport(vm, &v, e);

	/* Until all of the machine is restored. */
	if (vm->cfg.snapshot)
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

	return ret ? ret : machine_add_virtio(vm, d, e);
}

static int add_console(struct vm *vm, struct err *e)
{
	struct virtio *d;
	int ret = virtio_console_new(&d, &vm->mem, vm->cfg.console, vm->cfg.console_ctx, e);

	ret = ret ? ret : machine_add_virtio(vm, d, e);
	if (!ret)
		vm->hvc = d;
	return ret;
}

static int add_net(struct vm *vm, struct err *e)
{
	struct virtio *d;
	const struct dev_io io = machine_io(vm, MACHINE_IO_PACKETS);
	int ret = virtio_net_new(&d, &vm->mem, &vm->cfg.net, e);

	if (!ret)
		virtio_net_watch(d, &io);
	ret = ret ? ret : machine_add_virtio(vm, d, e);
	if (!ret)
		vm->net = d;
	return ret;
}

bool vm_net(const struct vm *vm, struct net_stats *out)
{
	if (vm->net)
		virtio_net_stats(vm->net, out);
	return vm->net != NULL;
}

/* Descriptors that the guest may make a share's process have: it needs some itself. */
static unsigned int files_of_share(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur == RLIM_INFINITY || l.rlim_cur > UINT32_MAX)
		return UINT32_MAX;
	return (unsigned int)(l.rlim_cur - l.rlim_cur / 8);
}

static int bind_share(void *ctx, const struct p9_share *s, struct err *e)
{
	const struct vm_config *cfg = &((struct vm *)ctx)->cfg;

	return cfg->bind_share ? cfg->bind_share(cfg->share_ctx, s->dir, s->read_only, e) : 0;
}

static int add_share(struct vm *vm, const struct vm_share *s, struct err *e)
{
	const struct virtio_9p_config cfg = {
		.tag = s->tag,
		.share = { s->dir, s->read_only, files_of_share() },
		.confine = { bind_share, vm },
		.ended = vm->cfg.share_ended,
		.ended_ctx = vm->cfg.share_ctx,
	};
	struct virtio *d;
	int ret = virtio_9p_new(&d, &vm->mem, &cfg, e);

	return ret ? ret : machine_add_virtio(vm, d, e);
}

int machine_devices_create(struct vm *vm, struct err *e)
{
	int ret = machine_io_log_create(vm, e);

	if (!ret && vm->cfg.virtio_console)
		ret = add_console(vm, e);
	if (!ret && vm->cfg.rng)
		ret = add_rng(vm, e);
	if (!ret && vm->cfg.net.kind != NET_NONE)
		ret = add_net(vm, e);
	if (vm->cfg.nshares) /* their processes shall not have it */
		gmem_dont_fork(&vm->mem);
	for (unsigned int i = 0; !ret && i < vm->cfg.nshares; i++)
		ret = add_share(vm, &vm->cfg.share[i], e);
	return ret ? ret : machine_disks_create(vm, e);
}

int machine_devices_start(struct vm *vm, struct err *e)
{
	int ret = vm->have_pit ? pit_start(&vm->pit, e) : 0;

	for (unsigned int i = 0; !ret && i < vm->nvirtio; i++) {
		struct virtio *d = vm->virtio[i].d;

		ret = d->ops->start ? d->ops->start(d, e) : 0;
	}
	return ret;
}

void machine_devices_destroy(struct vm *vm)
{
	for (unsigned int i = 0; i < vm->nvirtio; i++) {
		struct machine_virtio *v = &vm->virtio[i];

		v->d->ops->destroy(v->d); /* its threads may still raise interrupts */
		virtio_pci_destroy(v->pci);
		virtio_mmio_destroy(v->mmio);
	}
	vm->nvirtio = 0;
	vm->net = NULL;
	machine_io_log_destroy(vm);
}

size_t vm_console_input(struct vm *vm, const uint8_t *data, size_t len)
{
	if (vm->hvc && virtio_console_ready(vm->hvc))
		return virtio_console_input(vm->hvc, data, len);
	return serial_input(&vm->serial, data, len);
}

void machine_virtio_hold(struct vm *vm, bool on)
{
	for (unsigned int i = 0; i < vm->nvirtio; i++)
		virtio_hold(vm->virtio[i].d, on);
}

int machine_virtio_save(void *what, struct buf *out, struct err *e)
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

int machine_virtio_restore(void *what, struct cursor *in, struct err *e)
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
