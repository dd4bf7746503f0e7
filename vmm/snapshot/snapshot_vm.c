/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/snapshot/snapshot_vm.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "vmm/layout.h"
#include "vmm/machine.h"
#include "vmm/quirks.h"
#include "vmm/snapshot/vcpu_state.h"
#include "vmm/devices.h"
#include "vmm/kvm.h"
#include "vmm/config.h"
#include "vmm/snapshot/snapshot_devices.h"
#include "vmm/snapshot/snapshot_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <x86intrin.h>

/* -- parts that are KVM's ------------------------------------------------------------- */

static int machine_save(void *what, struct buf *out, struct err *e)
{
	const struct vm *vm = what;

	(void)e;
	buf_u64(out, gmem_size(&vm->mem));
	buf_u64(out, vm->boot_low);
	buf_u64(out, vm->boot_high);
	buf_u32(out, vm->nvcpus);
	buf_u8(out, vm->have_pit);
	buf_u32(out, vm->setup->transport);
	buf_u8(out, vm->setup->rng);
	buf_u8(out, vm->setup->virtio_console);
	return 0;
}

int snapshot_machine_parse(struct snapshot_machine *out, struct cursor *in, struct err *e)
{
	struct snapshot_machine m = { 0 };

	m.mem_size = cursor_u64(in);
	m.boot_low = cursor_u64(in);
	m.boot_high = cursor_u64(in);
	m.vcpus = cursor_u32(in);
	m.slow_tick = cursor_u8(in) & 1;
	m.transport = cursor_u32(in);
	m.rng = cursor_u8(in) & 1;
	m.virtio_console = cursor_u8(in) & 1;
	if (in->bad || cursor_left(in) || !m.mem_size || m.mem_size % GPA_MIB ||
	    m.mem_size > SNAPSHOT_MAX_RAM || m.vcpus < 1 || m.vcpus > VM_MAX_VCPUS ||
	    m.transport > VM_VIRTIO_MMIO || m.boot_low > m.boot_high)
		return err_set(e, EINVAL, "the snapshot's description of its machine is damaged");
	*out = m;
	return 0;
}

static int machine_restore(void *what, struct cursor *in, struct err *e)
{
	struct vm *vm = what;
	struct snapshot_machine m;
	int ret = snapshot_machine_parse(&m, in, e);

	if (ret)
		return ret;
	if (m.mem_size != gmem_size(&vm->mem) || m.vcpus != vm->nvcpus ||
	    m.slow_tick != vm->have_pit)
		return err_set(e, EINVAL, "the machine differs from that of the snapshot");
	vm->boot_low = m.boot_low;
	vm->boot_high = m.boot_high;
	return 0;
}

static int devices_save(void *what, struct buf *out, struct err *e)
{
	return snapshot_devices_save(((const struct vm *)what)->setup, out, e);
}

/*
 * Does nothing: the caller has configured the machine with these devices, and their own parts
 * check that.
 */
static int devices_restore(void *what, struct cursor *in, struct err *e)
{
	(void)what;
	(void)in;
	(void)e;
	return 0;
}

#define IRQCHIPS 3u /* two 8259 and the IOAPIC */

static int irqchip_save(void *what, struct buf *out, struct err *e)
{
	const struct vm *vm = what;

	for (uint32_t i = 0; i < IRQCHIPS; i++) {
		struct kvm_irqchip chip = { .chip_id = i };

		if (ioctl(vm->fd, KVM_GET_IRQCHIP, &chip) < 0)
			return err_set(e, errno, "KVM_GET_IRQCHIP %u: %s", i, strerror(errno));
		buf_add(out, &chip, sizeof(chip));
	}
	return 0;
}

static int irqchip_restore(void *what, struct cursor *in, struct err *e)
{
	const struct vm *vm = what;

	for (uint32_t i = 0; i < IRQCHIPS; i++) {
		const uint8_t *p = cursor_bytes(in, sizeof(struct kvm_irqchip));
		struct kvm_irqchip chip;

		if (!p)
			return err_set(e, EINVAL,
				       "the state of the interrupt controllers is damaged");
		memcpy(&chip, p, sizeof(chip));
		chip.chip_id = i;
		if (ioctl(vm->fd, KVM_SET_IRQCHIP, &chip) < 0)
			return err_set(e, errno,
				       "KVM refuses the snapshot's interrupt controller %u: %s", i,
				       strerror(errno));
	}
	return 0;
}

