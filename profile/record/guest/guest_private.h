/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_private: what the files of guest share. For guest*.c alone, on the consumer's thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_GUEST_PRIVATE_H
#define KVMPROF_PROFILE_RECORD_GUEST_GUEST_PRIVATE_H

#include "profile/record/host/frame_host.h"
#include "profile/record/host/frame_state.h"
#include "profile/record/host/frame_vmm.h"
#include "profile/record/guest/guest.h"
#include "profile/record/guest/search.h"

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_HALF (UINT64_C(1) << 63)
/* Kernel addresses that are known to have a name. */
#define NAMED_SLOTS 8192u

struct guest {
	struct target *target;
	struct vm *vm;
	struct sink *sink;
	struct guest_options opt;
	bool is_linux, ready, known, told_pseudo;
	const uint8_t *text; /* the kernel's, from text_va on, in this process; NULL: none */
	uint64_t text_va, text_len;
	struct guest_memory memory;
	struct memory reader;
	struct unwinder unwinder;
	uint64_t code_changes; /* of the lists for which its memo and `named` hold */
	uint64_t named[NAMED_SLOTS];
	struct kslide_ref *slide_ref; /* while the slide is looked for */
	struct kslide slide;
	struct symtab *boot_symbols; /* the decompressor's one name; NULL: none */
	struct userfile_finder finder;
	bool have_finder;
	struct guest_tasks *tasks; /* NULL: they can't be told apart */
	struct guest_dsos *dsos;
	struct guest_jit *jit;
	struct jit_source jit_source;
	struct guest_maps *maps;
	struct guest_cfi *cfi;	     /* NULL: as long as maps is */
	struct guest_python *python; /* NULL: as long as maps is, or not asked for */
	struct guest_modules *modules;
	struct guest_dyncode *dyncode;
	struct memprobe *mem;	 /* NULL: not asked for */
	struct guest_vmas *vmas; /* NULL: mappings can't be told, or nobody asks */
	struct guest_search search;
	struct guest_vmm vmm;
	struct guest_states states;
	struct guest_host *host; /* NULL: not asked for */
	uint64_t swept_ns;
	bool found_late;	 /* tasks were found in its memory */
	uint64_t unknown_before; /* samples of unknown tasks until then */
};

/* guest_begin.c */

/* The image's view and the guest's memory meet here, once: known says whether the kernel was found. */
int guest_begin(struct guest *g, bool known, struct err *e);
/* A snapshot tells where the kernel was found to be: begins. */
int guest_place(struct guest *g, struct err *e);
/* What reads mappings, once tasks and their members are known. */
int guest_create_maps(struct guest *g, struct err *e);
/* Tell the capture path where tasks are, which it could not know when the guest started. */
void guest_set_late_plan(struct guest *g);

#endif
