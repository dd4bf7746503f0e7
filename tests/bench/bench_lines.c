/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Source lines and inlined calls of random text addresses: the first lookup (which makes
 * the index), the rest of them, all once more, and binutils' `addr2line -i -f` over the same
 * addresses in the same run.
 *
 *	make build/bench/bench_lines && build/bench/bench_lines [vmlinux...]
 *
 * Without arguments: the kernels with debug information in the cache of the scripts.
 * Median of ROUNDS rounds with the fastest and the slowest; wall time, as addr2line is a
 * process of its own. Its output goes to /dev/null.
 */
#include "base/clock.h"
#include "base/file.h"
#include "symbolizer/core/kimage.h"
#include "symbolizer/program/lines.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 3u
#define LOOKUPS 4000u

struct round {
	double first, rest, again, theirs; /* seconds */
	unsigned int known, deepest;
};

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double seconds_since(uint64_t start)
{
	return (double)(clock_mono_ns() - start) / 1e9;
}

static unsigned int look(struct lines *l, const uint64_t *va, unsigned int n, struct round *r)
{
	struct line_frame f[LINES_MAX_FRAMES];
	unsigned int known = 0;

	for (unsigned int i = 0; i < n; i++) {
		int got = lines_lookup(l, va[i], f, LINES_MAX_FRAMES, NULL);

		known += got > 0;
		if (got > (int)r->deepest)
			r->deepest = (unsigned int)got;
	}
	return known;
}

static int run_ours(const struct file_map *m, const char *path, const uint64_t *va, struct round *r)
{
	struct err e = { 0 };
	struct lines *l;
	uint64_t start = clock_mono_ns();

	if (lines_open(m->data, m->len, path, &l, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	r->known = look(l, va, 1, r);
	r->first = seconds_since(start);
	start = clock_mono_ns();
	r->known += look(l, va + 1, LOOKUPS - 1, r);
	r->rest = seconds_since(start);
	start = clock_mono_ns();
	look(l, va, LOOKUPS, r);
	r->again = seconds_since(start);
	lines_close(l);
	return 0;
}

/* 0 when there is no addr2line. */
static double run_theirs(const char *path, const char *list)
{
	char command[8192];
	uint64_t start = clock_mono_ns();

	snprintf(command, sizeof(command), "addr2line -i -f -e '%s' <'%s' >/dev/null 2>&1", path,
		 list);
	return system(command) == 0 ? seconds_since(start) : 0;
}

static void choose(const struct kimage *k, uint64_t *va, const char *list)
{
	uint64_t x = 88172645463325252ull, start = k->text, len = k->etext - k->text;
	FILE *f = fopen(list, "w");

	if (!f)
		abort();
	kimage_section(k, ".text", &start, &len);
	for (unsigned int i = 0; i < LOOKUPS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		va[i] = start + x % len;
		fprintf(f, "0x%" PRIx64 "\n", va[i]);
	}
	fclose(f);
}

static void print(const char *name, struct round *r)
{
	double v[4][ROUNDS];

	for (unsigned int i = 0; i < ROUNDS; i++) {
		v[0][i] = r[i].first * 1e3;
		v[1][i] = (LOOKUPS - 1) / r[i].rest;
		v[2][i] = LOOKUPS / r[i].again;
		v[3][i] = r[i].theirs ? LOOKUPS / r[i].theirs : 0;
	}
	for (int i = 0; i < 4; i++)
		qsort(v[i], ROUNDS, sizeof(double), cmp_double);
	printf("%s: %u addresses, %u with a line, at most %u frames\n"
	       "  first lookup %.1f ms (%.1f to %.1f), then %.0f a second (%.0f to %.0f), again "
	       "%.0f\n",
	       name, LOOKUPS, r->known, r->deepest, v[0][ROUNDS / 2], v[0][0], v[0][ROUNDS - 1],
	       v[1][ROUNDS / 2], v[1][0], v[1][ROUNDS - 1], v[2][ROUNDS / 2]);
	if (v[3][0] > 0)
		printf("  addr2line -i -f, start included: %.0f a second (%.0f to %.0f)\n",
		       v[3][ROUNDS / 2], v[3][0], v[3][ROUNDS - 1]);
}

static int bench(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	uint64_t *va = malloc(LOOKUPS * sizeof(*va));
	char list[] = "/tmp/bench-lines-XXXXXX";
	struct round r[ROUNDS] = { 0 };
	struct file_map m = { 0 };
	struct err e = { 0 };
	struct kimage k;
	int fd = mkstemp(list), ret = 0;

	if (!va || fd < 0)
		abort();
	close(fd);
	if (file_map_open(&m, path, 16ull << 30, &e) < 0 ||
	    kimage_parse(&k, path, m.data, m.len, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		ret = 1;
	} else {
		choose(&k, va, list);
		/* In turns, so that both see the same machine. */
		for (unsigned int i = 0; i < ROUNDS && !ret; i++) {
			ret = run_ours(&m, path, va, &r[i]);
			r[i].theirs = ret ? 0 : run_theirs(path, list);
		}
		if (!ret)
			print(name, r);
	}
	file_map_close(&m);
	unlink(list);
	free(va);
	return ret;
}

int main(int argc, char **argv)
{
	const char *own = getenv("KVMPROF_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	char path[4096];
	glob_t g = { 0 };
	int ret = 0;

	for (int i = 1; i < argc; i++)
		ret |= bench(argv[i]);
	if (argc > 1)
		return ret;
	if (own)
		snprintf(path, sizeof(path), "%s/debian-*/dbg/vmlinux-*", own);
	else
		snprintf(path, sizeof(path), "%s%s/kvmprof/debian-*/dbg/vmlinux-*",
			 xdg	? xdg
			 : home ? home
				: "",
			 xdg ? "" : "/.cache");
	if (glob(path, 0, NULL, &g) != 0)
		puts("bench_lines: skipped: no kernel with debug information in the cache "
		     "(scripts/fetch-debian-kernel.sh --dbg)");
	for (size_t i = 0; i < g.gl_pathc; i++)
		ret |= bench(g.gl_pathv[i]);
	globfree(&g);
	return ret;
}
