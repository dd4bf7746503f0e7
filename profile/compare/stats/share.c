/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/stats/share.h"

#include <math.h>

/* standard deviations around the mean that hold 95 % of a normal distribution */
#define Z95 1.959963984540054

double share_effective(double sum, double sum_of_squares)
{
	return sum_of_squares > 0 ? sum * sum / sum_of_squares : 0;
}

struct share_interval share_wilson95(double share, double n)
{
	double p = share < 0 ? 0 : share > 1 ? 1 : share, z2 = Z95 * Z95, middle, half;
	struct share_interval i = { 0, 1 };

	if (!(n > 0))
		return i;
	middle = (p + z2 / (2 * n)) / (1 + z2 / n);
	half = Z95 / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));
	/* At the ends the interval begins there; rounding must not say otherwise. */
	i.low = p > 0 ? fmax(middle - half, 0) : 0;
	i.high = p < 1 ? fmin(middle + half, 1) : 1;
	return i;
}

/* Returns the variance of a share, 0 without samples. */
static double share_variance(double share, double n)
{
	return n > 0 ? share * (1 - share) / n : 0;
}

double share_noise(double share_a, double na, double share_b, double nb)
{
	double v = share_variance(share_a, na) + share_variance(share_b, nb);

	return v > 0 ? Z95 * sqrt(v) : 0;
}
