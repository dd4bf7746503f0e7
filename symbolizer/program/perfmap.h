/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfmap: the names of code that a JIT compiler made, from its /tmp/perf-PID.map.
 *
 *	line = START SP SIZE SP name NL		START, SIZE: hexadecimal, "0x" allowed
 *
 * Source: tools/perf/Documentation/jit-interface.txt. The file grows while the
 * program runs and has no notion of freeing: code memory is used again, so a later
 * line hides what earlier ones said of the same bytes. When it was used again is not
 * told: of a sample that is older than the later line the earlier one is true. The last
 * line may be cut.
 *
 * Built by one thread, then read-only.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_PERFMAP_H
#define KVMPROF_SYMBOLIZER_PROGRAM_PERFMAP_H

#include "base/err.h"
#include "symbolizer/core/symtab.h"

#define PERFMAP_MAX_ENTRIES (8u << 20)

struct perfmap;

struct perfmap_info {
	uint32_t entries;	/* lines that were understood */
	uint32_t hidden;	/* of these, covered by later ones altogether */
	uint32_t ignored;	/* lines that say nothing: no number, size 0, no name */
	uint32_t first_ignored; /* number of the first one; 0: none */
	bool full;		/* PERFMAP_MAX_ENTRIES: the lines after them are not read */
};

/*
 * Lines that are not of this form are skipped and counted; info may be NULL. Names
 * longer than SYMTAB_MAX_NAME are cut, bytes that would move a cursor become '?'.
 * -ENOENT: no line says anything; -ENOMEM. data is not kept.
 */
int perfmap_parse(struct perfmap **out, const char *name, const uint8_t *data, size_t len,
		  struct perfmap_info *info, struct err *e);
void perfmap_destroy(struct perfmap *m);

/*
 * Pieces in order of address: what the last line about all that lies in [*start, *end)
 * said; NULL: none. i < perfmap_pieces(m). A symbol has several where others lie over it.
 */
size_t perfmap_pieces(const struct perfmap *m);
const struct symbol *perfmap_piece(const struct perfmap *m, size_t i, uint64_t *start,
				   uint64_t *end);

/*
 * Is s, one of the above, of bytes that an earlier line gave another function? Not another one are two
 * compilations that differ in V8's mark alone: JS:~f, JS:^f, JS:*f. Where more lines than
 * half of PERFMAP_MAX_OVER lie over one another all of them may count as such.
 */
#define PERFMAP_MAX_OVER 16u
bool perfmap_in_doubt(const struct perfmap *m, const struct symbol *s);

#endif
