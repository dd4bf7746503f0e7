/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/kslide.h"

#include "symbolizer/core/elf64.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GATE_BYTES 16u
#define GATE_PRESENT 0x80u
/* Minimum number of agreeing gates: fewer may be chance, or a table that is half set up. */
#define MIN_GATES 4u
/* Minimum number of windows for text to be evidence. */
#define MIN_WINDOWS 8u
/*
 * Bytes of a window that must equal the image's. A kernel that has patched itself differs in some
 * five bytes of an instruction (calls of __fentry__, thunks, jump labels), a relocated one in two
 * bytes of each absolute address; other code agrees in a few bytes of 64.
 */
#define MIN_SAME 40u
/* Per cent of the windows: the right place has WINNER or more, any other one fewer than OTHERS. */
#define WINNER 90u
#define OTHERS 20u

const char *kslide_kind_name(enum kslide_kind kind)
{
	static const char *const name[KSLIDE_KINDS] = { "LSTAR", "the IDT", "the text",
							"the build id" };

	return (unsigned int)kind < KSLIDE_KINDS ? name[kind] : "?";
}

/* -- the facts of an image that a running kernel is compared with ---------------- */

/*
 * Minimum number of different bytes in a window: with fewer it is padding, or resembles other
 * code.
 */
#define MIN_DISTINCT 20u
#define WINDOW_STEP 16u /* compilers align functions to this */
/* Attempts for one window: long padding is usually followed by more of it. */
#define MAX_TRIES 32u

/*
 * Exception handlers by vector. Sources: arch/x86/kernel/idt.c (4.14 and later) or traps.c; the
 * asm_ names since "x86/entry: Convert ... to IDTENTRY" (5.8). KVM guests had their own page fault
 * handler until then, and tracing had one until 4.14.
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
 * arch/x86/include/asm/segment.h): 9 bytes, or 13 if they begin with endbr64 (5.18).
 */
static const unsigned int early_stride[] = { 9, 13 };
#define EARLY_SLOT (KSLIDE_MAX_HANDLERS - 2)

static uint64_t kslide_symbol(const struct symtab *t, const char *name)
{
	const struct symbol *s = t ? symtab_find(t, name) : NULL;

	return s && (s->type == 't' || s->type == 'T') ? s->addr : 0;
}

static void take_names(struct kslide_ref *r, const struct symtab *t)
{
	uint64_t early = kslide_symbol(t, "early_idt_handler_array");

	r->syscall = kslide_symbol(t, "entry_SYSCALL_64");
	if (!r->syscall)
		r->syscall = kslide_symbol(t, "system_call"); /* name until 4.1 */
	for (unsigned int v = 0; v < KSLIDE_VECTORS; v++) {
		unsigned int n = 0;
		uint64_t va;

		for (unsigned int i = 0; i < EARLY_SLOT && handler_name[v][i]; i++) {
			va = kslide_symbol(t, handler_name[v][i]);
			if (va)
				r->handler[v][n++] = va;
		}
		/* If only the early handler of a gate is known, it would deny the final one. */
		for (unsigned int i = 0; n && early && i < 2; i++)
			r->handler[v][n++] = early + (uint64_t)v * early_stride[i];
	}
}

/* Copies the note as it is in memory: { namesz 4, descsz, type 3 } "GNU\0" id. */
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

