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
	const char *image;  /* NULL: the embedded demo */
	const char *output; /* "perf.data" */
	const char *initrd, *append, *cmdline, *symbols, *buildid_dir;
	const char *guest_root, *debuginfo; /* directories with the guest's programs */
	double freq_hz;			    /* 997 */
	double duration_s;		    /* 0: until the guest ends */
	uint64_t mem_size;		    /* bytes */
	enum boot_way boot;
	unsigned int vcpus;
	uint32_t stack_size; /* bytes of one stack that are copied */
	bool mem;	     /* look up what memory the sampled instructions use */
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
 * Returns -1 when the options are good; else the exit status to end with: 0
 * after --help, 2 after a message about wrong usage.
 */
int run_options_parse(struct run_options *o, int argc, char **argv);

#endif
