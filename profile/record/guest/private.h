/* SPDX-License-Identifier: GPL-2.0-or-later */
/* private: a guest, for guest.c and guest_begin.c alone, on the consumer's thread. */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_PRIVATE_H
#define KVMPROF_PROFILE_RECORD_GUEST_PRIVATE_H

#include "profile/record/host/frame.h"
#include "profile/record/host/frame_host.h"
#include "profile/record/guest/epoch.h"
#include "profile/record/guest/guest.h"
#include "profile/record/guest/guest_begin.h"

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_HALF (UINT64_C(1) << 63)
/* Kernel addresses that are known to have a name. */
#define NAMED_SLOTS 8192u

/* Code that runs before the kernel, and above 1 MiB: the addresses in [low, high] that samples have; 0: none. */
enum guest_code_kind { GUEST_CODE_FIRMWARE, GUEST_CODE_DECOMPRESSOR, GUEST_CODE_KINDS };

struct guest_seen_code {
	uint64_t low, high;
};

struct guest {
	struct target *target;
	struct guest_host host;
	struct sink *sink;
	struct guest_options opt;
	bool is_linux, ready, known, told_pseudo;
	bool later; /* another kernel ran in this machine before */
	uint64_t
		plan_ns; /* of a later kernel: until then the task of a sample was read as that kernel's predecessor keeps it */
	unsigned int failed_reads; /* of the kernel's tables, in the guest's memory */
	uint64_t read_ns;	   /* the time of the sample at which the last of them failed */
	struct epoch_mark mark;
	const uint8_t *text; /* the kernel's, from text_va on, in this process; NULL: none */
	uint64_t text_va, text_len;
	struct guest_memory memory;
	struct memory reader;
	struct unwinder unwinder;
	uint64_t code_changes; /* of the lists for which its memo and `named` hold */
	uint64_t named[NAMED_SLOTS];
	struct kslide_ref *slide_ref; /* while the slide is looked for */
	struct kslide slide;
	struct symtab *boot_symbols; /* names of the firmware and the decompressor; NULL: none */
	struct guest_seen_code seen_code[GUEST_CODE_KINDS];
	struct userfile_finder finder;
	bool have_finder;
	struct guest_tasks *tasks; /* NULL: they can't be told apart */
	struct guest_dsos *dsos;
	struct guest_jit *jit;
	struct jit_source jit_source;
	struct guest_maps *maps;
	struct guest_cfi *cfi;	     /* NULL: as long as maps is */
	struct guest_python *python; /* NULL: as long as maps is, or not asked for */
	struct guest_code *code;     /* NULL: as long as the kernel is not known */
	struct memprobe *mem;	     /* NULL: not asked for */
	struct guest_vmas *vmas;     /* NULL: mappings can't be told, or nobody asks */
	struct guest_search search;
	struct frame_names frames;
	struct frame_host *host_frames; /* NULL: not asked for */
	uint64_t swept_ns;
	bool found_late;	 /* tasks were found in its memory */
	uint64_t unknown_before; /* samples of unknown tasks until then */
};

#endif
