/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pit: an 8254 interval timer in the VMM, for hosts where guest ticks are dear.
 *
 * KVM's in-kernel PIT is the better one wherever ring 0 runs natively. Where it
 * is interpreted, a 250 Hz tick eats half of the guest: this one honours what
 * the guest programs but leaves a shortest time between interrupts, be they
 * periodic or single shots. The counters still read true time, so delay calibration
 * is right; what counts periodic ticks (jiffies) lags. A guest that runs must also have
 * had that much of a processor since the last one: on a busy host it would do nothing but
 * ticks. Channels 0 and 2 and port 0x61; source: Intel 8254 data sheet.
 */
#ifndef KVMPROF_VMM_DEV_PIT_H
#define KVMPROF_VMM_DEV_PIT_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"
#include "vmm/bus.h"
#include "vmm/dev/dev.h"

#include <pthread.h>
#include <stdint.h>

#define PIT_HZ 1193182u

struct pit_channel {
	uint8_t mode;		    /* 0..5 */
	uint8_t access;		    /* 1 low, 2 high, 3 low then high */
	bool write_high, read_high; /* next byte of a two-byte access */
	bool latched;
	uint8_t low; /* first byte of a two-byte write */
	uint16_t latch;
	uint32_t reload;   /* 1..65536 */
	uint64_t start_ns; /* CLOCK_MONOTONIC when counting began */
};

/*
 * Does the processor that gets the interrupts run (else it sleeps, halted), and how much has
 * it run? Called with the PIT's lock, on its thread. runs NULL: not known.
 */
struct pit_load {
	bool (*runs)(void *ctx, uint64_t *cpu_ns);
	void *ctx;
};

struct pit {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running, stop;
	struct dev_irq irq;
	struct pit_load load;
	uint64_t floor_ns; /* shortest time between interrupts; 0: as the guest wants */
	struct pit_channel ch[3];
	bool speaker_gate; /* port 0x61 bit 0: gate of channel 2 */
	uint64_t next_ns;  /* next interrupt; 0 none */
	uint64_t last_ns;  /* the one before; 0 none yet */
	uint64_t last_cpu; /* what load.runs() told at the last one at which the guest ran */
	uint64_t put_off;  /* how long the next one has waited for the guest to run */
	uint64_t ticks;
};

int pit_init(struct pit *p, struct bus *bus, struct dev_irq irq, struct pit_load load,
	     uint64_t floor_ns, struct err *e);
/* Its thread: once, from vm_start(); without it no interrupts come. What pthread_create() says. */
int pit_start(struct pit *p, struct err *e);
void pit_deinit(struct pit *p);

/*
 * For a snapshot (snapshot.h); `pit` is a struct pit. Counters go on from where they
 * are, as if no time had passed.
 */
#define PIT_STATE_VERSION 1u
int pit_save(void *pit, struct buf *out, struct err *e);
int pit_restore(void *pit, struct cursor *in, struct err *e);

#endif
