/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The distributions behind power and intervals. Accuracy: 1e-9 and better, far beyond what
 * the approximations they serve deserve; unit tests compare with published tables.
 */
#include "profile/compare/stats/power.h"

#include <math.h>

double gate_normal_cdf(double z)
{
	return 0.5 * erfc(-z * M_SQRT1_2);
}

static double log_gamma(double x)
{
	int sign; /* lgamma() has a global one */

	return lgamma_r(x, &sign);
}

/* The x at which a rising function reaches p, by bisection from a bracket that is widened. */
static double invert(double (*f)(double, double), double p, double df)
{
	double lo = -1, hi = 1;

	while (f(lo, df) > p && lo > -1e150)
		lo *= 2;
	while (f(hi, df) < p && hi < 1e150)
		hi *= 2;
	for (unsigned int i = 0; i < 200 && hi - lo > 1e-13 * (fabs(lo) + fabs(hi)); i++) {
		double mid = lo + (hi - lo) / 2;

		if (f(mid, df) < p)
			lo = mid;
		else
			hi = mid;
	}
	return lo + (hi - lo) / 2;
}

static double normal(double z, double df)
{
	(void)df;
	return gate_normal_cdf(z);
}

double gate_normal_quantile(double p)
{
	/* The upper tail has more digits as a lower one. */
	return p > 0.5 ? -invert(normal, 1 - p, 0) : invert(normal, p, 0);
}

/*
 * Regularized incomplete beta: the continued fraction (DLMF 8.17.22) by Lentz's method, on the
 * side of the mean where it converges quickly.
 */
static double incomplete_beta(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d, h, front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	if (x > (a + 1) / (a + b + 2))
		return 1 - incomplete_beta(b, a, 1 - x);
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x)) /
		a;
	d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	h = d;
	for (unsigned int m = 1; m < 10000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		h *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		h *= step;
		if (fabs(step - 1) < 1e-15)
			break;
	}
	return front * h;
}

double gate_t_cdf(double t, double df)
{
	double tail;

	/* So many are normal; lgamma() of large values would lose digits. */
	if (df > 1e6)
		return gate_normal_cdf(t);
	tail = incomplete_beta(df / 2, 0.5, df / (df + t * t)) / 2;
	return t > 0 ? 1 - tail : tail;
}

double gate_t_quantile(double p, double df)
{
	return p > 0.5 ? -invert(gate_t_cdf, 1 - p, df) : invert(gate_t_cdf, p, df);
}
