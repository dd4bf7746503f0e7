/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel in memory that lies. The first byte chooses one of the layouts of
 * kallsyms_fixture, which then changes: u16 offset, u8 operation, u8 value, and so
 * on (as in fuzz_kallsyms); operation 4 takes a page away. Symbols of tables lie
 * anywhere: the next bytes say where.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "symbolizer/kernel/live_copy.h"
#include "symbolizer/kernel/livekernel.h"
#include "tests/unit/kallsyms_fixture.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define SLIDE 0x3000000u
#define PAGES 16u
#define NAMES 8u

struct fake {
	struct buf b;
	bool hole[PAGES];
};

static size_t fake_read(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	const struct fake *f = ctx;
	size_t done = 0;

	(void)space;
	while (done < len) {
		uint64_t off = va + done - (KF_TEXT + SLIDE);
		size_t n = PAGE - (va + done) % PAGE;

		if (n > len - done)
			n = len - done;
		memset((uint8_t *)dst + done, 0, n);
		if (off < f->b.len && !f->hole[off / PAGE % PAGES])
			memcpy((uint8_t *)dst + done, f->b.data + off,
			       n < f->b.len - off ? n : f->b.len - off);
		else
			return done;
		done += n;
	}
	return done;
}

static void change(struct fake *f, struct cursor *c)
{
	while (cursor_left(c) >= 4) {
		size_t at = cursor_u16(c);
		uint8_t what = cursor_u8(c), v = cursor_u8(c);

		if (at >= f->b.len)
			continue;
		switch (what % 5) {
		case 0:
			f->b.data[at] = v;
			break;
		case 1:
			f->b.data[at] ^= v;
			break;
		case 2:
			f->b.data[at] = (uint8_t)(f->b.data[at] + v);
			break;
		case 3:
			memset(f->b.data + at, v, f->b.len - at < 64 ? f->b.len - at : 64);
			break;
		default:
			f->hole[at / PAGE % PAGES] = true;
			break;
		}
	}
}

static void check(const struct livekernel *l)
{
	if (!l->symbols || l->start >= l->end || l->text < l->start || l->text >= l->end ||
	    l->text_end <= l->text || l->text_end > l->end || l->image_end > l->end ||
	    l->end - l->start > LIVEKERNEL_MAX_BELOW + LIVEKERNEL_MAX_ABOVE)
		abort();
	if (!l->orc == !l->orc_note.code || !l->btf == !l->btf_note.code ||
	    !l->banner[0] == !l->banner_note.code || !l->build_id_len == !l->build_id_note.code)
		abort();
	if (l->btf && l->btf[0] + l->btf[l->btf_len - 1] > 510)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const name[NAMES] = { "__start_orc_unwind_ip", "__stop_orc_unwind_ip",
						 "__start_orc_unwind",	  "__stop_orc_unwind",
						 "__start_BTF",		  "__stop_BTF",
						 "__start_notes",	  "__stop_notes" };
	struct kf_extra extra[NAMES];
	struct livekernel *l = NULL;
	struct fake f = { 0 };
	const struct live_guest m = { .memory = { fake_read, &f } };
	struct err e = { 0 };
	struct kf_shape s;
	struct kf_places p;
	uint32_t at = 0x2c00;
	struct cursor c;

	cursor_init(&c, data, size);
	s = kf_shapes[cursor_u8(&c) % KF_SHAPES];
	s.slide = SLIDE;
	s.count = s.count < 700 ? s.count : 700;
	for (unsigned int i = 0; i < NAMES; i++) {
		at += cursor_u8(&c) * 2u;
		extra[i] = (struct kf_extra){ name[i], at < KF_RODATA ? at : KF_RODATA };
	}
	s.extra = extra;
	s.nextra = NAMES;
	buf_init(&f.b);
	kf_build(&s, &f.b, &p);
	change(&f, &c);
	if (livekernel_read(&l, &m, KF_TEXT + SLIDE + 0x100, &e) == 0)
		check(l);
	else if (!e.text[0] || l)
		abort();
	livekernel_destroy(l);
	buf_deinit(&f.b);
	return 0;
}
