// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Invalid messages of 9P2000.L. The share must have a file "file", a directory "dir" and a link
 * "link" to /etc; beside it there is a directory "outside", which it must not reach.
 */
#include "../p9_messages.h"
#include "villain.h"

#define ROOT 1u
#define NOFID 0xffffffffu

static u32 version(struct vdev *d, u32 msize, const char *text)
{
	p9_begin(TVERSION, 0xffff);
	p9_put(msize, 4);
	p9_put_text(text);
	return p9_end(d);
}

static u32 attach(struct vdev *d, u32 fid)
{
	p9_begin(TATTACH, 1);
	p9_put(fid, 4);
	p9_put(NOFID, 4);
	p9_put_text("root");
	p9_put_text("");
	p9_put(0, 4);
	return p9_end(d);
}

static int begin(struct vdev *d)
{
	return version(d, 8192, "9P2000.L") == TVERSION + 1 && attach(d, ROOT) == TATTACH + 1;
}

/* Walks from one fid to another by up to two names. */
static u32 walk(struct vdev *d, u32 from, u32 to, const char *first, const char *second)
{
	p9_begin(TWALK, 1);
	p9_put(from, 4);
	p9_put(to, 4);
	p9_put((first != 0) + (second != 0), 2);
	if (first)
		p9_put_text(first);
	if (second)
		p9_put_text(second);
	return p9_end(d);
}

/* Returns the number of names of the last walk that succeeded. */
static u32 walked(void)
{
	return *(volatile u16 *)at(P9_REPLY + 7);
}

static u32 open(struct vdev *d, u32 fid, u32 flags)
{
	p9_begin(TLOPEN, 1);
	p9_put(fid, 4);
	p9_put(flags, 4);
	return p9_end(d);
}

static u32 clunk(struct vdev *d, u32 fid)
{
	p9_begin(TCLUNK, 1);
	p9_put(fid, 4);
	return p9_end(d);
}

/* -- sizes ------------------------------------------------------------------------------------------ */

static int carrier_too_short(struct vdev *d)
{
	p9_begin(TVERSION, 1);
	p9_call(d, 6, 64);
	return 0;
}

static int carrier_without_reply(struct vdev *d)
{
	p9_begin(TVERSION, 1);
	desc_set(vq_desc(&d->q[0], 0), P9_REQUEST, 64, 0, 0);
	vq_offer(d, 0, 0);
	return 0;
}

static int carrier_without_request(struct vdev *d)
{
	desc_set(vq_desc(&d->q[0], 0), P9_REPLY, 64, DESC_WRITE, 0);
	vq_offer(d, 0, 0);
	return 0;
}

static int carrier_small_reply(struct vdev *d)
{
	p9_begin(TVERSION, 1);
	p9_call(d, 64, 10);
	return 0;
}

/* Room for an error and a little more. */
static int replies_cut(struct vdev *d)
{
	int wrong = !begin(d);

	for (u32 room = 11; room < 200; room += 7) {
		p9_begin(TGETATTR, 1);
		p9_put(ROOT, 4);
		p9_put(~0ul, 8);
		*(u32 *)at(P9_REQUEST) = 19;
		wrong |= !p9_call(d, 19, room);
	}
	return wrong;
}

static int sizes_wrong(struct vdev *d)
{
	static const u32 sizes[] = { 0, 1, 6, 7, 8, 18, 4096, 0x7fffffff, 0x80000000, 0xffffffff };
	int wrong = !begin(d);

	for (u32 i = 0; i < ARRAY_SIZE(sizes); i++) {
		p9_begin(TGETATTR, 1);
		p9_put(ROOT, 4);
		p9_put(~0ul, 8);
		*(u32 *)at(P9_REQUEST) = sizes[i];
		/* Each is shorter or longer than the message. */
		wrong |= p9_call(d, 19, 4096) != RLERROR;
	}
	return wrong;
}

static int carrier_huge(struct vdev *d)
{
	struct vq *q = &d->q[0];
	u16 used = vq_used(q);

	memcpy(at(BIG_BUFFER),
	       "\x15\0\0\0\x64\xff\xff\0\x20\0\0\x08\0"
	       "9P2000.L",
	       21);
	desc_set(vq_desc(q, 0), BIG_BUFFER, BIG_BUFFER_SIZE, DESC_NEXT, 1);
	desc_set(vq_desc(q, 1), BIG_BUFFER, BIG_BUFFER_SIZE, DESC_WRITE, 0);
	vq_offer(d, 0, 0);
	return !vq_wait(d, 0, used);
}

