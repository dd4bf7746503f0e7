/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stat_table: named counters, computed from the data of each vCPU. The functions work on their
 * arguments only; any thread.
 *
 * A counter that this host does not provide is marked as not supported, and is never 0.
 * docs/man/kvmprof-stat.1 describes how each one is computed.
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_STAT_TABLE_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_STAT_TABLE_H

#include "base/json.h"
#include "profile/record/counters/stat_thread.h"
#include "vmm/kvmstats.h"
#include "base/account.h"
#include "base/limits.h"
#include "base/vcpu_stats.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct vm;

#define STAT_MAX_ROWS 192u
#define STAT_NAME 80u

enum stat_unit { STAT_COUNT, STAT_NS };

struct stat_row {
	char name[STAT_NAME];
	enum stat_unit unit;
	bool supported;
	bool always; /* shown even if it is 0 */
	uint64_t v[VM_MAX_VCPUS];
};

/*
 * The parts from which the rows of one vCPU's time are computed, in ns. They come from different
 * clocks, so an interval's rows are computed from the differences of these parts, not as
 * differences of rows.
 */
struct stat_time {
	uint64_t wall[ACCOUNT_SPANS], delay[ACCOUNT_SPANS], blocked[ACCOUNT_SPANS], elsewhere;
	uint64_t guest, halted, polled;
	bool have_guest, have_halted, have_delay;
};

/* Values since the machine's first instruction, or in an interval. */
struct stat_table {
	uint64_t elapsed_ns;
	unsigned int vcpus, n;
	struct stat_time time[VM_MAX_VCPUS];
	struct stat_row row[STAT_MAX_ROWS];
};

/* The data of one vCPU. */
struct stat_vcpu {
	const struct vcpu_stats *own;
	struct account account; /* as of the end of elapsed_ns */
	struct stat_thread thread;
	const struct kvmstats *kvm; /* NULL: this KVM has none */
	const uint8_t *kvm_data;
};

/* Computes the table; vm provides the devices' names. */
void stat_build(struct stat_table *t, const struct vm *vm, const struct stat_vcpu *vcpu,
		unsigned int vcpus, uint64_t elapsed_ns);
/* Subtracts `before`, an earlier table of the same machine, from *t. */
void stat_subtract(struct stat_table *t, const struct stat_table *before);
/* Returns the sum of a row over all vCPUs. */
uint64_t stat_sum(const struct stat_table *t, const struct stat_row *r);

/* The rows whose sum is the elapsed time. */
enum stat_where {
	STAT_GUEST,
	STAT_KVM,
	STAT_VMM,
	STAT_RUNNABLE,
	STAT_HALTED,
	STAT_STOPPED,
	STAT_WAITING,
	STAT_UNTOLD,
	STAT_WHERES
};
extern const char *const stat_where_name[STAT_WHERES]; /* the rows' names: "guest", ... */

/* The format: for people, for spreadsheets and for programs. */
struct stat_style {
	const char *sep;  /* NULL: aligned columns; else the separator of fields */
	bool per_vcpu;	  /* a line for each vCPU; otherwise their sum */
	bool interval;	  /* lines begin with time_ns */
	uint64_t time_ns; /* end of the interval */
};
/* Prints the table. */
void stat_print(const struct stat_table *t, const struct stat_style *style, FILE *out);
/* Writes the members into the JSON object that is open in *w. */
void stat_json(struct json_writer *w, const struct stat_table *t);

#endif
