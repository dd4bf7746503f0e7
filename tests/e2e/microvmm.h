/* SPDX-License-Identifier: GPL-2.0-or-later */
/* microvmm: declarations shared by the two files of the test's VMM, which microvmm.c describes. */
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

/*
 * Address of the boot information (Xen's hvm_start_info,
 * xen/include/public/arch-x86/hvm/start_info.h).
 */
#define START_INFO 0x6000u

struct memory_config {
	const char *kernel, *append;
	const char *kind; /* anon, memfd, uffd, or the path of a file, with a slash */
	/*
	 * Directory of a snapshot, or NULL. Its memory is then a private mapping of the
	 * snapshot's file, or is served from that (uffd), and nothing is loaded.
	 */
	const char *restore;
	unsigned int mib;
};

struct memory {
	uint8_t *ram;
	uint32_t entry; /* guest-physical address of the kernel's entry */
	/* State of the page server: the delay before each page, and whether it serves none. */
	atomic_uint slow_us;
	atomic_bool dead;
	/*
	 * Number of pages served, of requests while it was dead, and of requests of other processes
	 * among all.
	 */
	atomic_ulong served, refused, asked_by_others;
};

/*
 * Maps the memory and loads the kernel. Exits with a message on failure. The memory belongs to this
 * module.
 */
struct memory *memory_make(const struct memory_config *cfg);
/* Writes the memory to a file in the directory. The vCPUs must not run. Exits with a message on failure. */
void memory_save(const char *directory);
/* Loads the kernel again. The vCPUs must not run. */
void memory_reload(void);
/*
 * Makes all pages absent: those of a page server or a file, or else those that can be swapped out.
 * The vCPUs must not run. Returns false if pages remain.
 */
bool memory_drop(void);

#endif
