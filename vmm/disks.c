/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disks: the machine's disks.
 */
#include "vmm/machine.h"

#include "vmm/dev/virtio_blk.h"

static const char *const disk_name[] = { "vda", "vdb", "vdc", "vdd", "vde", "vdf", "vdg", "vdh" };
_Static_assert(sizeof(disk_name) / sizeof(disk_name[0]) == VM_MAX_DISKS, "one for each");

int machine_disks_create(struct vm *vm, struct err *e)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < vm->cfg.ndisks; i++) {
		struct virtio_blk_config cfg = {
			.disk = vm->cfg.disk[i].disk,
			.name = disk_name[i],
			.serial = vm->cfg.disk[i].serial,
			.index = i,
			.queues = vm->nvcpus,
		};
		struct virtio *d;

		cfg.io = machine_io(vm, MACHINE_IO_REQUESTS);
		ret = virtio_blk_create(&d, &vm->mem, &cfg, e);
		ret = ret ? ret : machine_add_virtio(vm, d, e);
		if (!ret)
			vm->disk[i] = d;
	}
	return ret;
}

bool vm_disk(const struct vm *vm, unsigned int i, struct vm_disk_info *out)
{
	const struct disk *disk;

	if (i >= vm->cfg.ndisks || !vm->disk[i])
		return false;
	disk = vm->cfg.disk[i].disk;
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