/* -- each type --------------------------------------------------------------------------------------- */

static int types_empty(struct vdev *d)
{
	int wrong = !begin(d);

	for (u32 type = 0; type < 256; type++) {
		p9_begin((u8)type, 1);
		wrong |= p9_end(d) != RLERROR && type != TFLUSH;
	}
	return wrong;
}

/* A body of all ones: counts and fids of the maximum size. */
static int types_ones(struct vdev *d)
{
	int wrong = !begin(d);

	for (u32 type = 0; type < 256; type++) {
		p9_begin((u8)type, 1);
		for (u32 i = 0; i < 12; i++)
			p9_put(~0ul, 8);
		wrong |= !p9_end(d);
	}
	return wrong;
}

/* The root's fid, followed by random bytes. */
static int types_random(struct vdev *d)
{
	int wrong = !begin(d);

	for (u32 i = 0; i < 300; i++) {
		u32 type = 8 + 2 * (u32)(random64() % 58);

		/* These types could by chance remove or rename files that other attacks need. */
		if (type == TRENAMEAT || type == TUNLINKAT)
			continue;
		p9_begin((u8)type, 1);
		p9_put(ROOT, 4);
		for (u32 k = (u32)(random64() % 12); k; k--)
			p9_put(random64(), 8);
		wrong |= !p9_end(d);
	}
	return wrong;
}

/* A valid message, cut at each byte. */
static int walk_cut(struct vdev *d)
{
	int wrong = !begin(d);

	for (u32 len = 7; len < 7 + 4 + 4 + 2 + 5; len++) {
		p9_begin(TWALK, 1);
		p9_put(ROOT, 4);
		p9_put(2, 4);
		p9_put(1, 2);
		p9_put_text("dir");
		*(u32 *)at(P9_REQUEST) = len;
		wrong |= p9_call(d, len, 4096) != RLERROR;
	}
	return wrong;
}

/* -- versions and fids ----------------------------------------------------------------------------------- */

static int versions(struct vdev *d)
{
	static const u32 msizes[] = { 0, 1, 7, 11, 4095 };
	int wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(msizes); i++)
		wrong |= version(d, msizes[i], "9P2000.L") != RLERROR;
	wrong |= version(d, 0xffffffff, "9P2000.L") != TVERSION + 1;
	wrong |= *(volatile u32 *)at(P9_REPLY + 7) > 1 << 24;
	version(d, 8192, "");
	version(d, 8192, "9P2000.L9P2000.L9P2000.L9P2000.L9P2000.L9P2000.L9P2000.L");
	return wrong;
}

/* A new version forgets all fids. */
static int version_forgets(struct vdev *d)
{
	int wrong = !begin(d) || walk(d, ROOT, 2, "dir", 0) != TWALK + 1;

	wrong |= version(d, 8192, "9P2000.L") != TVERSION + 1;
	return wrong || clunk(d, 2) != RLERROR || clunk(d, ROOT) != RLERROR;
}

static int fids_misused(struct vdev *d)
{
	int wrong = !begin(d);

	wrong |= attach(d, ROOT) != RLERROR;	  /* there is one */
	wrong |= walk(d, 99, 2, 0, 0) != RLERROR; /* there is none */
	wrong |= walk(d, ROOT, 2, "file", 0) != TWALK + 1;
	wrong |= walk(d, ROOT, 2, "dir", 0) != RLERROR; /* in use */
	wrong |= walk(d, 2, 3, "below", 0) != RLERROR;	/* below a file */
	wrong |= open(d, 2, 0) != TLOPEN + 1;
	wrong |= open(d, 2, 0) != RLERROR; /* twice */
	wrong |= clunk(d, 2) != TCLUNK + 1;
	wrong |= clunk(d, 2) != RLERROR; /* twice */
	wrong |= clunk(d, NOFID) != RLERROR;
	return wrong;
}

static int fids_many(struct vdev *d)
{
	u32 got = 0;
	int wrong = !begin(d);

	for (u32 fid = 2; fid < 1500; fid++)
		got += walk(d, ROOT, fid * 0x10001, "dir", 0) == TWALK + 1;
	/* The limit is reached at some number; the session continues, and frees them. */
	wrong |= !got || version(d, 8192, "9P2000.L") != TVERSION + 1;
	return wrong || attach(d, ROOT) != TATTACH + 1 || walk(d, ROOT, 2, "dir", 0) != TWALK + 1;
}

static int walk_deep(struct vdev *d)
{
	int wrong = !begin(d);

	/* To a directory and back: each step may keep the one before. */
	for (u32 i = 0; i < 500; i++)
		wrong |= walk(d, ROOT, ROOT, "dir", "..") != TWALK + 1;
	return wrong;
}

