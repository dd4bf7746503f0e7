/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate: the instructions of one function with the samples that hit each.
 *
 * Pure: bytes, hits and callbacks in, rows and text out. Weights are in the event's
 * unit (ns). Percentages are of the function's own samples, as in perf annotate
 * (--percent-type local-period). One thread.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_ANNOTATE_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_ANNOTATE_H

#include "base/err.h"
#include "symbolizer/core/disasm.h"

#define ANNOTATE_MAX_LANES 8u /* of jump arrows; further ones are not drawn */

struct annotate_hit {
	uint64_t addr, weight, samples;
};

/* The source line of an instruction, innermost inlined function; strings stay valid. */
struct annotate_line {
	const char *function, *file; /* NULL: not known */
	unsigned int line;	     /* 0: not known */
};

struct annotate_input {
	uint64_t addr; /* of the first byte, as it is to be shown */
	const uint8_t *live;
	const uint8_t *image; /* the same bytes in the kernel's image; NULL: not known */
	size_t len;
	const struct annotate_hit *hit; /* by address, each once */
	size_t nhits;
	enum disasm_syntax syntax;
	const char *function; /* as it is shown */
	/* The function at an address: its name, *off in it. NULL: none. Called for targets outside. */
	const char *(*name)(void *ctx, uint64_t addr, uint64_t *off);
	/* May be NULL. False: nothing known. */
	bool (*line)(void *ctx, uint64_t addr, struct annotate_line *out);
	void *ctx;
};

struct annotate_row {
	uint64_t addr;
	uint64_t weight, samples;
	struct disasm_insn insn;
	bool differs;		/* from the image */
	uint32_t image, nimage; /* instructions of the image in its place, in annotate.image */
	struct annotate_line line;
};

struct annotate_image {
	uint64_t addr;
	struct disasm_insn insn;
};

/* A bundle of jumps to one row, drawn in one lane; 0 is the one next to the text. */
struct annotate_arrow {
	uint32_t first, last, to; /* rows */
	uint32_t lane;
};

struct annotate {
	const struct annotate_input *in;
	struct annotate_row *row;
	size_t nrows;
	struct annotate_image *image;
	size_t nimages;
	struct annotate_arrow *arrow;
	size_t narrows;
	uint32_t *grid;		 /* [row * lanes + lane]: index in arrow plus one; 0: none passes */
	uint32_t lanes, undrawn; /* arrows that found no lane */
	uint64_t weight, samples; /* of all hits */
	uint64_t outside;	  /* weight of hits beyond the bytes */
	size_t ndiffer;
};

/* in is borrowed. */
int annotate_build(struct annotate **out, const struct annotate_input *in, struct err *e);
void annotate_destroy(struct annotate *a);

#define ANNOTATE_TARGET 160u
/* "<name+0x10>" of what an instruction refers to, or "". */
void annotate_target(const struct annotate *a, const struct disasm_insn *i,
		     char out[ANNOTATE_TARGET]);

#endif
