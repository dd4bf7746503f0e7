/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * livekernel: the tables of a Linux kernel that runs, out of its memory alone.
 *
 * For a guest whose image nobody gave us. One address inside of the kernel is enough:
 * what is mapped around it is copied, kallsyms is found in the copy by its content
 * (symbolizer/kernel/kallsyms.h), and its symbols tell where all the rest lies:
 *
 *	ORC		__start_orc_unwind_ip, __start_orc_unwind and their ends
 *	BTF		__start_BTF to __stop_BTF
 *	build id	among the notes from __start_notes to __stop_notes
 *	banner		linux_banner
 *
 * All addresses are those at run time, KASLR included. Which pages are there: the
 * linker script (arch/x86/kernel/vmlinux.lds.S) leaves gaps of up to 2 MiB around
 * read-only data, which may be unmapped after boot, as may be init code and data
 * (free_kernel_image_pages() in arch/x86/mm/init.c); below _text and behind _end
 * nothing is mapped (cleanup_highmap()).
 *
 * Takes some 0.1 s for a stock kernel and, while it runs, memory for all of it. The
 * guest may run meanwhile: tables that are read here do not change after boot.
 * The result points nowhere into the guest; const and lock-free.
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
/* How far around the given address is looked, and so the most that is copied. */
#define LIVEKERNEL_MAX_BELOW (UINT64_C(128) << 20)
#define LIVEKERNEL_MAX_ABOVE (UINT64_C(128) << 20)
/* Nothing mapped for so long is the end: init memory of a large kernel is some 8 MiB. */
#define LIVEKERNEL_MAX_GAP (UINT64_C(16) << 20)
#define LIVEKERNEL_MAX_BTF (UINT64_C(64) << 20)
#define LIVEKERNEL_MAX_NOTES UINT64_C(65536)

struct livekernel {
	uint64_t start, end;	 /* what was found mapped, in pages */
	uint64_t text, text_end; /* _text (or _stext), and the end of init code */
	uint64_t image_end;	 /* _end, or `end` */
	struct symtab *symbols;	 /* owned, frozen */
	struct kallsyms_info kallsyms;

	struct orc *orc;	/* owned; NULL: none, see orc_note */
	uint64_t irq_stack_ptr; /* as of orc_irq_stack_ptr(): 0 when it is not known */
	bool irq_stack_percpu;
	bool frame_pointers; /* does this code keep them? */

	uint8_t *btf; /* owned, raw: for btf_open(); NULL: none, see btf_note */
	size_t btf_len;

	char banner[256];   /* "Linux version ..." without the newline, or "" */
	char osrelease[65]; /* its third word, or "" */
	uint8_t build_id[KIMAGE_BUILD_ID_MAX];
	unsigned int build_id_len; /* 0: not found */

	/* Why something is missing that could have been there; code 0: nothing is. */
	struct err orc_note, btf_note, banner_note, build_id_note;
};

/*
 * inside: the address of any byte of kernel text (LSTAR, an IDT handler, a sampled
 * rip), as it is mapped at run time. -EINVAL: not between LIVEKERNEL_LOW and _HIGH;
 * -EFAULT: nothing is mapped there; -ENOENT: no kallsyms around it; -EBADMSG:
 * kallsyms that contradict themselves; -ENOMEM. The caller destroys.
 */
int livekernel_read(struct livekernel **out, const struct memory *m, uint64_t inside,
		    struct err *e);
void livekernel_destroy(struct livekernel *l);

#endif
