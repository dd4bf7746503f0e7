/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stop: what a QEMU whose vCPU stands says of that, as a value, and the places at which it is to stand.
 *
 * QEMU maps the shared page (shared.h) and may be in the guest's hands: it can change each word at any
 * moment. So the page is read in this file alone: each word is loaded once, the copy is checked as a whole,
 * and everything else uses the copy. What the program has written to the page it knows by itself, and does
 * not read it back.
 */
#ifndef KVMPROF_VMM_EXACT_STOP_H
#define KVMPROF_VMM_EXACT_STOP_H

#include "base/err.h"
#include "vmm/exact/shared.h"

/* Instructions of a run: more would overflow virtual time, which is in ns (EXACT_NS_AT()). */
#define EXACT_MAX_COUNT (UINT64_C(1) << 60)
/* Bytes of a block of QEMU's: TCG_MAX_INSNS instructions of at most 15 bytes each. */
#define EXACT_MAX_AHEAD (512u * 15u)

/* Each access is one load or one store, in the order that the source has. */
typedef volatile struct exact_shared exact_page;

enum exact_stop_kind {
	EXACT_STOP_SAMPLE,
	EXACT_STOP_PLACE,
	EXACT_STOP_POWEROFF, /* the guest ends itself by the next instruction */
	EXACT_STOP_EXIT,
};

struct exact_stop {
	enum exact_stop_kind kind;
	uint64_t count; /* instructions of blocks that have begun */
	uint64_t
		at; /* EXACT_STOP_SAMPLE, _PLACE: the instruction, from 1 on; 0: before the first */
	uint64_t ahead;	    /* bytes from regs.rip to it; at most EXACT_MAX_AHEAD */
	unsigned int place; /* EXACT_STOP_PLACE: its index, less than what was expected */
	uint8_t status;	    /* EXACT_STOP_EXIT: what the guest has written */
	struct exact_regs regs;
};

/* The values that the program itself has requested, and expects. */
struct exact_expected {
	uint64_t least;	      /* no instruction before this one can follow */
	uint64_t next;	      /* the instruction that is sampled next */
	unsigned int nplaces; /* at most EXACT_MAX_PLACES */
};

/*
 * Copies the stop out of the page and checks it. -EPROTO: it is none that the plugin makes; *out is then
 * not written.
 */
int exact_stop_take(const exact_page *page, const struct exact_expected *x, struct exact_stop *out,
		    struct err *e);

/* Returns how many instructions the page says have begun, within what is possible. */
uint64_t exact_stop_count(const exact_page *page, const struct exact_expected *x);

/* The message of the plugin once it is loaded. */
struct exact_hello {
	uint32_t magic, version;
	char error[128]; /* printable; "": there is none */
};
void exact_stop_hello(const exact_page *page, struct exact_hello *out);

/*
 * Places: instructions in front of which an exact machine stands, as far as the plugin and the program
 * speak of them: the machine's breakpoints, and behind them where parts of the run begin.
 *
 * On the consumer's thread, while the vCPU stands.
 */
struct exact_config;
struct exact_facts;
struct vm;
struct vm_breakpoint;

/* Before QEMU starts. Returns how many there are. */
unsigned int exact_places_init(exact_page *page, const struct exact_config *cfg);
/* Those that lie in a kernel that moves, once it is known where it is. */
void exact_places_follow(exact_page *page, const struct vm *vm, const struct exact_facts *f);
/* It stands in front of one: true when a part of the run begins there, which is noted. */
bool exact_places_begin_part(exact_page *page, const struct exact_stop *stop, const struct vm *vm,
			     struct exact_facts *f);
/*
 * It stands in front of one. Returns the breakpoint of this machine's, as far as it is to be noted, or NULL.
 * The machine collects from here on where it is a start.
 */
const struct vm_breakpoint *exact_places_reached(const struct exact_stop *stop, struct vm *vm,
						 uint64_t now_ns);

#endif
