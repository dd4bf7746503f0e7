/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a fuzz target over files, so that every corpus is part of the normal
 * test run: `fuzz_x FILE|DIR...`. A crash or sanitizer report ends it non-zero.
 */
#include "tests/fuzz/fuzz.h"

#include "base/file.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static unsigned int inputs;

static int run_file(const char *path)
{
	struct err e = { 0 };
	struct file_map m = { 0 };
	uint8_t *copy;

	if (file_map_open(&m, path, 64u << 20, &e) < 0) {
		struct stat st;

		if (stat(path, &st) == 0 && st.st_size == 0) {
			LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
			inputs++;
			return 0;
		}
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	/* An exact heap copy, so that the sanitizer sees reads past the end. */
	copy = malloc(m.len);
	memcpy(copy, m.data, m.len);
	LLVMFuzzerTestOneInput(copy, m.len);
	inputs++;
	free(copy);
	file_map_close(&m);
	return 0;
}

static int run_path(const char *path)
{
	struct stat st;
	struct dirent *d;
	DIR *dir;
	int ret = 0;

	if (stat(path, &st) < 0) {
		perror(path);
		return 1;
	}
	if (!S_ISDIR(st.st_mode))
		return run_file(path);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		char sub[PATH_MAX];

		if (d->d_name[0] == '.')
			continue;
		snprintf(sub, sizeof(sub), "%s/%s", path, d->d_name);
		ret |= run_path(sub);
	}
	if (dir)
		closedir(dir);
	return ret;
}

int main(int argc, char **argv)
{
	int ret = 0;

	for (int i = 1; i < argc; i++)
		ret |= run_path(argv[i]);
	printf("%s: %u inputs\n", argv[0], inputs);
	return ret || inputs == 0;
}
