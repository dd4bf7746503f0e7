/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool number_real(const char *s, double min, double max, double *out)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(s, &end);
	/* This form makes NaN fail, too. */
	if (errno || end == s || *end || !isfinite(v) || !(v >= min && v <= max))
		return false;
	*out = v;
	return true;
}

bool number_seconds(const char *s, double min, double max, double *out)
{
	static const struct {
		const char *name;
		double seconds;
	} unit[] = { { "", 1 },	     { "s", 1 },  { "sec", 1 },	 { "ms", 1e-3 }, { "us", 1e-6 },
		     { "ns", 1e-9 }, { "m", 60 }, { "min", 60 }, { "h", 3600 },	 { "d", 86400 } };
	char *end;
	double v;

	errno = 0;
	v = strtod(s, &end);
	if (errno || end == s)
		return false;
	for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++) {
		double seconds = v * unit[i].seconds;

		/* This form makes NaN fail, too. */
		if (strcmp(end, unit[i].name) || !isfinite(seconds) ||
		    !(seconds >= min && seconds <= max))
			continue;
		*out = seconds;
		return true;
	}
	return false;
}

bool number_hz(const char *s, double min, double max, double *out)
{
	double v;
	char *end;

	errno = 0;
	v = strtod(s, &end);
	if (errno || end == s)
		return false;
	if (!strcasecmp(end, "k") || !strcasecmp(end, "khz"))
		v *= 1000;
	else if (*end && strcasecmp(end, "hz") != 0)
		return false;
	/* This form makes NaN fail, too. */
	if (!isfinite(v) || !(v >= min && v <= max))
		return false;
	*out = v;
	return true;
}

bool number_digits(const char **s, uint64_t max, uint64_t *out)
{
	unsigned long long v;
	char *end;

	/* strtoull() accepts blanks and signs, and turns negative numbers into huge ones. */
	if (**s < '0' || **s > '9')
		return false;
	errno = 0;
	v = strtoull(*s, &end, 10);
	if (errno || v > max)
		return false;
	*s = end;
	*out = v;
	return true;
}

bool number_whole(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *end = s;
	uint64_t v;
	double real;

	if (!number_digits(&end, UINT64_MAX, &v) || *end) {
		/* Beyond 2^53 not every whole number is a double. */
		if (!number_real(s, 0, 0x1p53, &real) || real != floor(real))
			return false;
		v = (uint64_t)real;
	}
	if (v < min || v > max)
		return false;
	*out = v;
	return true;
}

bool number_size(const char *s, uint64_t *out)
{
	unsigned int shift = 0;
	uint64_t v;

	if (!number_digits(&s, UINT64_MAX, &v))
		return false;
	switch (*s) {
	case 'k':
	case 'K':
		shift = 10;
		s++;
		break;
	case 'm':
	case 'M':
		shift = 20;
		s++;
		break;
	case 'g':
	case 'G':
		shift = 30;
		s++;
		break;
	case 't':
	case 'T':
		shift = 40;
		s++;
		break;
	case '\0':
		shift = 20;
		break;
	}
	if (shift && (s[-1] < '0' || s[-1] > '9'))
		s += !strcasecmp(s, "b") ? 1 : !strcasecmp(s, "ib") ? 2 : 0;
	if (*s || v > UINT64_MAX >> shift)
		return false;
	*out = v << shift;
	return true;
}

int number_range(const char **list, uint64_t max, struct number_range *out)
{
	const char *s = *list;
	struct number_range r;

	if (!s)
		return 0;
	if (!number_digits(&s, max, &r.from))
		return -EINVAL;
	r.to = r.from;
	if (*s == '-' && (s++, !number_digits(&s, max, &r.to)))
		return -EINVAL;
	if (r.to < r.from || (*s && *s != ','))
		return -EINVAL;
	*list = *s ? s + 1 : NULL;
	*out = r;
	return 1;
}
