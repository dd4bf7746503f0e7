/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * number: parses numbers, sizes and times as people write them on a command line.
 *
 * A function that returns bool returns true if all of s is valid and stores the result in *out. It
 * returns false for anything else and then writes nothing. Any thread may call these functions.
 */
#ifndef KVMPROF_BASE_NUMBER_H
#define KVMPROF_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parses a number from min to max. Infinite values and NaN are refused. */
bool number_real(const char *s, double min, double max, double *out);

/*
 * Parses a time: a number of seconds, or a number with the unit ns, us, ms, s, sec, m, min, h or d.
 * min, max and *out are in seconds.
 */
bool number_seconds(const char *s, double min, double max, double *out);

/* Parses a whole number from min to max: digits, or a form such as 1e6. */
bool number_whole(const char *s, uint64_t min, uint64_t max, uint64_t *out);

/*
 * Parses a size and stores it in bytes: digits followed by K, M, G or T (also KB or KiB, in upper or
 * lower case; all are powers of 1024), or digits alone for MiB, as QEMU does.
 */
bool number_size(const char *s, uint64_t *out);

/*
 * Parses a frequency from min to max, in Hz: a number, or one followed by Hz, k or kHz.
 */
bool number_hz(const char *s, double min, double max, double *out);

/*
 * Parses decimal digits at *s up to max, without blanks and signs, and moves *s behind them. Text
 * may follow.
 */
bool number_digits(const char **s, uint64_t max, uint64_t *out);

struct number_range {
	uint64_t from, to; /* both inclusive; from <= to */
};

/*
 * Parses the next item of a list such as "0,2-5" with numbers up to max. Returns 1 and moves *list
 * to the next item, or sets it to NULL after the last one. Returns 0 if *list is NULL, and -EINVAL
 * for bad text.
 */
int number_range(const char **list, uint64_t max, struct number_range *out);

#endif