static int pit2_save(void *what, struct buf *out, struct err *e)
{
	const struct vm *vm = what;
	struct kvm_pit_state2 pit;

	if (ioctl(vm->fd, KVM_GET_PIT2, &pit) < 0)
		return err_set(e, errno, "KVM_GET_PIT2: %s", strerror(errno));
	buf_add(out, &pit, sizeof(pit));
	return 0;
}

static int pit2_restore(void *what, struct cursor *in, struct err *e)
{
	const struct vm *vm = what;
	const uint8_t *p = cursor_bytes(in, sizeof(struct kvm_pit_state2));
	struct kvm_pit_state2 pit;

	if (!p)
		return err_set(e, EINVAL, "the state of the interval timer is damaged");
	memcpy(&pit, p, sizeof(pit));
	return ioctl(vm->fd, KVM_SET_PIT2, &pit) < 0
		       ? err_set(e, errno, "KVM refuses the snapshot's interval timer: %s",
				 strerror(errno))
		       : 0;
}

static int clock_save(void *what, struct buf *out, struct err *e)
{
	const struct vm *vm = what;
	struct kvm_clock_data clock = { 0 };

	if (ioctl(vm->fd, KVM_GET_CLOCK, &clock) < 0)
		return err_set(e, errno, "KVM_GET_CLOCK: %s", strerror(errno));
	buf_u64(out, clock.clock);
	return 0;
}

/* Sets the guest's clock. It continues from the saved value, as if no time had passed. */
static int clock_restore(void *what, struct cursor *in, struct err *e)
{
	const struct vm *vm = what;
	struct kvm_clock_data clock = { .clock = cursor_u64(in) };

	if (in->bad)
		return err_set(e, EINVAL, "the state of the clock is damaged");
	return ioctl(vm->fd, KVM_SET_CLOCK, &clock) < 0
		       ? err_set(e, errno, "KVM refuses the snapshot's clock: %s", strerror(errno))
		       : 0;
}

/*
 * The time stamp counters of a machine, saved as each vCPU's offset from the host's counter.
 *
 * Writing a counter (MSR_IA32_TSC) does not always set that value: if it is within about a second
 * of the value that KVM expects, KVM takes it as a request to synchronise all vCPUs, and sets
 * another one. Before Linux 6.8 it expects the counter of a vCPU that was just created, so the
 * time of a guest that was saved in its first second went back. An offset (KVM_VCPU_TSC_OFFSET,
 * Linux 5.16) is set exactly, and the differences between vCPUs are kept to the cycle.
 *
 * Section "tsc": u8 1, u64 the host's counter, u64 the offset of each vCPU; or u8 0 if KVM has no
 * offsets. It is restored before the vCPUs, which then do not write their counters (vm->tsc_set).
 */
static int tsc_offset(const struct vcpu *v, unsigned long request, uint64_t *offset)
{
	const struct kvm_device_attr attr = {
		.group = KVM_VCPU_TSC_CTRL,
		.attr = KVM_VCPU_TSC_OFFSET,
		.addr = (uint64_t)(uintptr_t)offset,
	};

	return ioctl(v->fd, request, &attr) < 0 ? errno : 0;
}

static int tsc_save(void *machine, struct buf *out, struct err *e)
{
	const struct vm *vm = machine;
	uint64_t offset[VM_MAX_VCPUS], now = __rdtsc();
	bool known = !vm->cfg.quirks->tsc_fixed;

	(void)e;
	for (unsigned int i = 0; known && i < vm->nvcpus; i++)
		known = tsc_offset(&vm->vcpu[i], KVM_GET_DEVICE_ATTR, &offset[i]) == 0;
	buf_u8(out, known);
	if (!known)
		return 0;
	buf_u64(out, now);
	for (unsigned int i = 0; i < vm->nvcpus; i++)
		buf_u64(out, offset[i]);
	return 0;
}

static int tsc_restore(void *machine, struct cursor *in, struct err *e)
{
	struct vm *vm = machine;
	bool known = cursor_u8(in) & 1;
	uint64_t now = __rdtsc(), then = known ? cursor_u64(in) : 0;

	vm->tsc_set = known && !vm->cfg.quirks->tsc_fixed;
	for (unsigned int i = 0; known && i < vm->nvcpus; i++) {
		uint64_t offset = cursor_u64(in) + then - now;

		if (in->bad || !vm->tsc_set)
			continue;
		/* A KVM without offsets has counters that can be written. */
		if (tsc_offset(&vm->vcpu[i], KVM_SET_DEVICE_ATTR, &offset) != 0)
			vm->tsc_set = false;
	}
	return in->bad || cursor_left(in)
		       ? err_set(e, EINVAL, "the state of the time stamp counters is damaged")
		       : 0;
}

