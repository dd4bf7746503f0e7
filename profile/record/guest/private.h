/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private: the struct guest, shared by guest.c, guest_begin.c and epoch.c. Used by the consumer
 * thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_PRIVATE_H
#define KVMPROF_PROFILE_RECORD_GUEST_PRIVATE_H

#include "profile/record/host/frame.h"
#include "profile/record/host/frame_host.h"
#include "profile/record/guest/epoch.h"
#include "profile/record/guest/guest.h"
#include "profile/record/guest/guest_begin.h"
#include "profile/record/guest/task_index.h"

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_HALF (UINT64_C(1) << 63)
/* Size of the cache of kernel addresses that have a symbol. */
#define NAMED_SLOTS 8192u

/*
 * Code that runs before the kernel and above 1 MiB: the lowest and highest address in samples; 0:
 * none.
 */
enum guest_code_kind { GUEST_CODE_FIRMWARE, GUEST_CODE_DECOMPRESSOR, GUEST_CODE_KINDS };

struct guest_seen_code {
	uint64_t low, high;
};

struct guest {
	struct target *target;
	struct guest_host host;
	struct sink *sink;
	struct guest_options opt;
	bool is_linux, ready, known;
	unsigned int told_pseudo; /* vCPUs whose threads pseudo_task() has reported */
	bool later;		  /* another kernel ran in this machine before */
	/*
	 * in a later kernel: samples up to this time have a task that was read with the layout of
	 * the kernel before
	 */
	uint64_t plan_ns;
	/* failed attempts to read the kernel's tables from guest memory */
	unsigned int failed_reads;
	uint64_t read_ns; /* when the last of them failed, or its mark was tried */
	struct epoch_mark mark;
	const uint8_t *text; /* the kernel's text from text_va on, in this process; NULL: none */
	uint64_t text_va, text_len;
	struct guest_memory memory;
	struct memory reader;
	struct unwinder unwinder;
	uint64_t code_changes; /* guest_code_changes() for which the memo and `named` are valid */
	uint64_t named[NAMED_SLOTS];
	struct kslide_ref *slide_ref; /* during the search for the slide */
	struct kslide slide;
	struct symtab *boot_symbols; /* names of the firmware and the decompressor; NULL: none */
	struct guest_seen_code seen_code[GUEST_CODE_KINDS];
	struct userfile_finder finder;
	bool have_finder;
	struct guest_tasks *tasks; /* NULL: tasks cannot be told apart */
	/* Finds the tasks of samples that lack theirs; NULL: not created yet, or not possible. */
	struct guest_task_index *index;
	/* Owned: a copy of such a sample, with its task; NULL: there was none. */
	struct sample *named_sample;
	uint64_t awaited_ns; /* time of the first sample that waits for tasks; 0: none does */
	uint64_t named_late; /* samples whose task was found so */
	struct guest_dsos *dsos;
	struct guest_jit *jit;
	struct jit_source jit_source;
	struct guest_maps *maps;
	struct guest_cfi *cfi;	     /* NULL if maps is */
	struct guest_python *python; /* NULL if maps is, or if not requested */
	struct guest_code *code;     /* NULL until the kernel is known */
	struct memprobe *mem;	     /* NULL: not requested */
	struct guest_vmas *vmas;     /* NULL: mappings are unknown or not needed */
	struct guest_search search;
	struct frame_names frames;
	struct frame_host *host_frames; /* NULL: not requested */
	uint64_t swept_ns;
	bool found_late;	 /* tasks were found in the guest's memory */
	uint64_t unknown_before; /* samples of unknown tasks until then */
};

#endif
