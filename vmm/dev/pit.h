/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pit: an 8254 interval timer in the VMM, for hosts where guest ticks are expensive.
 *
 * KVM's in-kernel PIT is better wherever ring 0 runs natively. Where ring 0 is interpreted, a 250
 * Hz tick takes half of the guest's time. This PIT follows the guest's programming but keeps a
 * minimum time between interrupts, periodic or single. The counters still show true time, so the
 * guest calibrates delays correctly; counts of periodic ticks (jiffies) fall behind. A running
 * guest must also have had that much processor time since the last interrupt, because on a busy
 * host it would process nothing but ticks. Channels 0 and 2 and port 0x61; source: Intel 8254 data
 * sheet. vCPU threads access the ports; the thread that creates the machine calls the functions.
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
	uint8_t access;		    /* 1: low byte, 2: high byte, 3: low then high */
	bool write_high, read_high; /* the next byte of a two-byte access is the high one */
	bool latched;
	uint8_t low; /* low byte of a two-byte write */
	uint16_t latch;
	uint32_t reload;   /* 1..65536 */
	uint64_t start_ns; /* CLOCK_MONOTONIC when counting started */
};

/*
 * runs() returns whether the vCPU that gets the interrupts runs (else it is halted), and stores its
 * processor time in ns. Called with the PIT's lock, on its thread. NULL: not known.
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
	uint64_t floor_ns; /* minimum time between interrupts; 0: as programmed */
	struct pit_channel ch[3];
	bool speaker_gate; /* bit 0 of port 0x61: gate of channel 2 */
	uint64_t next_ns;  /* time of the next interrupt; 0: none */
	uint64_t last_ns;  /* time of the previous one; 0: none yet */
	/*
	 * Processor time that load.runs() reported at the last interrupt during which the guest
	 * ran.
	 */
	uint64_t last_cpu;
	uint64_t put_off; /* how long the next interrupt has waited for the guest to run */
	uint64_t ticks;
};

/* Initialises *p and adds its ports. Returns 0, or -errno with *e recorded. */
int pit_init(struct pit *p, struct bus *bus, struct dev_irq irq, struct pit_load load,
	     uint64_t floor_ns, struct err *e);
/*
 * Starts the PIT's thread; called once, by vm_start(). No interrupts come without it. Returns 0, or
 * -errno with *e recorded.
 */
int pit_start(struct pit *p, struct err *e);
/* Ends the thread and releases *p. */
void pit_deinit(struct pit *p);

/* The version of the format that pit_save() writes. */
#define PIT_STATE_VERSION 1u
/* Saves the state of the struct pit at `pit` for a snapshot (snapshot.h). Returns 0. */
int pit_save(void *pit, struct buf *out, struct err *e);
/*
 * Restores what pit_save() has saved. The counters continue from their saved values, as if no time
 * had passed. Returns 0, or -EINVAL with *e recorded.
 */
int pit_restore(void *pit, struct cursor *in, struct err *e);

#endif
