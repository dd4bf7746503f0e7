/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a decompressed kernel image to all tables that profiling needs: names
 * (kallsyms), how to unwind (ORC), types (BTF). And the same out of a guest's memory
 * without the image (livekernel), where copying and finding the extent comes on top.
 *
 *	make build/bench/bench_tables && build/bench/bench_tables [bzImage...]
 *
 * Without arguments: Debian's kernels in the cache of the scripts. Median of ROUNDS
 * rounds with the fastest and the slowest. CPU time of this thread, so that other
 * work on the machine counts only by what it does to the caches.
 */
#include "base/file.h"
#include "symbolizer/types/btf.h"
#include "symbolizer/kernel/kallsyms.h"
#include "symbolizer/kernel/live_copy.h"
#include "symbolizer/kernel/livekernel.h"
#include "symbolizer/unwind/orc.h"
#include "vmm/image/image.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 15u

enum part { NAMES, UNWIND, TYPES, ALL, PARTS };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* One round; each part's milliseconds. */
static int make_tables(const char *path, const struct boot_image *image, double ms[PARTS],
		       struct err *e)
{
	struct symtab *names = NULL;
	struct orc *orc = NULL;
	struct btf *btf = NULL;
	double at[PARTS];
	struct kimage k;
	int ret;

	at[0] = now();
	ret = kimage_parse(&k, path, image->elf, image->elf_len, e);
	ret = ret ? ret : kallsyms_from_image(&k, path, &names, NULL, e);
	at[1] = now();
	ret = ret ? ret : orc_open(&orc, &k, e);
	at[2] = now();
	ret = ret ? ret : btf_from_image(&btf, &k, path, e);
	at[3] = now();
	for (unsigned int i = 0; i < ALL; i++)
		ms[i] = (at[i + 1] - at[i]) * 1e3;
	ms[ALL] = (at[ALL] - at[0]) * 1e3;
	symtab_destroy(names);
	orc_destroy(orc);
	btf_destroy(btf);
	return ret;
}

/* The image's segments as memory: what is behind a segment's bytes is zero. */
static size_t read_segment(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	const struct kimage *k = ctx;

	(void)space;
	for (unsigned int i = 0; i < k->nseg; i++) {
		const struct kimage_segment *s = &k->seg[i];
		uint64_t off = va - s->va, left;

		if (va < s->va || off >= s->mem_len)
			continue;
		if (len > s->mem_len - off)
			len = (size_t)(s->mem_len - off);
		left = off < s->file_len ? s->file_len - off : 0;
		if (left > len)
			left = len;
		memcpy(dst, k->elf + s->file_off + off, left);
		memset((uint8_t *)dst + left, 0, len - left);
		return len;
	}
	return 0;
}

static int bench_live(const char *path, const char *name, const struct boot_image *image,
		      struct err *e)
{
	double ms[ROUNDS];
	struct kimage k;
	const struct live_guest m = { .memory = { read_segment, &k } };
	int ret = kimage_parse(&k, path, image->elf, image->elf_len, e);

	for (unsigned int r = 0; ret == 0 && r < ROUNDS; r++) {
		struct livekernel *l = NULL;
		struct btf *btf = NULL;
		double begin = now();

		ret = livekernel_read(&l, &m, k.text + 0x1000, e);
		ret = ret ? ret : btf_open(&btf, l->btf, l->btf_len, path, e);
		ms[r] = (now() - begin) * 1e3;
		btf_destroy(btf);
		livekernel_destroy(l);
	}
	if (ret)
		return ret;
	qsort(ms, ROUNDS, sizeof(double), cmp_double);
	printf("%s: the same out of memory alone: %.1f ms (%.1f to %.1f)\n", name, ms[ROUNDS / 2],
	       ms[0], ms[ROUNDS - 1]);
	return 0;
}

static int bench(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	double ms[PARTS][ROUNDS], one[PARTS];
	struct boot_image image = { 0 };
	struct file_map m = { 0 };
	struct err e = { 0 };
	int ret = file_map_open(&m, path, BOOT_MAX_FILE, &e);

	ret = ret ? ret : image_parse(&image, path, m.data, m.len, &e);
	for (unsigned int r = 0; ret == 0 && r < ROUNDS; r++) {
		ret = make_tables(path, &image, one, &e);
		for (unsigned int p = 0; p < PARTS; p++)
			ms[p][r] = one[p];
	}
	if (ret == 0) {
		for (unsigned int p = 0; p < PARTS; p++)
			qsort(ms[p], ROUNDS, sizeof(double), cmp_double);
		printf("%s: from decompressed image to ready tables (kallsyms, ORC, BTF): "
		       "%.1f ms (%.1f to %.1f); target < 150 ms; of these %.1f, %.1f and %.1f\n",
		       name, ms[ALL][ROUNDS / 2], ms[ALL][0], ms[ALL][ROUNDS - 1],
		       ms[NAMES][ROUNDS / 2], ms[UNWIND][ROUNDS / 2], ms[TYPES][ROUNDS / 2]);
		ret = bench_live(path, name, &image, &e);
	}
	if (ret)
		fprintf(stderr, "bench_tables: %s\n", e.text);
	image_deinit(&image);
	file_map_close(&m);
	return ret != 0;
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
	snprintf(path, sizeof(path), "%s%s/debian-*/vmlinuz-*",
		 own	? own
		 : xdg	? xdg
		 : home ? home
			: "",
		 own   ? ""
		 : xdg ? "/kvmprof"
		       : "/.cache/kvmprof");
	if (glob(path, 0, NULL, &g))
		puts("bench_tables: skipped: no Debian kernel in the cache "
		     "(scripts/fetch-debian-kernel.sh)");
	for (size_t i = 0; i < g.gl_pathc; i++)
		ret |= bench(g.gl_pathv[i]);
	globfree(&g);
	return ret;
}
