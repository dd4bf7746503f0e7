/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disks: the machine's disks, and what is kept of their requests for whoever profiles them.
 *
 * The queue of records has a fixed length; when nobody takes them out they are counted
 * instead. Of VM_EVENT_IO see source_io.c.
 */
#include "vmm/machine.h"

#include "vmm/dev/virtio_blk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 50 ms of 300,000 requests a second. */
#define IO_LOG_LEN 16384u

struct io_log {
	pthread_mutex_t lock;
	uint64_t added, taken; /* of record[], modulo its length */
	uint64_t lost;
	struct io_record record[IO_LOG_LEN];
};

static const char *const disk_name[] = { "vda", "vdb", "vdc", "vdd", "vde", "vdf", "vdg", "vdh" };
_Static_assert(sizeof(disk_name) / sizeof(disk_name[0]) == VM_MAX_DISKS, "one for each");

static void disks_note(void *ctx, const struct io_record *r)
{
	struct io_log *log = ((struct vm *)ctx)->io_log;

	pthread_mutex_lock(&log->lock);
	if (log->added - log->taken == IO_LOG_LEN)
		log->lost += r->type < IO_TYPES;
	else
		log->record[log->added++ % IO_LOG_LEN] = *r;
	pthread_mutex_unlock(&log->lock);
}

unsigned int vm_io_take(struct vm *vm, struct io_record *out, unsigned int max)
{
	struct io_log *log = vm->io_log;
	unsigned int n = 0;

	if (!log)
		return 0;
	pthread_mutex_lock(&log->lock);
	while (n < max && log->taken < log->added)
		out[n++] = log->record[log->taken++ % IO_LOG_LEN];
	pthread_mutex_unlock(&log->lock);
	return n;
}

uint64_t vm_io_lost(struct vm *vm)
{
	uint64_t lost = 0;

	if (vm->io_log) {
		pthread_mutex_lock(&vm->io_log->lock);
		lost = vm->io_log->lost;
		pthread_mutex_unlock(&vm->io_log->lock);
	}
	return lost;
}

static int make_log(struct vm *vm, struct err *e)
{
	bool wanted = false;

	for (unsigned int i = 0; i < vm->cfg.nevents; i++)
		wanted |= vm->cfg.event[i].kind == VM_EVENT_IO;
	if (!wanted || !vm->cfg.ndisks)
		return 0;
	vm->io_log = calloc(1, sizeof(*vm->io_log));
	if (!vm->io_log)
		return err_set(e, ENOMEM, "out of memory for records of requests");
	pthread_mutex_init(&vm->io_log->lock, NULL);
	return 0;
}

int machine_disks_create(struct vm *vm, struct err *e)
{
	int ret = make_log(vm, e);

	for (unsigned int i = 0; !ret && i < vm->cfg.ndisks; i++) {
		struct virtio_blk_config cfg = {
			.disk = vm->cfg.disk[i].disk,
			.name = disk_name[i],
			.serial = vm->cfg.disk[i].serial,
			.index = i,
			.queues = vm->nvcpus,
		};
		struct virtio *d;

		if (vm->io_log)
			cfg.io = (struct dev_io){ machine_io_batch, disks_note, vm };
		ret = virtio_blk_create(&d, &vm->mem, &cfg, e);
		ret = ret ? ret : machine_add_virtio(vm, d, e);
		if (!ret)
			vm->disk[i] = d;
	}
	return ret;
}

void machine_disks_destroy(struct vm *vm)
{
	if (!vm->io_log)
		return;
	pthread_mutex_destroy(&vm->io_log->lock);
	free(vm->io_log);
	vm->io_log = NULL;
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
