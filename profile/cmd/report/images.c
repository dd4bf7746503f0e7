/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/report/images.h"

#include "base/utf8.h"
#include "profile/cmd/report/header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_row(const struct report *r, const struct agg_row *row, uint64_t sum)
{
	printf("%10" PRIu64 " ", row->self_samples);
	report_put_percent(r, 7, report_percent(row->self, r->a->weight));
	printf(" %7.2f%%", report_percent(sum, r->a->weight));
	if (r->opt->ci) {
		struct share_interval i = report_interval(r, row->self);
		char text[32];

		snprintf(text, sizeof(text), "%.2f-%.2f%%", i.low, i.high);
		printf("  %15s", text);
	}
	fputs("  ", stdout);
}

static void put_heading(const struct report *r, const char *what)
{
	printf("#\n#    count        %%     cum%%%s  %s\n", r->opt->ci ? "    95 % interval" : "",
	       what);
}

static void put_cell(const struct report *r, const struct agg_row *row, unsigned int key)
{
	char buf[REPORT_CELL_SIZE];

	utf8_put(stdout,
		 report_cell(r, r->opt->config.key[key], row, REPORT_CELL_WHOLE, buf, sizeof(buf)));
}

static void images(const struct report *r)
{
	uint64_t sum = 0;
	size_t shown = 0, rows = 0;

	put_heading(r, "image");
	for (size_t i = 0; i < r->a->nrows; i++) {
		const struct agg_row *row = &r->a->row[i];

		if (!report_shows(r, row))
			continue;
		rows++;
		sum += row->self;
		if (r->opt->top && shown == r->opt->top)
			continue;
		shown++;
		put_row(r, row, sum);
		put_cell(r, row, 0);
		putchar('\n');
	}
	if (shown < rows)
		printf("# and %zu more (-n 0 shows all)\n", rows - shown);
}

/* -- functions ---------------------------------------------------------------------- */

struct image {
	const char *dso;
	uint64_t weight, samples;
	size_t rows;
};

static int compare_images(const void *a, const void *b)
{
	const struct image *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->dso, y->dso);
}

/* Images are few: names of one image are one pointer. */
static size_t list_images(const struct report *r, struct image *image)
{
	size_t n = 0;

	for (size_t i = 0; i < r->a->nrows; i++) {
		const struct agg_row *row = &r->a->row[i];
		size_t k = 0;

		if (!report_shows(r, row))
			continue;
		while (k < n && image[k].dso != row->frame.dso)
			k++;
		if (k == n)
			image[n++] = (struct image){ .dso = row->frame.dso };
		image[k].weight += row->self;
		image[k].samples += row->self_samples;
		image[k].rows++;
	}
	qsort(image, n, sizeof(*image), compare_images);
	return n;
}

static void functions_of(const struct report *r, const struct image *image)
{
	size_t shown = 0;
	uint64_t sum = 0;

	printf("#\n# image ");
	utf8_put(stdout, image->dso);
	printf(": %" PRIu64 " samples, %.2f %%\n", image->samples,
	       report_percent(image->weight, r->a->weight));
	put_heading(r, "address           function");
	for (size_t i = 0; i < r->a->nrows; i++) {
		const struct agg_row *row = &r->a->row[i];

		if (row->frame.dso != image->dso || !report_shows(r, row) ||
		    (r->opt->top && shown == r->opt->top))
			continue;
		shown++;
		sum += row->self;
		put_row(r, row, sum);
		printf("%016" PRIx64 "  ", report_address(row));
		put_cell(r, row, 1);
		putchar('\n');
	}
	if (shown < image->rows)
		printf("# and %zu more in this image (-n 0 shows all)\n", image->rows - shown);
}

int report_images(const struct report *r)
{
	struct image *image;
	size_t n;

	report_header(r);
	if (!r->opt->functions) {
		images(r);
		return 0;
	}
	image = calloc(r->a->nrows ? r->a->nrows : 1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	n = list_images(r, image);
	for (size_t i = 0; i < n; i++)
		functions_of(r, &image[i]);
	free(image);
	return 0;
}
