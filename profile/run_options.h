/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_options: the command line of `kvmprof run`, parsed and checked.
 */
#ifndef KVMPROF_PROFILE_RUN_OPTIONS_H
#define KVMPROF_PROFILE_RUN_OPTIONS_H

#include "vmm/boot/image.h"

#include <stdbool.h>
#include <stdint.h>

struct run_options {
	const char *command; /* "run": for messages */
	const char *image;   /* NULL: the embedded demo */
	const char *output;  /* "perf.data" */
	const char *initrd, *append, *cmdline, *symbols, *buildid_dir;
	const char *guest_root, *debuginfo; /* directories with the guest's programs */
	double freq_hz;			    /* 997 */
	double duration_s;		    /* 0: until the guest ends */
	double max_overhead;		    /* percent; 0: no bound */
	uint64_t mem_size;		    /* bytes */
	enum boot_way boot;
	unsigned int vcpus;
	uint32_t stack_size; /* bytes of one stack that are copied */
	bool jitter, tune, single_file, buildid_cache, quiet, json;
};

/* "-": the profile goes to standard output, and the console to standard error. */
static inline bool run_to_stdout(const struct run_options *o)
{
	return o->output[0] == '-' && !o->output[1];
}

#define RUN_STACK_MAX 16384u
#define RUN_FREQ_MAX 50000.0

/*
 * A command that runs a guest as `kvmprof run' does, with some of its options and with
 * others of its own.
 */
struct run_options_form {
	const char *command; /* "stat" */
	const char *usage;
	const char *const *keep;  /* long names of run's options that it takes; NULL ends */
	const struct option *own; /* as for getopt_long(); .val: a letter, or RUN_OPTIONS_OWN.. */
	/* One of its own: -1 to go on, else the exit status, after a message. */
	int (*take)(void *ctx, int opt, const char *arg);
	void *ctx;
	double freq_hz; /* when --freq is not given */
};
#define RUN_OPTIONS_OWN 4096

/* The same as below for such a command; NULL: run itself. */
int run_options_parse_as(struct run_options *o, int argc, char **argv,
			 const struct run_options_form *form);

/*
 * Returns -1 when the options are good; else the exit status to end with: 0
 * after --help, 2 after a message about wrong usage.
 */
int run_options_parse(struct run_options *o, int argc, char **argv);

#endif