/* Returns the end of the code that stays while the kernel runs; init code is freed. */
static uint64_t lasting_text_end(const struct kimage *k, const struct symtab *t)
{
	const struct symbol *etext = t ? symtab_find(t, "_etext") : NULL;
	uint64_t va, len, end = k->etext;

	if (etext && etext->addr > k->text && etext->addr <= k->etext)
		return etext->addr;
	if (kimage_section(k, ".text", &va, &len) && va == k->text && len <= k->etext - va)
		return va + len;
	/* In Linux, text and read-only data share one segment; init code is in another. */
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

/* -- where the kernel can be ------------------------------------------------------ */

/*
 * Returns the largest possible slide. The decompressor never puts a kernel below its link address.
 */
static uint64_t max_slide(const struct kslide_ref *r)
{
	if (r->text < KSLIDE_MAP || r->end > KSLIDE_MAP_END || r->end <= r->text)
		/* Not in Linux's range: it runs where it was linked, or the slide is unknown. */
		return 0;
	return (KSLIDE_MAP_END - r->end) / KSLIDE_ALIGN * KSLIDE_ALIGN;
}

static bool in_map(uint64_t va)
{
	return va >= KSLIDE_MAP && va < KSLIDE_MAP_END;
}

/* Returns whether a symbol linked at `linked` can be at `seen` with a possible slide. */
static bool slide_of(const struct kslide_ref *r, uint64_t seen, uint64_t linked, uint64_t *slide)
{
	if (!linked || seen < linked || (seen - linked) % KSLIDE_ALIGN ||
	    seen - linked > max_slide(r))
		return false;
	*slide = seen - linked;
	return true;
}

/* -- the pieces ------------------------------------------------------------------- */

/*
 * Evaluates LSTAR. An address outside the kernel's range is a trampoline (4.15 to 4.19 have it in
 * the CPU entry area), a module, or not set yet, and is no evidence.
 */
static void ask_lstar(const struct kslide_ref *r, uint64_t lstar, struct kslide_evidence *ev)
{
	if (!r->syscall || !in_map(lstar))
		return;
	ev->of = 1;
	ev->found = slide_of(r, lstar, r->syscall, &ev->slide);
	ev->against = !ev->found;
	ev->yes = ev->found;
}

static bool gate_fits(const struct kslide_ref *r, unsigned int vector, uint64_t handler,
		      uint64_t slide)
{
	for (unsigned int i = 0; i < KSLIDE_MAX_HANDLERS; i++)
		if (r->handler[vector][i] && handler - r->handler[vector][i] == slide)
			return true;
	return false;
}

static unsigned int count_fits(const struct kslide_ref *r, const uint64_t *handler, uint64_t slide)
{
	unsigned int n = 0;

	for (unsigned int v = 0; v < KSLIDE_VECTORS; v++)
		n += handler[v] && gate_fits(r, v, handler[v], slide);
	return n;
}

/*
 * Reads the handlers of present gates that lead into the kernel's range and have names; 0 for all
 * others.
 */
static unsigned int read_gates(const struct kslide_ref *r, const struct memory *m, uint64_t idt,
			       uint64_t handler[KSLIDE_VECTORS])
{
	uint8_t table[KSLIDE_VECTORS * GATE_BYTES];
	size_t got = m->read(m->ctx, MEMORY_KERNEL, idt, table, sizeof(table));
	unsigned int n = 0;

	memset(handler, 0, KSLIDE_VECTORS * sizeof(*handler));
	for (unsigned int v = 0; v < KSLIDE_VECTORS && (v + 1) * GATE_BYTES <= got; v++) {
		const uint8_t *g = table + v * GATE_BYTES;
		uint16_t low, mid;
		uint32_t high;
		uint64_t va;

		memcpy(&low, g, 2);
		memcpy(&mid, g + 6, 2);
		memcpy(&high, g + 8, 4);
		va = (uint64_t)high << 32 | (uint64_t)mid << 16 | low;
		if (!(g[5] & GATE_PRESENT) || !in_map(va) || !r->handler[v][0])
			continue;
		handler[v] = va;
		n++;
	}
	return n;
}

static void ask_idt(const struct kslide_ref *r, const struct memory *m, uint64_t idt,
		    struct kslide_evidence *ev)
{
	uint64_t handler[KSLIDE_VECTORS], slide;

	ev->of = read_gates(r, m, idt, handler);
	if (ev->of < MIN_GATES)
		return;
	/*
	 * While a table is being filled, some gates may lead to early handlers: all that fit
	 * count.
	 */
	for (unsigned int v = 0; v < KSLIDE_VECTORS; v++)
		for (unsigned int i = 0; i < KSLIDE_MAX_HANDLERS; i++) {
			unsigned int n;

			if (!handler[v] || !slide_of(r, handler[v], r->handler[v][i], &slide))
				continue;
			n = count_fits(r, handler, slide);
			if (n > ev->yes) {
				ev->yes = n;
				ev->slide = slide;
			}
		}
	ev->found = ev->yes == ev->of;
	ev->against = !ev->found;
}

struct match {
	unsigned int same, read; /* number of windows */
};

static bool window_same(const struct kslide_ref *r, unsigned int w, const uint8_t *bytes)
{
	unsigned int same = 0;

	for (unsigned int i = 0; i < KSLIDE_WINDOW; i++)
		same += bytes[i] == r->window[w][i];
	return same >= MIN_SAME;
}

static struct match match_text(const struct kslide_ref *r, const struct memory *m, uint64_t slide)
{
	struct match x = { 0 };
	uint8_t bytes[KSLIDE_WINDOW];

	/* Most places have no memory at all: two of the windows show that. */
	if (!memory_read(m, MEMORY_KERNEL, r->window_va[r->nwindows / 3] + slide, bytes, 1) &&
	    !memory_read(m, MEMORY_KERNEL, r->window_va[r->nwindows * 2 / 3] + slide, bytes, 1))
		return x;
	for (unsigned int w = 0; w < r->nwindows; w++) {
		if (!memory_read(m, MEMORY_KERNEL, r->window_va[w] + slide, bytes, KSLIDE_WINDOW))
			continue;
		x.read++;
		x.same += window_same(r, w, bytes);
	}
	return x;
}

static void ask_text(const struct kslide_ref *r, const struct memory *m, struct kslide_evidence *ev)
{
	unsigned int others = 0;

	if (r->nwindows < MIN_WINDOWS)
		return;
	ev->of = r->nwindows;
	for (uint64_t slide = 0; slide <= max_slide(r); slide += KSLIDE_ALIGN) {
		unsigned int same = match_text(r, m, slide).same;

		if (same > ev->yes) {
			others = ev->yes;
			ev->yes = same;
			ev->slide = slide;
		} else if (same > others) {
			others = same;
		}
	}
	ev->found = ev->yes * 100 >= WINNER * ev->of && others * 100 < OTHERS * ev->of;
}

/* Returns whether the code at the place that the others name is not the image's. */
static bool text_denies(const struct kslide_ref *r, const struct memory *m, uint64_t slide,
			struct kslide_evidence *ev)
{
	struct match x;

	if (r->nwindows < MIN_WINDOWS)
		return false;
	x = match_text(r, m, slide);
	ev->yes = x.same;
	ev->of = x.read;
	return x.read * 2 >= r->nwindows && x.same * 100 < WINNER * x.read;
}

static bool note_at(const struct kslide_ref *r, const struct memory *m, uint64_t slide, bool *same)
{
	uint8_t note[KSLIDE_NOTE_MAX];

	if (!r->note_len || !memory_read(m, MEMORY_KERNEL, r->note_va + slide, note, r->note_len))
		return false;
	*same = !memcmp(note, r->note, r->note_len);
	return true;
}

static void ask_build_id(const struct kslide_ref *r, const struct memory *m,
			 struct kslide_evidence *ev)
{
	bool same;

	if (!r->note_len)
		return;
	for (uint64_t slide = 0; slide <= max_slide(r); slide += KSLIDE_ALIGN)
		if (note_at(r, m, slide, &same) && same) {
			ev->yes++;
			ev->slide = slide;
		}
	ev->of = 1;
	ev->found = ev->yes == 1; /* two copies of the same kernel: neither place is evidence */
}

/* -- the verdict ------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void say(struct kslide *out, const char *fmt, ...)
{
	size_t n = strlen(out->reason);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out->reason + n, sizeof(out->reason) - n, fmt, ap);
	va_end(ap);
}

static void conflict(struct kslide *out)
{
	out->status = KSLIDE_CONFLICT;
	out->reason[0] = 0;
}

/* Returns whether the evidence contradicts itself; *first is the first kind that names a slide. */
static bool contradiction(struct kslide *out, unsigned int *first, unsigned int *n)
{
	const struct kslide_evidence *by = out->by;

	if (by[KSLIDE_LSTAR].against) {
		conflict(out);
		say(out, "LSTAR leads into the kernel, but not to its system call entry");
		return true;
	}
	if (by[KSLIDE_IDT].against) {
		conflict(out);
		say(out, "of %u exception handlers only %u are where one slide would have them",
		    by[KSLIDE_IDT].of, by[KSLIDE_IDT].yes);
		return true;
	}
	*n = 0;
	for (unsigned int i = 0; i < KSLIDE_KINDS; i++) {
		if (!by[i].found)
			continue;
		if (!(*n)++)
			*first = i;
		if (by[i].slide == by[*first].slide)
			continue;
		conflict(out);
		say(out, "%s says the kernel is moved by 0x%" PRIx64 ", %s by 0x%" PRIx64,
		    kslide_kind_name(*first), by[*first].slide, kslide_kind_name(i), by[i].slide);
		return true;
	}
	return false;
}

static bool denied(struct kslide *out, const struct kslide_ref *r, const struct memory *m,
		   unsigned int first)
{
	struct kslide_evidence *text = &out->by[KSLIDE_TEXT], *id = &out->by[KSLIDE_BUILD_ID];
	uint64_t slide = out->by[first].slide;
	bool same;

	if (!id->found && note_at(r, m, slide, &same) && !same) {
		id->against = true;
		conflict(out);
		say(out,
		    "%s says the kernel is moved by 0x%" PRIx64 ", but there is no build id of "
		    "the image",
		    kslide_kind_name(first), slide);
		return true;
	}
	if (!text->found && text_denies(r, m, slide, text)) {
		text->against = true;
		conflict(out);
		say(out,
		    "%s says the kernel is moved by 0x%" PRIx64 ", but of %u pieces of code "
		    "there only %u are the image's (function-granular KASLR, or another "
		    "kernel)",
		    kslide_kind_name(first), slide, text->of, text->yes);
		return true;
	}
	return false;
}

void kslide_solve(struct kslide *out, const struct kslide_ref *r, const struct memory *m,
		  const struct kslide_cpu *cpu)
{
	unsigned int first = 0, n = 0;

	memset(out, 0, sizeof(*out));
	ask_lstar(r, cpu->lstar, &out->by[KSLIDE_LSTAR]);
	ask_idt(r, m, cpu->idt_base, &out->by[KSLIDE_IDT]);
	ask_text(r, m, &out->by[KSLIDE_TEXT]);
	ask_build_id(r, m, &out->by[KSLIDE_BUILD_ID]);
	if (contradiction(out, &first, &n) || (n && denied(out, r, m, first)))
		return;
	if (n < 2) {
		say(out,
		    n ? "only %s says where the kernel is" : "nothing says where the kernel is%s",
		    n ? kslide_kind_name(first) : "");
		return;
	}
	out->status = KSLIDE_SOLVED;
	out->slide = out->by[first].slide;
	for (unsigned int i = 0, said = 0; i < KSLIDE_KINDS; i++) {
		const struct kslide_evidence *ev = &out->by[i];

		if (!ev->found)
			continue;
		say(out, "%s%s", said ? ++said == n ? " and " : ", " : "", kslide_kind_name(i));
		said += !said;
		if (ev->of > 1)
			say(out, " (%u of %u)", ev->yes, ev->of);
	}
	say(out, " agree");
}
