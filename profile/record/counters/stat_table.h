/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stat_table: counters by name, made of what is known of each vCPU. Pure.
 *
 * A counter that this host cannot give is there, but not supported: never 0. What each is computed from stands in
 * docs/man/kvmprof-stat.1.
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
	bool always; /* to be shown when it is 0, too */
	uint64_t v[VM_MAX_VCPUS];
};

/*
 * What the rows of one vCPU's time are made of, ns. They are of different clocks, so that rows are made
 * of what has come together since: an interval's are no differences of rows.
 */
struct stat_time {
	uint64_t wall[ACCOUNT_SPANS], delay[ACCOUNT_SPANS], blocked[ACCOUNT_SPANS], elsewhere;
	uint64_t guest, halted, polled;
	bool have_guest, have_halted, have_delay;
};

/* Values since the machine's first instruction, or of an interval. */
struct stat_table {
	uint64_t elapsed_ns;
	unsigned int vcpus, n;
	struct stat_time time[VM_MAX_VCPUS];
	struct stat_row row[STAT_MAX_ROWS];
};

/* The figures that are known of one vCPU. */
struct stat_vcpu {
	const struct vcpu_stats *own;
	struct account account; /* as of the end of elapsed_ns */
	struct stat_thread thread;
	const struct kvmstats *kvm; /* NULL: this KVM has none */
	const uint8_t *kvm_data;
};

/* The table of these; vm gives the devices' names. */
void stat_build(struct stat_table *t, const struct vm *vm, const struct stat_vcpu *vcpu,
		unsigned int vcpus, uint64_t elapsed_ns);
/* t -= before, where before is an earlier table of the same machine. */
void stat_since(struct stat_table *t, const struct stat_table *before);
uint64_t stat_sum(const struct stat_table *t, const struct stat_row *r);

/* The rows whose sum is the time that has passed. */
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
extern const char *const stat_where_name[STAT_WHERES]; /* "guest", ... */

/* Forms for people, for spreadsheets and for programs. */
struct stat_style {
	const char *sep;  /* NULL: aligned columns; else fields with this between them */
	bool per_vcpu;	  /* a line for each vCPU; else their sum */
	bool interval;	  /* lines begin with the time at its end */
	uint64_t time_ns; /* that */
};
void stat_print(const struct stat_table *t, const struct stat_style *style, FILE *out);
/* Writes the members of a JSON object. */
void stat_json(struct json_writer *w, const struct stat_table *t);

#endif
