/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a fuzz target without libFuzzer, over files, so that every corpus is part of the normal test run:
 *
 *	fuzz_x FILE|DIR...
 *	fuzz_x --runs N [--seed S] [--first F] FILE|DIR...
 *
 * The second form runs N inputs that are made of those files (mutate.h), from run F on. A crash or a sanitizer's report
 * ends it non-zero. An input that was made is then in fuzz_x.crash, beside the program.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUTS_MAX 4096u
#define SEED 20261126u

static struct mutate_input input[INPUTS_MAX];
static unsigned int inputs;

/* The run that is under way, for the handlers below. */
static struct {
	char path[PATH_MAX];
	unsigned long long seed, n;
	const uint8_t *data; /* NULL: none, or it was kept already */
	size_t len;
} running;

/* ASan's runtime, if there is one; called when it has reported an error. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void keep_input(void)
{
	int fd;

	if (!running.data)
		return;
	fd = open(running.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd >= 0) {
		(void)!write(fd, running.data, running.len);
		close(fd);
	}
	dprintf(STDERR_FILENO, "run %llu of seed %llu failed: its input is %s\n", running.n,
		running.seed, running.path);
	running.data = NULL;
}

static void on_crash(int sig)
{
	keep_input();
	signal(sig, SIG_DFL);
	raise(sig);
}

static int add_file(const char *path)
{
	struct err e = { 0 };
	struct file_map m = { 0 };
	struct stat st;
	bool empty = stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;

	if (inputs == INPUTS_MAX) {
		fprintf(stderr, "more than %u inputs\n", INPUTS_MAX);
		return 1;
	}
	if (!empty && file_map_open(&m, path, 64u << 20, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	input[inputs].len = m.len;
	input[inputs].data = malloc(m.len);
	if (m.len)
		memcpy(input[inputs].data, m.data, m.len);
	inputs++;
	if (!empty)
		file_map_close(&m);
	return 0;
}

/* Sorted, so that a run is the same on each file system. */
static int add_path(const char *path)
{
	struct dirent **names = NULL;
	struct stat st;
	int ret = 0, n;

	if (stat(path, &st) < 0) {
		perror(path);
		return 1;
	}
	if (!S_ISDIR(st.st_mode))
		return add_file(path);
	n = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char sub[PATH_MAX];

		if (names[i]->d_name[0] != '.') {
			snprintf(sub, sizeof(sub), "%s/%s", path, names[i]->d_name);
			ret |= add_path(sub);
		}
		free(names[i]);
	}
	free(names);
	return ret;
}

/* An exact heap copy, so that a sanitizer sees reads past the end. */
static void run_one(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len);

	if (len)
		memcpy(copy, data, len);
	LLVMFuzzerTestOneInput(len ? copy : (const uint8_t *)"", len);
	free(copy);
}

static void run_made(unsigned long long first, unsigned long long runs)
{
	static uint8_t made[MUTATE_MAX];

	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(keep_input);
	else
		signal(SIGSEGV, on_crash);
	signal(SIGABRT, on_crash);
	for (running.n = first; running.n < first + runs; running.n++) {
		running.len = mutate_make(running.seed, running.n, input, inputs, made);
		running.data = made;
		run_one(made, running.len);
	}
	running.data = NULL;
}

int main(int argc, char **argv)
{
	unsigned long long runs = 0, first = 0;
	int at = 1, ret = 0;

	running.seed = SEED;
	for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
		unsigned long long v = strtoull(argv[at + 1], NULL, 10);

		if (!strcmp(argv[at], "--runs"))
			runs = v;
		else if (!strcmp(argv[at], "--seed"))
			running.seed = v;
		else if (!strcmp(argv[at], "--first"))
			first = v;
		else
			return 2;
	}
	snprintf(running.path, sizeof(running.path), "%s.crash", argv[0]);
	for (; at < argc; at++)
		ret |= add_path(argv[at]);
	if (runs && inputs)
		run_made(first, runs);
	for (unsigned int i = 0; i < inputs; i++) {
		if (!runs)
			run_one(input[i].data, input[i].len);
		free(input[i].data);
	}
	printf("%s: %u inputs, %llu made of them\n", argv[0], inputs, runs);
	return ret || inputs == 0;
}
