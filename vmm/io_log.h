/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io_log: what is kept of requests to disks and of packets, for VM_EVENT_IO.
 */
#ifndef KVMPROF_VMM_IO_LOG_H
#define KVMPROF_VMM_IO_LOG_H

#include "base/err.h"
#include "vmm/dev/io.h"

#include <stdint.h>

struct vm;

/* Makes the log before the devices that report requests or packets; it is destroyed after them. */
enum machine_io_kind { MACHINE_IO_REQUESTS, MACHINE_IO_PACKETS };
int io_log_create(struct vm *vm, struct err *e);
void io_log_destroy(struct vm *vm);
/* For a device; done is NULL where no event asks for this kind. */
struct dev_io io_log_device(struct vm *vm, enum machine_io_kind kind);

/*
 * With a VM_EVENT_IO: requests that have ended, and packets, each once, up to max of them; how many. A
 * sample with reason SAMPLE_IO and exit_addr as the record's token tells who brought it, once
 * that sample is there; it may be earlier or later. Any thread.
 */
unsigned int vm_io_take(struct vm *vm, struct io_record *out, unsigned int max);
/*
 * Of requests whose records found no room, and in *packets of packets; they are in the counters all
 * the same.
 */
uint64_t vm_io_lost(struct vm *vm, uint64_t *packets);

#endif
