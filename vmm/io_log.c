/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io_log: keeps records of disk requests and network packets for profiling.
 *
 * The queue of records has a fixed length. When it is full, records are counted instead.
 * vmm/capture/source_exit.c implements VM_EVENT_IO.
 */
#include "vmm/io_log.h"

#include "vmm/machine.h"
#include "vmm/dev/net_link.h"
#include "vmm/config.h"
#include "vmm/capture/source_exit.h"

#include <errno.h>
#include <stdlib.h>

/* Room for 50 ms at 300,000 requests per second. */
#define IO_LOG_LEN 16384u

struct io_log {
	pthread_mutex_t lock;
	uint64_t added, taken; /* indices into record[], modulo its length */
	uint64_t lost, lost_packets;
	struct io_record record[IO_LOG_LEN];
};

static void io_log_add(void *ctx, const struct io_record *r)
{
	struct io_log *log = ((struct vm *)ctx)->io_log;

	pthread_mutex_lock(&log->lock);
	if (log->added - log->taken == IO_LOG_LEN) {
		log->lost += r->type < IO_TYPES;
		log->lost_packets += io_is_packet(r->type);
	} else {
		log->record[log->added++ % IO_LOG_LEN] = *r;
	}
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

uint64_t vm_io_lost(struct vm *vm, uint64_t *packets)
{
	uint64_t lost = 0;

	*packets = 0;
	if (vm->io_log) {
		pthread_mutex_lock(&vm->io_log->lock);
		lost = vm->io_log->lost;
		*packets = vm->io_log->lost_packets;
		pthread_mutex_unlock(&vm->io_log->lock);
	}
	return lost;
}

static bool io_log_is_wanted(const struct vm *vm, enum machine_io_kind kind)
{
	for (unsigned int i = 0; i < vm->cfg.nevents; i++)
		if (vm->cfg.event[i].kind == VM_EVENT_IO &&
		    vm->cfg.event[i].packets == (kind == MACHINE_IO_PACKETS))
			return true;
	return false;
}

int io_log_create(struct vm *vm, struct err *e)
{
	if (!(vm->setup->ndisks && io_log_is_wanted(vm, MACHINE_IO_REQUESTS)) &&
	    !(vm->setup->net.kind != NET_NONE && io_log_is_wanted(vm, MACHINE_IO_PACKETS)))
		return 0;
	vm->io_log = calloc(1, sizeof(*vm->io_log));
	if (!vm->io_log)
		return err_set(e, ENOMEM, "out of memory for records of requests");
	pthread_mutex_init(&vm->io_log->lock, NULL);
	return 0;
}

void io_log_destroy(struct vm *vm)
{
	if (!vm->io_log)
		return;
	pthread_mutex_destroy(&vm->io_log->lock);
	free(vm->io_log);
	vm->io_log = NULL;
}

struct dev_io io_log_device(struct vm *vm, enum machine_io_kind kind)
{
	if (!vm->io_log || !io_log_is_wanted(vm, kind))
		return (struct dev_io){ 0 };
	return (struct dev_io){ source_exit_io_batch, io_log_add, vm };
}