static int walk_counts(struct vdev *d)
{
	static const u16 counts[] = { 17, 255, 0x7fff, 0xffff };
	int wrong = !begin(d);

	for (u32 i = 0; i < 4; i++) {
		p9_begin(TWALK, 1);
		p9_put(ROOT, 4);
		p9_put(2, 4);
		p9_put(counts[i], 2);
		for (u32 k = 0; k < 40; k++)
			p9_put_text("..");
		wrong |= p9_end(d) != RLERROR;
	}
	return wrong;
}

/* -- names ------------------------------------------------------------------------------------------------- */

static const char *const bad_names[] = { "",	       ".",    "/",	 "//",	"dir/..",
					 "../outside", "/etc", "./file", "dir/" };

static int walk_names(struct vdev *d)
{
	int wrong = !begin(d);

	for (u32 i = 0; i < ARRAY_SIZE(bad_names); i++)
		wrong |= walk(d, ROOT, 2, bad_names[i], 0) != RLERROR;
	return wrong;
}

static int walk_nul(struct vdev *d)
{
	int wrong = !begin(d);

	p9_begin(TWALK, 1);
	p9_put(ROOT, 4);
	p9_put(2, 4);
	p9_put(1, 2);
	p9_put(6, 2);
	p9_put('d' | 'i' << 8 | 'r' << 16, 3);
	p9_put('/' << 8, 3);
	return wrong || p9_end(d) != RLERROR;
}

static int walk_long_name(struct vdev *d)
{
	int wrong = !begin(d);

	for (u32 len = 255; len < 4000; len = 2 * len + 1) {
		p9_begin(TWALK, 1);
		p9_put(ROOT, 4);
		p9_put(2, 4);
		p9_put(1, 2);
		p9_put(len, 2);
		for (u32 i = 0; i < len; i++)
			p9_put('a', 1);
		wrong |= p9_end(d) != RLERROR;
	}
	return wrong;
}

/* ".." of the root is the root. */
static int walk_out(struct vdev *d)
{
	int wrong = !begin(d);

	wrong |= walk(d, ROOT, 2, "..", "outside") == TWALK + 1 && walked() == 2;
	for (u32 fid = 3; fid < 10; fid++) {
		wrong |= walk(d, fid == 3 ? ROOT : fid - 1, fid, "..", "..") != TWALK + 1;
		wrong |= walk(d, fid, 100 + fid, "outside", 0) != RLERROR;
		wrong |= walk(d, fid, 200 + fid, "file", 0) != TWALK + 1;
	}
	return wrong;
}

static int walk_link(struct vdev *d)
{
	int wrong = !begin(d);

	wrong |= walk(d, ROOT, 2, "link", "passwd") == TWALK + 1 && walked() == 2;
	wrong |= walk(d, ROOT, 3, "link", 0) != TWALK + 1;
	wrong |= open(d, 3, 0) != RLERROR;
	p9_begin(TSETATTR, 1);
	p9_put(3, 4);
	p9_put(1, 4); /* the mode */
	p9_put(0777, 4);
	for (u32 i = 0; i < 6; i++)
		p9_put(0, 8);
	return wrong || p9_end(d) != RLERROR;
}

/* Names of entries to create or remove. */
static int entry_names(struct vdev *d)
{
	static const u8 types[] = { TLCREATE, TMKDIR, TSYMLINK, TUNLINKAT };
	int wrong = !begin(d);

	for (u32 t = 0; t < sizeof(types); t++)
		for (u32 i = 0; i <= ARRAY_SIZE(bad_names); i++) {
			const char *name = i ? bad_names[i - 1] : "..";

			p9_begin(types[t], 1);
			p9_put(ROOT, 4);
			p9_put_text(name);
			if (types[t] == TSYMLINK)
				p9_put_text("target");
			p9_put(types[t] == TLCREATE ? 0x42 : 0, 4);
			p9_put(0777, 4);
			p9_put(0, 4);
			wrong |= p9_end(d) != RLERROR;
		}
	return wrong;
}

static int rename_out(struct vdev *d)
{
	int wrong = !begin(d);

	for (u32 i = 0; i < ARRAY_SIZE(bad_names); i++) {
		p9_begin(TRENAMEAT, 1);
		p9_put(ROOT, 4);
		p9_put_text(i & 1 ? "file" : bad_names[i]);
		p9_put(ROOT, 4);
		p9_put_text(i & 1 ? bad_names[i] : "file2");
		wrong |= p9_end(d) != RLERROR;
	}
	return wrong;
}

