/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * livekernel: reads the tables of a running Linux kernel from its memory alone.
 *
 * It is for a guest without a given image. One address inside the kernel is enough: in the memory
 * mapped around it kallsyms is found by its content (live_find.h; if that fails all of it is read), and its symbols give the addresses of
 * everything else:
 *
 *	ORC		__start_orc_unwind_ip, __start_orc_unwind and their ends
 *	BTF		__start_BTF to __stop_BTF
 *	build id	among the notes from __start_notes to __stop_notes
 *	banner		linux_banner
 *
 * All addresses are runtime addresses, including KASLR. Not all pages are mapped: the linker script
 * (arch/x86/kernel/vmlinux.lds.S) leaves gaps of up to 2 MiB around read-only data, which may be
 * unmapped after boot, as may be init code and data (free_kernel_image_pages() in
 * arch/x86/mm/init.c); below _text and after _end nothing is mapped (cleanup_highmap()).
 *
 * Of anything else a few pages are read at most: LIVEKERNEL_TEXT bytes of code, which show the format of the ORC table. A kernel that was
 * stored before (live_guest.load) is identified by its notes, and nothing else of it is read.
 *
 * Reading takes some 0.1 s for a typical kernel, and temporarily memory for a copy of it. The guest
 * may run meanwhile: these tables do not change after boot. The result does not refer to the guest;
 * it is constant and may be used by several threads.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_LIVEKERNEL_H
#define KVMPROF_SYMBOLIZER_KERNEL_LIVEKERNEL_H

#include "base/err.h"
#include "symbolizer/kernel/kallsyms.h"
#include "symbolizer/core/kimage.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/unwind/orc.h"
#include "symbolizer/core/symtab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* __START_KERNEL_map and MODULES_VADDR (arch/x86/include/asm/page_64_types.h). */
#define LIVEKERNEL_LOW UINT64_C(0xffffffff80000000)
#define LIVEKERNEL_HIGH UINT64_C(0xffffffffc0000000)
/* Bytes around the given address that are examined, and at most copied. */
#define LIVEKERNEL_MAX_BELOW (UINT64_C(128) << 20)
#define LIVEKERNEL_MAX_ABOVE (UINT64_C(128) << 20)
/* An unmapped range of this length is the end: init memory of a large kernel has some 8 MiB. */
#define LIVEKERNEL_MAX_GAP (UINT64_C(16) << 20)
#define LIVEKERNEL_MAX_BTF (UINT64_C(64) << 20)
#define LIVEKERNEL_MAX_NOTES UINT64_C(65536)
#define LIVEKERNEL_TEXT (UINT64_C(256) << 10)

struct live_guest;

struct livekernel {
	bool stored;		 /* it was known: the tables are from a stored copy */
	uint64_t start, end;	 /* the mapped range that was found, whole pages */
	uint64_t text, text_end; /* _text (or _stext), and the end of init code */
	uint64_t image_end;	 /* _end, or `end` if that is unknown */
	struct symtab *symbols;	 /* owned, frozen */
	struct kallsyms_info kallsyms;

	struct orc *orc;	/* owned; NULL: orc_note has the reason */
	uint64_t irq_stack_ptr; /* as orc_irq_stack_ptr(): 0 if unknown */
	bool irq_stack_percpu;
	bool frame_pointers; /* whether this code keeps frame pointers */

	uint8_t *btf; /* owned, raw bytes for btf_open(); NULL: btf_note has the reason */
	size_t btf_len;

	char banner[256];   /* "Linux version ..." without the newline, or "" */
	char osrelease[65]; /* third word of the banner, or "" */
	uint8_t build_id[KIMAGE_BUILD_ID_MAX];
	unsigned int build_id_len; /* bytes; 0: not found */

	/* The reason why a part is missing; code 0: it is not. */
	struct err orc_note, btf_note, banner_note, build_id_note;
};

/*
 * Reads all tables. inside: the runtime address of any byte of kernel text (LSTAR, an IDT handler,
 * a sampled rip). Returns 0; -EINVAL if it is not between LIVEKERNEL_LOW and _HIGH; -EFAULT if
 * nothing is mapped there; -ENOENT if no kallsyms is around it; -EBADMSG if kallsyms contradicts
 * itself; or -ENOMEM; with *e set. The caller frees *out with livekernel_destroy(), which accepts
 * NULL. Called by the thread that may use the guest's memory.
 */
int livekernel_read(struct livekernel **out, const struct live_guest *g, uint64_t inside,
		    struct err *e);
void livekernel_destroy(struct livekernel *l);

#endif
