/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest told by a few commands (kslide_fixture.h has the image that it may run):
 *
 *	{ 'L', u64 } LSTAR	{ 'I', u64 } IDT base	{ 'K', u16 n } the kernel at n * 2 MiB
 *	{ 'P', u32 off, u8 } a byte of that kernel	{ 'M', u64 va, u8 n, n bytes } memory
 *
 * The same image is also a file that the rest of the input has damaged: { 'F', u16 off, u8 }.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "tests/unit/kslide_fixture.h"

static void require(int ok)
{
	if (!ok)
		abort();
}

static void check(const struct kslide *s)
{
	unsigned int found = 0;

	require(strlen(s->reason) > 0 && !strchr(s->reason, '\n'));
	require(s->slide % KSLIDE_ALIGN == 0 && (s->status == KSLIDE_SOLVED || !s->slide));
	for (unsigned int i = 0; i < KSLIDE_KINDS; i++) {
		const struct kslide_evidence *ev = &s->by[i];

		require(!(ev->found && ev->against) && ev->slide < KSLIDE_MAP_END - KSLIDE_MAP);
		if (s->status != KSLIDE_CONFLICT)
			require(!ev->against);
		if (s->status == KSLIDE_SOLVED && ev->found)
			require(ev->slide == s->slide);
		found += ev->found;
	}
	require(s->status == KSLIDE_CONFLICT || (found >= 2) == (s->status == KSLIDE_SOLVED));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t image[FIX_LEN], file[FIX_FILE];
	static struct kslide_ref ref;
	struct fix_guest g = { 0 };
	const struct memory m = { fix_read, &g };
	struct symtab *t = fix_symbols(size & 1);
	struct kslide out;
	struct kimage k;
	struct cursor c;

	require(t != NULL);
	fix_elf(file);
	memcpy(image, file + FIX_OFF_TEXT, FIX_LEN);
	cursor_init(&c, data, size);
	while (cursor_left(&c) > 1 && !c.bad && g.n < FIX_REGIONS) {
		uint8_t command = cursor_u8(&c), n;
		uint64_t va;

		switch (command) {
		case 'L':
			g.cpu.lstar = cursor_u64(&c);
			break;
		case 'I':
			g.cpu.idt_base = cursor_u64(&c);
			break;
		case 'K':
			fix_map(&g, FIX_TEXT + cursor_u16(&c) * KSLIDE_ALIGN, image, FIX_LEN);
			break;
		case 'P':
			va = cursor_u32(&c) % FIX_LEN;
			image[va] = cursor_u8(&c);
			break;
		case 'F':
			va = cursor_u16(&c) % FIX_FILE;
			file[va] = cursor_u8(&c);
			break;
		case 'M': {
			const uint8_t *p;

			va = cursor_u64(&c);
			n = cursor_u8(&c);
			p = cursor_bytes(&c, n);
			if (p)
				fix_map(&g, va, (uint8_t *)p, n);
			break;
		}
		}
	}
	if (kimage_parse(&k, "fuzz", file, FIX_FILE, NULL) == 0) {
		kslide_prepare(&ref, &k, t);
		require(ref.nwindows <= KSLIDE_MAX_WINDOWS && ref.note_len <= KSLIDE_NOTE_MAX);
		kslide_solve(&out, &ref, &m, &g.cpu);
		check(&out);
		kslide_prepare(&ref, &k, NULL);
		kslide_solve(&out, &ref, &m, &g.cpu);
		check(&out);
	}
	symtab_destroy(t);
	return 0;
}