/* A link to the outside is created and then walked through. */
static int link_made(struct vdev *d)
{
	int wrong = !begin(d);

	p9_begin(TSYMLINK, 1);
	p9_put(ROOT, 4);
	p9_put_text("way-out");
	p9_put_text("../outside");
	p9_put(0, 4);
	p9_end(d); /* in a storm it exists already */
	wrong |= walk(d, ROOT, 2, "way-out", "secret") == TWALK + 1 && walked() == 2;
	wrong |= walk(d, ROOT, 3, "way-out", 0) != TWALK + 1;
	p9_begin(TLCREATE, 1);
	p9_put(3, 4);
	p9_put_text("made");
	p9_put(0x42, 4);
	p9_put(0666, 4);
	p9_put(0, 4);
	return wrong || p9_end(d) != RLERROR;
}

/* -- files ------------------------------------------------------------------------------------------------- */

static int open_file(struct vdev *d, u32 flags)
{
	return begin(d) && walk(d, ROOT, 2, "file", 0) == TWALK + 1 &&
	       open(d, 2, flags) == TLOPEN + 1;
}

static u32 read(struct vdev *d, u32 type, u32 fid, u64 off, u32 count)
{
	p9_begin((u8)type, 1);
	p9_put(fid, 4);
	p9_put(off, 8);
	p9_put(count, 4);
	return p9_end(d);
}

static int reads(struct vdev *d)
{
	static const u64 offs[] = { 0, 1, 1ul << 31, 1ul << 32, (1ul << 63) - 1, 1ul << 63, ~0ul };
	int wrong = !open_file(d, 0);

	for (u32 i = 0; i < ARRAY_SIZE(offs); i++)
		for (u32 count = 1; count; count <<= 3)
			wrong |= !read(d, TREAD, 2, offs[i], count) ||
				 !read(d, TREAD, 2, offs[i], count - 1) ||
				 !read(d, TREAD, 2, offs[i], ~count);
	wrong |= read(d, TREAD, ROOT, 0, 100) != RLERROR;
	wrong |= read(d, TREADDIR, 2, 0, 100) != RLERROR;
	return wrong;
}

static u32 put_write(struct vdev *d, u64 off, u32 count, u32 bytes)
{
	p9_begin(TWRITE, 1);
	p9_put(2, 4);
	p9_put(off, 8);
	p9_put(count, 4);
	for (u32 i = 0; i < bytes; i++)
		p9_put('w', 1);
	return p9_end(d);
}

static int writes(struct vdev *d)
{
	int wrong = !open_file(d, 1);

	wrong |= put_write(d, 0, 100, 99) != RLERROR;
	wrong |= put_write(d, 0, 0xffffffff, 4) != RLERROR;
	wrong |= put_write(d, 0, 0xfffffff0, 4) != RLERROR;
	wrong |= put_write(d, 1ul << 63, 4, 4) != RLERROR;
	wrong |= put_write(d, ~0ul, 4, 4) != RLERROR;
	wrong |= put_write(d, (1ul << 63) - 2, 4, 4) != RLERROR;
	return wrong || put_write(d, 0, 4, 100) != TWRITE + 1;
}

static int write_to_read(struct vdev *d)
{
	return !open_file(d, 0) || put_write(d, 0, 4, 4) != RLERROR;
}

static int open_flags(struct vdev *d)
{
	int wrong = !begin(d);

	/* Skips flags that would empty the file. */
	for (u32 i = 0; i < 32; i++) {
		wrong |= walk(d, ROOT, 2, "file", 0) != TWALK + 1;
		wrong |= !open(d, 2, (1u << i) & ~01000u);
		wrong |= clunk(d, 2) != TCLUNK + 1;
		wrong |= walk(d, ROOT, 3, "dir", 0) != TWALK + 1;
		wrong |= !open(d, 3, (0xffffffffu << i));
		wrong |= clunk(d, 3) != TCLUNK + 1;
	}
	return wrong;
}

static int readdirs(struct vdev *d)
{
	int wrong = !begin(d) || walk(d, ROOT, 2, 0, 0) != TWALK + 1 || open(d, 2, 0) != TLOPEN + 1;

	for (u32 i = 0; i < 64; i++)
		wrong |= !read(d, TREADDIR, 2, i & 1 ? 1ul << i : random64() >> 1, 1u << i % 32);
	wrong |= !read(d, TREADDIR, 2, 0, 0xffffffff);
	return wrong;
}

