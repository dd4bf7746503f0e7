/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/snapshot_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG_BZIMAGE = 1, FLAG_SLIDE = 2, FLAG_EXEC = 4 };

#define MESSAGE_MAX (EXEC_MESSAGE_MAX + 64u) /* with its prefix */

static void put_text(struct buf *b, const char *s)
{
	size_t len = s ? strlen(s) : 0;

	buf_u32(b, (uint32_t)len);
	buf_add(b, s, len);
}

void snapshot_facts_put(const struct snapshot_facts *f, struct buf *b)
{
	buf_u8(b, (f->bzimage ? FLAG_BZIMAGE : 0) | (f->slide_known ? FLAG_SLIDE : 0) |
			  (f->exec ? FLAG_EXEC : 0));
	buf_u64(b, f->slide);
	buf_u64(b, f->pa_slide);
	put_text(b, f->image);
	put_text(b, f->symbols);
	put_text(b, f->cmdline);
	put_text(b, f->guest_root);
	put_text(b, f->nonce);
	put_text(b, f->message);
}

/*
 * Reads a text. *out stays NULL if it is empty. Returns false if it is too long, contains a NUL, or
 * memory is exhausted.
 */
static bool take_text(struct cursor *in, size_t max, char **out, bool *no_memory)
{
	uint32_t len = cursor_u32(in);
	const uint8_t *p = len <= max ? cursor_bytes(in, len) : NULL;

	if (!p || memchr(p, 0, len))
		return false;
	if (!len)
		return true;
	*out = strndup((const char *)p, len);
	*no_memory |= !*out;
	return *out != NULL;
}

int snapshot_facts_parse(struct snapshot_facts *f, struct cursor *in, struct err *e)
{
	struct snapshot_facts g = { 0 };
	bool no_memory = false, good;
	uint8_t flags = cursor_u8(in);

	g.bzimage = flags & FLAG_BZIMAGE;
	g.slide_known = flags & FLAG_SLIDE;
	g.exec = flags & FLAG_EXEC;
	g.slide = cursor_u64(in);
	g.pa_slide = cursor_u64(in);
	good = take_text(in, SNAPSHOT_FACTS_TEXT, &g.image, &no_memory) &&
	       take_text(in, SNAPSHOT_FACTS_TEXT, &g.symbols, &no_memory) &&
	       take_text(in, SNAPSHOT_FACTS_CMDLINE, &g.cmdline, &no_memory) &&
	       take_text(in, SNAPSHOT_FACTS_TEXT, &g.guest_root, &no_memory) &&
	       take_text(in, EXEC_NONCE_LEN, &g.nonce, &no_memory) &&
	       take_text(in, MESSAGE_MAX, &g.message, &no_memory) && !in->bad && !cursor_left(in) &&
	       (!g.nonce || strlen(g.nonce) == EXEC_NONCE_LEN);
	if (good && !g.cmdline) {
		g.cmdline = strdup("");
		good = g.cmdline != NULL;
		no_memory |= !good;
	}
	if (!good) {
		snapshot_facts_deinit(&g);
		return no_memory ? err_nomem(e)
				 : err_set(e, EINVAL,
					   "the facts about the kernel in the snapshot are "
					   "damaged: save it again");
	}
	*f = g;
	return 0;
}

void snapshot_facts_deinit(struct snapshot_facts *f)
{
	free(f->image);
	free(f->symbols);
	free(f->cmdline);
	free(f->guest_root);
	free(f->nonce);
	free(f->message);
	memset(f, 0, sizeof(*f));
}