/* -- all of them ---------------------------------------------------------------------- */

static const struct snapshot_part
	part_machine = { "machine", SNAPSHOT_MACHINE_VERSION, machine_save, machine_restore },
	part_irqchip = { "irqchip", SNAPSHOT_IRQCHIP_VERSION, irqchip_save, irqchip_restore },
	part_pit2 = { "pit2", SNAPSHOT_PIT2_VERSION, pit2_save, pit2_restore },
	part_clock = { "clock", SNAPSHOT_CLOCK_VERSION, clock_save, clock_restore },
	part_tsc = { "tsc", SNAPSHOT_TSC_VERSION, tsc_save, tsc_restore },
	part_vcpu = { "vcpu", VCPU_STATE_VERSION, vcpu_state_save, vcpu_state_restore },
	part_devices = { SNAPSHOT_DEVICES, SNAPSHOT_DEVICES_VERSION, devices_save,
			 devices_restore },
	part_serial = { "serial", SERIAL_STATE_VERSION, serial_save, serial_restore },
	part_platform = { "platform", PLATFORM_STATE_VERSION, platform_save, platform_restore },
	part_virtio = { "virtio", SNAPSHOT_VIRTIO_VERSION, devices_virtio_save,
			devices_virtio_restore },
	part_pit = { "pit", PIT_STATE_VERSION, pit_save, pit_restore };

struct snapshot_vm_placed {
	const struct snapshot_part *part;
	void *what;
	char name[SNAPSHOT_NAME];
};
#define PLACED_MAX (VM_MAX_VCPUS + 16u)

struct snapshot_vm_parts {
	struct snapshot_vm_placed at[PLACED_MAX];
	unsigned int n;
};

static void parts_add(struct snapshot_vm_parts *p, const struct snapshot_part *part, void *what)
{
	struct snapshot_vm_placed *at = &p->at[p->n++];

	at->part = part;
	at->what = what;
	snprintf(at->name, sizeof(at->name), "%s", part->name);
}

/*
 * Lists the parts in the order of saving and restoring. The timer comes before the interrupt
 * controllers: a tick in between is then delivered twice, which is better than never. The clock
 * comes last, because it runs until then.
 */
static void list_parts(struct vm *vm, struct snapshot_vm_parts *p)
{
	p->n = 0;
	parts_add(p, &part_machine, vm);
	parts_add(p, &part_devices, vm);
	if (vm->have_pit)
		parts_add(p, &part_pit, &vm->pit);
	else if (vm->cfg.host->pit2)
		parts_add(p, &part_pit2, vm);
	parts_add(p, &part_serial, &vm->serial);
	parts_add(p, &part_platform, &vm->platform);
	/*
	 * Virtio comes before the interrupt controllers: requests in flight end when it is saved,
	 * and interrupt.
	 */
	parts_add(p, &part_virtio, vm);
	parts_add(p, &part_tsc, vm);
	for (unsigned int i = 0; i < vm->nvcpus; i++) {
		parts_add(p, &part_vcpu, &vm->vcpu[i]);
		snprintf(p->at[p->n - 1].name, SNAPSHOT_NAME, "%s.%u", part_vcpu.name, i);
	}
	parts_add(p, &part_irqchip, vm);
	parts_add(p, &part_clock, vm);
}

static int save_part(struct snapshot_writer *w, const struct snapshot_vm_placed *at, struct buf *b,
		     struct err *e)
{
	int ret;

	buf_init(b);
	ret = at->part->save(at->what, b, e);
	if (!ret && b->failed)
		ret = err_nomem(e);
	return ret ? ret
		   : snapshot_add(w,
				  &(struct snapshot_blob){ at->name, at->part->version, b->data,
							   b->len },
				  e);
}

