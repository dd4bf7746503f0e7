/* SPDX-License-Identifier: GPL-2.0-or-later */
/* io_log: the log of disk requests and network packets for VM_EVENT_IO. */
#ifndef KVMPROF_VMM_IO_LOG_H
#define KVMPROF_VMM_IO_LOG_H

#include "base/err.h"
#include "vmm/dev/io.h"

#include <stdint.h>

struct vm;

/* The two kinds of records. */
enum machine_io_kind { MACHINE_IO_REQUESTS, MACHINE_IO_PACKETS };
/*
 * Creates the log, if an event needs it, before the devices that write to it. Called by the thread
 * that creates the machine. Returns 0 or -ENOMEM.
 */
int io_log_create(struct vm *vm, struct err *e);
/* Frees the log, after the devices. */
void io_log_destroy(struct vm *vm);
/*
 * Returns the functions with which a device reports records of this kind. `done` is NULL if no
 * event needs them.
 */
struct dev_io io_log_device(struct vm *vm, enum machine_io_kind kind);

/*
 * Moves up to max records of completed requests and packets to `out`, and returns their number.
 * Each record is returned once. A sample with reason SAMPLE_IO whose exit_addr is the record's
 * token shows who submitted it; the sample may arrive earlier or later. Returns 0 without a
 * VM_EVENT_IO. Any thread may call it.
 */
unsigned int vm_io_take(struct vm *vm, struct io_record *out, unsigned int max);
/*
 * Returns the number of requests, and stores in *packets the number of packets, whose records found
 * no room. The devices' counters include them. Any thread may call it.
 */
uint64_t vm_io_lost(struct vm *vm, uint64_t *packets);

#endif
