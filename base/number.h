/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * number: numbers, sizes and times as people write them on a command line.
 *
 * Functions that return bool write nothing when they return false. Any thread.
 */
#ifndef KVMPROF_BASE_NUMBER_H
#define KVMPROF_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* All of s is a number from min to max; infinite ones and NaN are refused. */
bool number_real(const char *s, double min, double max, double *out);

/* Parses a time: a number of seconds, or a number with the unit ms, s, m, min or h. min and max are seconds. Returns as number_real(). */
bool number_seconds(const char *s, double min, double max, double *out);

/* All of s is a whole number from min to max: digits, or a form such as 1e6. */
bool number_whole(const char *s, uint64_t min, uint64_t max, uint64_t *out);

/* Bytes: digits, then K, M or G (also KB or KiB: all are powers of 1024), or nothing for MiB, as QEMU has it. */
bool number_size(const char *s, uint64_t *out);

/*
 * FROM,TO in seconds, from 0 on, FROM less than TO. Either may be left out, and the comma behind
 * FROM, too; what is left out is 0.
 */
bool number_span(const char *s, double *from, double *to);

/* Digits at *s, which moves behind them; no blank, no sign. At most max. */
bool number_digits(const char **s, uint64_t max, uint64_t *out);

struct number_range {
	uint64_t from, to; /* both belong to it; from <= to */
};

/*
 * The next of a list such as 0,2-5 of numbers up to max. Returns 1 with *list behind it, and NULL
 * behind the last; 0 at the end; -EINVAL.
 */
int number_range(const char **list, uint64_t max, struct number_range *out);

#endif
