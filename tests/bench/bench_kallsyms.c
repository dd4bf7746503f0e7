/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From an unpacked kernel image to a table of its names, and lookups in that table.
 *
 *	make build/bench/bench_kallsyms && build/bench/bench_kallsyms [bzImage...]
 *
 * Without arguments: the kernels in the cache of the scripts. Median of ROUNDS
 * rounds with the fastest and the slowest; CPU time of this thread, so that other
 * work on the machine counts only by what it does to the caches.
 */
#include "base/file.h"
#include "symbolizer/kernel/kallsyms.h"
#include "vmm/image/image.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 9u
#define LOOKUPS 1000000u

static volatile uint64_t keep;

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

static double lookups_per_s(const struct symtab *t, const struct kimage *k)
{
	uint64_t x = 88172645463325252ull, *addr = malloc(LOOKUPS * sizeof(*addr));
	double rate[ROUNDS];

	if (!addr)
		abort();
	for (unsigned int i = 0; i < LOOKUPS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		addr[i] = k->text + x % (k->etext - k->text);
	}
	for (unsigned int r = 0; r < ROUNDS; r++) {
		double begin = now();

		for (unsigned int i = 0; i < LOOKUPS; i++)
			keep += (uintptr_t)symtab_lookup(t, addr[i], NULL);
		rate[r] = LOOKUPS / (now() - begin);
	}
	free(addr);
	qsort(rate, ROUNDS, sizeof(*rate), cmp_double);
	return rate[ROUNDS / 2];
}

static int bench(const char *path)
{
	struct boot_image image = { 0 };
	struct file_map m = { 0 };
	struct symtab *t = NULL;
	double ms[ROUNDS];
	struct kimage k;
	struct err e = { 0 };
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	if (file_map_open(&m, path, BOOT_MAX_FILE, &e) < 0 ||
	    image_parse(&image, path, m.data, m.len, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	for (unsigned int r = 0; r < ROUNDS; r++) {
		double begin = now();

		symtab_destroy(t);
		t = NULL;
		if (kimage_parse(&k, path, image.elf, image.elf_len, &e) < 0 ||
		    kallsyms_from_image(&k, path, &t, NULL, &e) < 0) {
			fprintf(stderr, "%s\n", e.text);
			return 1;
		}
		ms[r] = (now() - begin) * 1e3;
	}
	qsort(ms, ROUNDS, sizeof(*ms), cmp_double);
	printf("%-36s %7zu names in %6.1f ms (%.1f to %.1f), %5.1f M lookups/s\n", name,
	       symtab_count(t), ms[ROUNDS / 2], ms[0], ms[ROUNDS - 1], lookups_per_s(t, &k) / 1e6);
	symtab_destroy(t);
	image_deinit(&image);
	file_map_close(&m);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const pattern[] = { "kernel-*/bzImage", "debian-*/vmlinuz-*" };
	const char *own = getenv("KVMPROF_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	char path[4096];
	glob_t g = { 0 };
	int ret = 0;

	for (int i = 1; i < argc; i++)
		ret |= bench(argv[i]);
	for (int i = 0; argc == 1 && i < 2; i++) {
		if (own)
			snprintf(path, sizeof(path), "%s/%s", own, pattern[i]);
		else
			snprintf(path, sizeof(path), "%s%s/kvmprof/%s",
				 xdg	? xdg
				 : home ? home
					: "",
				 xdg ? "" : "/.cache", pattern[i]);
		glob(path, i ? GLOB_APPEND : 0, NULL, &g);
	}
	for (size_t i = 0; i < g.gl_pathc; i++)
		ret |= bench(g.gl_pathv[i]);
	if (argc == 1 && g.gl_pathc == 0)
		puts("bench_kallsyms: skipped: no kernel in the cache "
		     "(scripts/fetch-debian-kernel.sh)");
	globfree(&g);
	return ret;
}
