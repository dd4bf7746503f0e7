/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether an image's code keeps frame pointers, told from its functions' first instructions. */
#include "symbolizer/core/kimage.h"

#include "symbolizer/core/insn.h"

#include <stdlib.h>

/* Functions looked at, spread over the image. */
#define MAX_FUNCTIONS 1024u
/* Of each at most this much: a call comes early or the function matters little. */
#define MAX_FUNCTION_BYTES 512u
/* Without symbols: call targets collected, and bytes of text searched for them. */
#define MAX_TARGETS 8192u
#define MAX_SEARCH (4u << 20)

/* 32-bit code: what is too short for a frame says nothing. */
#define MIN_FUNCTION32 24u

struct verdict {
	unsigned int calling, framed;
};

/*
 * Decode a function in address order up to its first call. push %rbp and
 * mov %rsp,%rbp may be apart: the compiler schedules other work between them,
 * and moves the prologue behind an early way out.
 */
static void look_at_function(const struct kimage *k, uint64_t va, uint64_t len, struct verdict *v)
{
	bool pushed = false, framed = false;
	uint64_t at = 0;
	size_t avail;
	const uint8_t *p = kimage_ptr(k, va, &avail);

	if (!p)
		return;
	if (len > avail)
		len = avail;
	if (len > MAX_FUNCTION_BYTES)
		len = MAX_FUNCTION_BYTES;
	while (at < len) {
		struct insn i;

		if (!insn_decode(&i, va + at, p + at, (size_t)(len - at)))
			return;
		if (i.kind == INSN_PUSH_RBP)
			pushed = true;
		else if (i.kind == INSN_MOV_RSP_RBP)
			framed = pushed;
		if (i.kind == INSN_CALL_IND ||
		    (i.kind == INSN_CALL && !insn_is_fentry(p, (size_t)len, at))) {
			v->calling++;
			v->framed += framed;
			return;
		}
		at += i.len;
	}
}

static bool kimage_fp_judge(const struct verdict *v)
{
	return v->calling && v->framed * 10ull >= v->calling * 9ull;
}

static bool is_function(const struct kimage *k, const struct symbol *s)
{
	return (s->type == 't' || s->type == 'T') && s->size && s->addr >= k->text &&
	       s->addr < k->etext;
}

static int cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Call targets found by decoding text in address order; returns their number, sorted, unique. */
static size_t collect_targets(const struct kimage *k, uint64_t *target)
{
	size_t avail, at = 0, n = 0, out = 0;
	const uint8_t *p = kimage_ptr(k, k->text, &avail);

	if (!p)
		return 0;
	if (avail > k->etext - k->text)
		avail = (size_t)(k->etext - k->text);
	if (avail > MAX_SEARCH)
		avail = MAX_SEARCH;
	while (at < avail && n < MAX_TARGETS) {
		struct insn i;

		if (!insn_decode(&i, k->text + at, p + at, avail - at)) {
			at++;
			continue;
		}
		if (i.kind == INSN_CALL && (uint64_t)i.value >= k->text &&
		    (uint64_t)i.value < k->etext)
			target[n++] = (uint64_t)i.value;
		at += i.len;
	}
	qsort(target, n, sizeof(*target), cmp_u64);
	for (size_t i = 0; i < n; i++)
		if (out == 0 || target[out - 1] != target[i])
			target[out++] = target[i];
	return out;
}

bool kimage_keeps_frame_pointers(const struct kimage *k, const struct symtab *t)
{
	struct verdict v = { 0 };

	if (k->has_orc)
		return false;
	if (t) {
		size_t n = 0, seen = 0, step;

		for (size_t i = 0; i < symtab_count(t); i++)
			n += is_function(k, symtab_at(t, i));
		step = n / MAX_FUNCTIONS + 1;
		for (size_t i = 0; i < symtab_count(t); i++) {
			const struct symbol *s = symtab_at(t, i);

			if (is_function(k, s) && seen++ % step == 0)
				look_at_function(k, s->addr, s->size, &v);
		}
	} else {
		uint64_t *target = malloc(MAX_TARGETS * sizeof(*target));
		size_t n = target ? collect_targets(k, target) : 0, step = n / MAX_FUNCTIONS + 1;

		for (size_t i = 0; i < n; i += step)
			look_at_function(k, target[i],
					 i + 1 < n ? target[i + 1] - target[i] : MAX_FUNCTION_BYTES,
					 &v);
		free(target);
	}
	return kimage_fp_judge(&v);
}

bool kimage_keeps_frame_pointers32(const struct kimage *k, const struct symtab *t)
{
	struct verdict v = { 0 };

	for (size_t i = 0; t && i < symtab_count(t); i++) {
		const struct symbol *s = symtab_at(t, i);
		unsigned int push, mov;
		size_t avail;
		const uint8_t *p = kimage_ptr(k, s->addr, &avail);

		if (!p || !is_function(k, s) || s->size < MIN_FUNCTION32)
			continue;
		v.calling++;
		v.framed +=
			insn_prologue32(p, avail < s->size ? avail : (size_t)s->size, &push, &mov);
	}
	/* Labels in assembly count as functions, and small kernels have a lot of it. */
	return v.calling && v.framed * 4ull >= v.calling * 3ull;
}
