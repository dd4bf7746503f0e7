/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stop: reads and checks what a stopped QEMU reports on the shared page, and manages the places at
 * which it has to stop.
 *
 * QEMU maps the shared page (shared.h), and the guest may have taken over QEMU: it can change each
 * word at any moment. So only this file reads the page: it loads each word once, checks the copy
 * as a whole, and everything else uses the copy. The program remembers what it has written to the
 * page, and does not read that back. All functions are called by the thread that the machine
 * belongs to: the opener's, then the consumer's.
 */
#ifndef KVMPROF_VMM_EXACT_STOP_H
#define KVMPROF_VMM_EXACT_STOP_H

#include "base/err.h"
#include "vmm/exact/shared.h"

/*
 * Maximum number of instructions of a run: more would overflow virtual time in ns (EXACT_NS_AT()).
 */
#define EXACT_MAX_COUNT (UINT64_C(1) << 60)
/* Maximum bytes of one of QEMU's blocks: TCG_MAX_INSNS instructions of at most 15 bytes each. */
#define EXACT_MAX_AHEAD (512u * 15u)

/* The shared page. Each access is one load or one store, in program order. */
typedef volatile struct exact_shared exact_page;

enum exact_stop_kind {
	EXACT_STOP_SAMPLE,
	EXACT_STOP_PLACE,
	EXACT_STOP_POWEROFF, /* the next instruction turns the machine off */
	EXACT_STOP_EXIT,
};

struct exact_stop {
	enum exact_stop_kind kind;
	uint64_t count; /* instructions of all blocks that have begun */
	/* EXACT_STOP_SAMPLE, _PLACE: number of the instruction, from 1; 0: before the first one. */
	uint64_t at;
	uint64_t ahead;	    /* bytes from regs.rip to that instruction; at most EXACT_MAX_AHEAD */
	unsigned int place; /* EXACT_STOP_PLACE: its index, less than nplaces */
	uint8_t status;	    /* EXACT_STOP_EXIT: the value that the guest has written */
	struct exact_regs regs;
};

/* The values that the program has requested and therefore expects. */
struct exact_expected {
	uint64_t least;	      /* the earliest instruction that can come next */
	uint64_t next;	      /* the instruction that is sampled next */
	unsigned int nplaces; /* at most EXACT_MAX_PLACES */
};

/*
 * Copies the stop out of the page and checks it. Returns 0, or -EPROTO with *e set and *out
 * unchanged if the plugin cannot have written it.
 */
int exact_stop_take(const exact_page *page, const struct exact_expected *x, struct exact_stop *out,
		    struct err *e);

/* Returns how many instructions the page reports as begun, limited to the possible range. */
uint64_t exact_stop_count(const exact_page *page, const struct exact_expected *x);

/* The plugin's message after it has been loaded. */
struct exact_hello {
	uint32_t magic, version;
	char error[128]; /* printable; "": no error */
};
/* Copies the message; characters that cannot be printed become '?'. */
void exact_stop_read_hello(const exact_page *page, struct exact_hello *out);

/*
 * Places: instructions before which an exact machine stops. They are the machine's breakpoints,
 * followed by the begins of the run's parts. While QEMU runs, these functions are called only when
 * the vCPU is stopped.
 */
struct exact_config;
struct exact_facts;
struct vm;
struct vm_breakpoint;

/* Writes all places to the page, before QEMU starts. Returns their number. */
unsigned int exact_places_init(exact_page *page, const struct exact_config *cfg);
/* Updates the addresses of places in a kernel that is relocated, once its slide is known. */
void exact_places_relocate(exact_page *page, const struct vm *vm, const struct exact_facts *f);
/*
 * Returns true if the vCPU has stopped where a part of the run begins, and records that part in *f
 * and on the page.
 */
bool exact_places_begin_part(exact_page *page, const struct exact_stop *stop, const struct vm *vm,
			     struct exact_facts *f);
/*
 * Returns the breakpoint at which the vCPU has stopped, or NULL if it is none or need not be
 * recorded. If its action is VM_BREAKPOINT_START, it makes the machine collect from now on.
 */
const struct vm_breakpoint *exact_places_reached(const struct exact_stop *stop, struct vm *vm,
						 uint64_t now_ns);

#endif
