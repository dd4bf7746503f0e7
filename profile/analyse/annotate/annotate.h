/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate: the instructions of one function, with the samples that hit each.
 *
 * The input is bytes, hits and callbacks; the output is rows; there is no I/O. Weights are in the
 * event's unit (ns for clocks). Percentages are those of the function's own samples, as in perf
 * annotate (--percent-type local-period), unless annotate_input.whole says otherwise. Not thread-safe: the caller serialises calls on one
 * object.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_ANNOTATE_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_ANNOTATE_H

#include "base/err.h"
#include "symbolizer/core/disasm.h"

/* number of lanes for jump arrows; arrows that find none are not drawn */
#define ANNOTATE_MAX_LANES 8u

/* An address with the sum of its samples. */
struct annotate_hit {
	uint64_t addr, weight, samples;
};

/*
 * The source line of an instruction, in the innermost inlined function. The strings are borrowed
 * and stay valid as long as the object.
 */
struct annotate_line {
	const char *function, *file; /* NULL: unknown */
	unsigned int line;	     /* 0: unknown */
};

struct annotate_input {
	uint64_t addr; /* address of the first byte, as displayed */
	/* len bytes as in memory */
	const uint8_t *live;
	const uint8_t *image; /* the same bytes in the kernel's image; NULL: unknown */
	size_t len;
	const struct annotate_hit *hit; /* nhits, sorted by address, each once */
	size_t nhits;
	/* nbelow, likewise: samples whose stacks pass through a call instruction there */
	const struct annotate_hit *below;
	size_t nbelow;
	uint64_t whole; /* percentages are of this weight; 0: of the sum of all hits */
	enum disasm_syntax syntax;
	const char *function; /* name for display */
	/*
	 * Returns the name of the function at an address, and the distance from its start in *off;
	 * NULL if there is none. Called for jump targets outside this function.
	 */
	const char *(*name)(void *ctx, uint64_t addr, uint64_t *off);
	/* Stores the source line of addr. Returns false if it is unknown. May be NULL. */
	bool (*line)(void *ctx, uint64_t addr, struct annotate_line *out);
	void *ctx;
};

struct annotate_row {
	uint64_t addr;
	uint64_t weight, samples;
	uint64_t below_weight, below_samples; /* those of annotate_input.below */
	struct disasm_insn insn;
	bool differs; /* differs from the image */
	/* first index in annotate.image and number of the image's instructions at this place */
	uint32_t image, nimage;
	struct annotate_line line;
};

struct annotate_image {
	uint64_t addr;
	struct disasm_insn insn;
};

/* The jumps to one row, drawn in one lane; lane 0 is next to the text. */
struct annotate_arrow {
	uint32_t first, last, to; /* rows: first and last row of the arrow, and the target */
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
	uint32_t *grid;		  /* [row * lanes + lane]: index in arrow plus one; 0: none */
	uint32_t lanes, undrawn;  /* number of lanes, and of arrows that found no lane */
	uint64_t weight, samples; /* sums of all hits */
	uint64_t whole;		  /* percentages are of this weight */
	uint64_t outside;	  /* weight of hits outside the bytes */
	/* rows that differ from the image */
	size_t ndiffer;
};

/*
 * Disassembles the function and counts its hits. `in` and what it points at are borrowed until
 * annotate_destroy(), with which the caller frees *out. Returns 0, -ENOMEM, or an error of
 * disasm_open().
 */
int annotate_build(struct annotate **out, const struct annotate_input *in, struct err *e);
/* Frees a; does nothing for NULL. */
void annotate_destroy(struct annotate *a);

#define ANNOTATE_TARGET 160u
/* Writes "<name+0x10>" for the address that an instruction refers to, or "". */
void annotate_target(const struct annotate *a, const struct disasm_insn *i,
		     char out[ANNOTATE_TARGET]);

#endif