static int save_overlays(const struct vm *vm, struct snapshot_writer *w,
			 struct file_map map[VM_MAX_DISKS], struct err *e)
{
	for (unsigned int i = 0; i < vm->setup->ndisks; i++) {
		struct snapshot_blob b = { .version = SNAPSHOT_OVERLAY_VERSION };
		char name[SNAPSHOT_NAME];
		int ret;

		snprintf(name, sizeof(name), "overlay.%u", i);
		b.name = name; /* snapshot_add() copies it */
		ret = snapshot_overlay_save(vm->setup->disk[i].disk, &map[i], e);
		if (ret)
			return ret;
		b.data = map[i].data;
		b.len = map[i].len;
		ret = snapshot_add(w, &b, e);
		if (ret)
			return ret;
	}
	return 0;
}

int snapshot_save_vm(struct vm *vm, const struct snapshot_file *to,
		     const struct snapshot_blob *blob, unsigned int nblobs, struct err *e)
{
	struct snapshot_writer *w = calloc(1, sizeof(*w));
	struct buf bytes[PLACED_MAX] = { 0 }, host;
	struct file_map overlay[VM_MAX_DISKS] = { 0 };
	struct snapshot_vm_parts parts;
	int ret;

	if (!w)
		return err_nomem(e);
	buf_init(&host);
	devices_virtio_hold(vm, true);
	list_parts(vm, &parts);
	ret = snapshot_host_save(vm->cfg.host, vm->cfg.quirks, &host, e);
	if (!ret)
		ret = snapshot_add(w,
				   &(struct snapshot_blob){ "host", SNAPSHOT_HOST_VERSION,
							    host.data, host.len },
				   e);
	for (unsigned int i = 0; !ret && i < parts.n; i++)
		ret = save_part(w, &parts.at[i], &bytes[i], e);
	ret = ret ? ret : save_overlays(vm, w, overlay, e);
	for (unsigned int i = 0; !ret && i < nblobs; i++)
		ret = snapshot_add(w, &blob[i], e);
	ret = ret ? ret : snapshot_write(w, &vm->mem, to, e);
	devices_virtio_hold(vm, false);
	for (unsigned int i = 0; i < parts.n; i++)
		buf_deinit(&bytes[i]);
	for (unsigned int i = 0; i < vm->setup->ndisks; i++)
		file_map_close(&overlay[i]);
	buf_deinit(&host);
	free(w);
	return ret;
}

int snapshot_restore(struct vm *vm, const struct snapshot *s, struct err *e)
{
	struct snapshot_vm_parts parts;
	int ret;

	list_parts(vm, &parts);
	for (unsigned int i = 0; i < parts.n; i++) {
		const struct snapshot_vm_placed *at = &parts.at[i];
		struct cursor in;

		ret = snapshot_find(s, at->name, at->part->version, &in, e);
		if (ret)
			return ret;
		ret = at->part->restore(at->what, &in, e);
		if (ret)
			return ret;
	}
	ret = snapshot_overlays_restore(s, vm->setup, e);
	if (ret)
		return ret;
	devices_virtio_hold(vm, false);
	return 0;
}

int snapshot_configure(const struct snapshot *s, struct vm_config *cfg, struct err *e)
{
	struct snapshot_machine m;
	struct cursor in;
	int ret = snapshot_find(s, part_machine.name, part_machine.version, &in, e);

	if (ret)
		return ret;
	ret = snapshot_machine_parse(&m, &in, e);
	if (ret)
		return ret;
	cfg->snapshot = s;
	cfg->mem_size = m.mem_size;
	cfg->vcpus = m.vcpus;
	cfg->slow_tick = m.slow_tick;
	cfg->transport = (enum vm_transport)m.transport;
	cfg->rng = m.rng;
	cfg->virtio_console = m.virtio_console;
	return 0;
}

/* -- a reset ---------------------------------------------------------------------------- */

/* A run of consecutive pages of guest memory that are not zero. */
struct boot_run {
	uint64_t gpa, len;
	uint8_t *bytes;
};

struct snapshot_boot {
	struct buf part[PLACED_MAX];
	struct boot_run *run;
	size_t n, cap;
};

#define BOOT_PAGE 4096u

static bool is_zero(const uint8_t *page)
{
	return !page[0] && !memcmp(page, page + 1, BOOT_PAGE - 1);
}