static int setattrs(struct vdev *d)
{
	int wrong = !begin(d) || walk(d, ROOT, 2, "dir", 0) != TWALK + 1;

	for (u32 i = 0; i < 32; i++) {
		p9_begin(TSETATTR, 1);
		p9_put(2, 4);
		p9_put(1u << i, 4);
		p9_put(0777, 4);
		p9_put(0, 8);
		p9_put(i & 1 ? ~0ul : 1ul << 62, 8);
		for (u32 k = 0; k < 4; k++)
			p9_put(i & 2 ? ~0ul : 999999999, 8);
		wrong |= !p9_end(d);
	}
	return wrong;
}

static int locks(struct vdev *d)
{
	int wrong = !begin(d);

	for (u32 type = 0; type < 256; type += 51) {
		p9_begin(TLOCK, 1);
		p9_put(ROOT, 4);
		p9_put(type, 1);
		p9_put(~0ul, 8);
		p9_put(~0ul, 8);
		p9_put(~0ul, 8);
		wrong |= !p9_end(d);
		p9_begin(TGETLOCK, 1);
		p9_put(ROOT, 4);
		p9_put(type, 1);
		p9_put(~0ul, 8);
		p9_put(~0ul, 8);
		p9_put(1, 4);
		p9_put(0xffff, 2);
		wrong |= p9_end(d) != RLERROR;
	}
	return wrong;
}

static int flushes(struct vdev *d)
{
	int wrong = !begin(d);

	for (u32 i = 0; i < 20; i++) {
		p9_begin(TFLUSH, (u16)i);
		p9_put(i & 1 ? i : 0xffff, 2);
		wrong |= p9_end(d) != TFLUSH + 1;
	}
	return wrong;
}

/* Many requests at once, all of them with the memory of one reply. */
static int flood(struct vdev *d)
{
	struct vq *q = &d->q[0];
	int wrong = !begin(d);

	p9_begin(TSTATFS, 1);
	p9_put(ROOT, 4);
	*(u32 *)at(P9_REQUEST) = 11;
	for (u16 i = 0; i < 180; i += 2) {
		desc_set(vq_desc(q, i), P9_REQUEST, 11, DESC_NEXT, (u16)(i + 1));
		desc_set(vq_desc(q, (u16)(i + 1)), P9_REPLY, 4096, DESC_WRITE, 0);
		vq_publish(d, 0, i);
	}
	dev_notify(d, 0);
	for (u32 i = 0; i < 10000 && vq_used(q) != q->next_avail; i++)
		wait_shortly();
	return wrong || vq_used(q) != q->next_avail;
}

static const struct attack attacks[] = {
	{ "9p carrier-too-short", REJECT, carrier_too_short },
	{ "9p carrier-without-reply", REJECT, carrier_without_reply },
	{ "9p carrier-without-request", REJECT, carrier_without_request },
	{ "9p carrier-small-reply", REJECT, carrier_small_reply },
	{ "9p carrier-huge", ANY, carrier_huge },
	{ "9p replies-cut", PASS, replies_cut },
	{ "9p sizes-wrong", PASS, sizes_wrong },
	{ "9p types-empty", PASS, types_empty },
	{ "9p types-ones", PASS, types_ones },
	{ "9p types-random", PASS, types_random },
	{ "9p walk-cut", PASS, walk_cut },
	{ "9p versions", PASS, versions },
	{ "9p version-forgets", PASS, version_forgets },
	{ "9p fids-misused", PASS, fids_misused },
	{ "9p fids-many", PASS, fids_many },
	{ "9p walk-deep", PASS, walk_deep },
	{ "9p walk-counts", PASS, walk_counts },
	{ "9p walk-names", PASS, walk_names },
	{ "9p walk-nul", PASS, walk_nul },
	{ "9p walk-long-name", PASS, walk_long_name },
	{ "9p walk-out", PASS, walk_out },
	{ "9p walk-link", PASS, walk_link },
	{ "9p entry-names", PASS, entry_names },
	{ "9p rename-out", PASS, rename_out },
	{ "9p link-made", PASS, link_made },
	{ "9p reads", PASS, reads },
	{ "9p writes", PASS, writes },
	{ "9p write-to-read", PASS, write_to_read },
	{ "9p open-flags", PASS, open_flags },
	{ "9p readdirs", PASS, readdirs },
	{ "9p setattrs", PASS, setattrs },
	{ "9p locks", PASS, locks },
	{ "9p flushes", PASS, flushes },
	{ "9p flood", PASS, flood },
};

const struct attack_class p9_class = { "p9", ATTACKS(attacks), ID_9P, 0 };
