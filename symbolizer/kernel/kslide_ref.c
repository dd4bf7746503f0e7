/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of an image and its symbols kslide_solve() compares a running kernel with. */
#include "symbolizer/kernel/kslide.h"

#include "symbolizer/core/elf64.h"

#include <string.h>

/* A window with fewer different bytes is padding, or looks like much other code. */
#define MIN_DISTINCT 20u
#define WINDOW_STEP 16u /* compilers align functions to this */
/* Tries for one window: where so much is padding more of it follows. */
#define MAX_TRIES 32u

/*
 * Exception handlers by vector. arch/x86/kernel/idt.c (4.14 on) or traps.c; the
 * asm_ names since "x86/entry: Convert ... to IDTENTRY" (5.8). KVM guests had a
 * page fault handler of their own until then, tracing one until 4.14.
 */
static const char *const handler_name[KSLIDE_VECTORS][3] = {
	[0] = { "asm_exc_divide_error", "divide_error" },
	[1] = { "asm_exc_debug", "debug" },
	[2] = { "asm_exc_nmi", "nmi" },
	[3] = { "asm_exc_int3", "int3" },
	[4] = { "asm_exc_overflow", "overflow" },
	[5] = { "asm_exc_bounds", "bounds" },
	[6] = { "asm_exc_invalid_op", "invalid_op" },
	[7] = { "asm_exc_device_not_available", "device_not_available" },
	[8] = { "asm_exc_double_fault", "double_fault" },
	[9] = { "asm_exc_coproc_segment_overrun", "coprocessor_segment_overrun" },
	[10] = { "asm_exc_invalid_tss", "invalid_TSS" },
	[11] = { "asm_exc_segment_not_present", "segment_not_present" },
	[12] = { "asm_exc_stack_segment", "stack_segment" },
	[13] = { "asm_exc_general_protection", "general_protection" },
	[14] = { "asm_exc_page_fault", "page_fault", "async_page_fault" },
	[16] = { "asm_exc_coprocessor_error", "coprocessor_error" },
	[17] = { "asm_exc_alignment_check", "alignment_check" },
	[18] = { "asm_exc_machine_check", "machine_check" },
	[19] = { "asm_exc_simd_coprocessor_error", "simd_coprocessor_error" },
};

/*
 * Early in the boot every vector has a stub in one array (EARLY_IDT_HANDLER_SIZE,
 * arch/x86/include/asm/segment.h): 9 bytes, 13 where they begin with endbr64 (5.18).
 */
static const unsigned int early_stride[] = { 9, 13 };
#define EARLY_SLOT (KSLIDE_MAX_HANDLERS - 2)

static uint64_t code_symbol(const struct symtab *t, const char *name)
{
	const struct symbol *s = t ? symtab_find(t, name) : NULL;

	return s && (s->type == 't' || s->type == 'T') ? s->addr : 0;
}

static void take_names(struct kslide_ref *r, const struct symtab *t)
{
	uint64_t early = code_symbol(t, "early_idt_handler_array");

	r->syscall = code_symbol(t, "entry_SYSCALL_64");
	if (!r->syscall)
		r->syscall = code_symbol(t, "system_call"); /* until 4.1 */
	for (unsigned int v = 0; v < KSLIDE_VECTORS; v++) {
		unsigned int n = 0;
		uint64_t va;

		for (unsigned int i = 0; i < EARLY_SLOT && handler_name[v][i]; i++) {
			va = code_symbol(t, handler_name[v][i]);
			if (va)
				r->handler[v][n++] = va;
		}
		/* A gate of which only the early handler is known would deny the final one. */
		for (unsigned int i = 0; n && early && i < 2; i++)
			r->handler[v][n++] = early + (uint64_t)v * early_stride[i];
	}
}

/* The note as it stands in memory: { namesz 4, descsz, type 3 } "GNU\0" id. */
static void take_note(struct kslide_ref *r, const struct kimage *k)
{
	const uint32_t head[] = { 4, k->build_id_len, NT_GNU_BUILD_ID };
	struct elf64 f;
	uint8_t *note = r->note;

	if (!k->build_id_len || elf64_open(&f, "kernel image", k->elf, k->elf_len, NULL))
		return;
	memcpy(note, head, sizeof(head));
	memcpy(note + 12, "GNU", 4);
	memcpy(note + 16, k->build_id, k->build_id_len);
	for (uint32_t i = 0; i < f.phnum; i++) {
		Elf64_Phdr p = elf64_phdr(&f, i);
		struct cursor c = cursor_window(&f.file, p.p_offset, p.p_filesz);
		const uint8_t *at;

		if (p.p_type != PT_NOTE || c.bad)
			continue;
		at = memmem(c.base, c.len, note, 16 + k->build_id_len);
		if (at) {
			r->note_va = p.p_vaddr + (uint64_t)(at - c.base);
			r->note_len = 16 + k->build_id_len;
			return;
		}
	}
}

/* Where code ends that stays as long as the kernel runs; init code is given back. */
static uint64_t lasting_text_end(const struct kimage *k, const struct symtab *t)
{
	const struct symbol *etext = t ? symtab_find(t, "_etext") : NULL;
	uint64_t va, len, end = k->etext;

	if (etext && etext->addr > k->text && etext->addr <= k->etext)
		return etext->addr;
	if (kimage_section(k, ".text", &va, &len) && va == k->text && len <= k->etext - va)
		return va + len;
	/* Linux has text and read-only data in one segment, init code in another. */
	for (unsigned int i = 0; i < k->nseg; i++)
		if (k->seg[i].va == k->text && k->seg[i].file_len < end - k->text)
			end = k->text + k->seg[i].file_len;
	return end;
}

static bool distinctive(const uint8_t *p)
{
	bool seen[256] = { false };
	unsigned int n = 0;

	for (unsigned int i = 0; i < KSLIDE_WINDOW; i++) {
		n += !seen[p[i]];
		seen[p[i]] = true;
	}
	return n >= MIN_DISTINCT;
}

static void take_windows(struct kslide_ref *r, const struct kimage *k, const struct symtab *t)
{
	uint64_t len = lasting_text_end(k, t) - k->text;
	uint64_t stride = len / KSLIDE_MAX_WINDOWS / WINDOW_STEP * WINDOW_STEP;

	if (stride < 2 * KSLIDE_WINDOW)
		stride = 2 * KSLIDE_WINDOW;
	for (uint64_t off = 0; off + stride <= len && r->nwindows < KSLIDE_MAX_WINDOWS;
	     off += stride) {
		size_t avail;
		const uint8_t *p = kimage_ptr(k, k->text + off, &avail);

		for (uint64_t at = 0; p && at + KSLIDE_WINDOW <= stride; at += WINDOW_STEP) {
			if (at + KSLIDE_WINDOW > avail || at >= MAX_TRIES * WINDOW_STEP)
				break;
			if (!distinctive(p + at))
				continue;
			r->window_va[r->nwindows] = k->text + off + at;
			memcpy(r->window[r->nwindows++], p + at, KSLIDE_WINDOW);
			break;
		}
	}
}

void kslide_prepare(struct kslide_ref *r, const struct kimage *k, const struct symtab *t)
{
	memset(r, 0, sizeof(*r));
	r->text = k->text;
	r->end = k->end;
	take_names(r, t);
	take_note(r, k);
	take_windows(r, k, t);
}