/* Appends a page to the last run, or begins another one. */
static int keep_page(struct snapshot_boot *b, uint64_t gpa, const uint8_t *page, struct err *e)
{
	struct boot_run *r = b->n ? &b->run[b->n - 1] : NULL;
	uint8_t *bytes;

	if (!r || r->gpa + r->len != gpa) {
		if (ARRAY_ROOM(b->run, b->n, b->cap))
			return err_nomem(e);
		r = &b->run[b->n++];
		*r = (struct boot_run){ .gpa = gpa };
	}
	/*
	 * The buffer's size doubles at each power of two, because most pages of an image are
	 * consecutive.
	 */
	if (!(r->len & (r->len - 1))) {
		bytes = realloc(r->bytes, r->len ? 2 * r->len : BOOT_PAGE);
		if (!bytes)
			return err_nomem(e);
		r->bytes = bytes;
	}
	memcpy(r->bytes + r->len, page, BOOT_PAGE);
	r->len += BOOT_PAGE;
	return 0;
}

/*
 * Stores the pages of a region that are not zero. A page that no loader has written is not
 * resident, and zero.
 */
static int keep_region(struct snapshot_boot *b, const struct gmem_region *r, struct err *e)
{
	const size_t pages = r->size / BOOT_PAGE;
	cleanup_free uint8_t *resident = malloc(pages);
	int ret = 0;

	if (!resident)
		return err_nomem(e);
	if (mincore(r->host, pages * BOOT_PAGE, resident) < 0)
		memset(resident, 1, pages);
	for (size_t i = 0; i < pages && !ret; i++) {
		const uint8_t *page = (const uint8_t *)r->host + i * BOOT_PAGE;

		if ((resident[i] & 1) && !is_zero(page))
			ret = keep_page(b, r->gpa + i * BOOT_PAGE, page, e);
	}
	return ret;
}

int snapshot_boot_save(struct snapshot_boot **out, struct vm *vm, struct err *e)
{
	struct snapshot_boot *b = calloc(1, sizeof(*b));
	struct snapshot_vm_parts parts;
	int ret = b ? 0 : err_nomem(e);

	if (ret)
		return ret;
	for (size_t i = 0; i < PLACED_MAX; i++)
		buf_init(&b->part[i]);
	list_parts(vm, &parts);
	for (unsigned int i = 0; !ret && i < parts.n; i++) {
		ret = parts.at[i].part->save(parts.at[i].what, &b->part[i], e);
		if (!ret && b->part[i].failed)
			ret = err_nomem(e);
	}
	for (unsigned int i = 0; !ret && i < vm->mem.n; i++)
		ret = keep_region(b, &vm->mem.region[i], e);
	if (ret)
		snapshot_boot_free(b);
	else
		*out = b;
	return ret;
}

/* Sets memory to its state at power-on: zero, except for what the loader has written. */
static int restore_boot_memory(const struct snapshot_boot *b, struct vm *vm, struct err *e)
{
	for (unsigned int i = 0; i < vm->mem.n; i++) {
		const struct gmem_region *r = &vm->mem.region[i];

		if (madvise(r->host, r->size, MADV_DONTNEED) < 0)
			memset(r->host, 0, r->size);
	}
	for (size_t i = 0; i < b->n; i++)
		if (gmem_write(&vm->mem, b->run[i].gpa, b->run[i].bytes, b->run[i].len) < 0)
			return err_set(e, EFAULT, "a reset: guest memory cannot be written");
	return 0;
}

int snapshot_boot_restore(const struct snapshot_boot *b, struct vm *vm, struct err *e)
{
	struct snapshot_vm_parts parts;
	struct buf ended;
	int ret;

	/* Requests that are under way end, and their interrupts are discarded. */
	buf_init(&ended);
	devices_virtio_hold(vm, true);
	ret = devices_virtio_save(vm, &ended, e);
	buf_deinit(&ended);
	ret = ret ? ret : restore_boot_memory(b, vm, e);
	list_parts(vm, &parts);
	for (unsigned int i = 0; !ret && i < parts.n; i++) {
		struct cursor in;

		/* The guest's time continues, as on hardware. */
		if (parts.at[i].part == &part_clock || parts.at[i].part == &part_tsc)
			continue;
		cursor_init(&in, b->part[i].data, b->part[i].len);
		ret = parts.at[i].part->restore(parts.at[i].what, &in, e);
	}
	devices_virtio_hold(vm, false);
	return ret;
}

void snapshot_boot_free(struct snapshot_boot *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < PLACED_MAX; i++)
		buf_deinit(&b->part[i]);
	for (size_t i = 0; i < b->n; i++)
		free(b->run[i].bytes);
	free(b->run);
	free(b);
}
