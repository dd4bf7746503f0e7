/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * console_lines: the bytes of a serial console as lines of text.
 *
 * What a terminal would not show is left out: escape sequences (ECMA-48: CSI, and strings
 * such as OSC up to ST or BEL), control characters but tab; backspace takes a character
 * back. A line ends at LF, at CR LF, or at a CR that something else follows (progress that
 * overwrites itself). The guest is hostile: a line keeps CONSOLE_LINE_MAX bytes, what comes
 * beyond is dropped, and no sequence outlives its line.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONSOLE_LINES_H
#define KVMPROF_PROFILE_RECORD_CONSOLE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONSOLE_LINE_MAX 1024u

/* All zero is the beginning. */
struct console_lines {
	char text[CONSOLE_LINE_MAX + 1]; /* the line so far, terminated; no NUL inside */
	size_t n;
	uint8_t escape; /* enum in the .c */
	bool ended;	/* text is complete: the next byte begins another line */
	bool after_cr;
	uint64_t capped; /* bytes dropped in all */
};

/* True: the line in text is complete, and stays until the next call. */
bool console_lines_put(struct console_lines *l, uint8_t byte);

/* Is there an unfinished line in text? */
static inline bool console_lines_pending(const struct console_lines *l)
{
	return l->n && !l->ended;
}

#endif
