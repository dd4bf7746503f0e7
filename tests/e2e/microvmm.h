/* SPDX-License-Identifier: GPL-2.0-or-later */
/* microvmm: what the two files of the test's VMM share (microvmm.c says what it is). */
#ifndef KVMPROF_TESTS_E2E_MICROVMM_H
#define KVMPROF_TESTS_E2E_MICROVMM_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(ok, what)                                                                \
	do {                                                                          \
		if (!(ok)) {                                                          \
			fprintf(stderr, "microvmm: %s: %s\n", what, strerror(errno)); \
			exit(1);                                                      \
		}                                                                     \
	} while (0)

/* Where the boot information lies (Xen's hvm_start_info, xen/include/public/arch-x86/hvm/start_info.h). */
#define START_INFO 0x6000u

struct memory_config {
	const char *kernel, *append;
	const char *kind; /* anon, memfd, uffd, or the path of a file, with a slash */
	unsigned int mib;
};

struct memory {
	uint8_t *ram;
	uint32_t entry; /* guest-physical: where the kernel begins */
	/* The page server's: how long it waits before each page, and whether it serves none. */
	atomic_uint slow_us;
	atomic_bool dead;
	/* Pages that it served, requests that it met while it was dead, and requests of other processes among all. */
	atomic_ulong served, refused, asked_by_others;
};

/* Maps the memory and loads the kernel. Exits with a message when it cannot. */
struct memory *memory_make(const struct memory_config *cfg);
/* Loads the kernel anew. The vCPUs must not run. */
void memory_reload(void);
/*
 * Makes all pages absent: of a page server or a file, or else those that can be swapped out. The vCPUs must not run. Returns false where
 * pages stay.
 */
bool memory_drop(void);

#endif
