/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Source lines of an ELF file, at addresses spread over its segments; it is its own alternate file. */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/core/elf64.h"
#include "symbolizer/program/lines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ADDRESSES 48u
#define ROOM (1u << 20)

static volatile size_t keep;

static void look(struct lines *l, uint64_t va, unsigned int max)
{
	struct line_frame f[LINES_MAX_FRAMES];
	struct err e = { 0 };
	int n = lines_lookup(l, va, f, max, &e);

	if ((n < 0 && !e.text[0]) || n > (int)max)
		abort();
	for (int i = 0; i < n; i++) {
		keep += f[i].function ? strlen(f[i].function) : 0;
		keep += f[i].file ? strlen(f[i].file) : 0;
		if (f[i].inlined && i == n - 1 && n < (int)max)
			abort(); /* the outermost is a function, or was cut off */
	}
}

/*
 * libdw has no instrumentation: its reads past the end are seen only where memory ends.
 * Kept 8-aligned, as mapped files are.
 */
static const uint8_t *before_a_wall(const uint8_t *data, size_t size)
{
	static uint8_t *room;

	if (!room) {
		room = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
		if (room == MAP_FAILED || mprotect(room + ROOM, 4096, PROT_NONE) < 0)
			abort();
	}
	return memcpy(room + ((ROOM - size) & ~(size_t)7), data, size);
}

static int each_row(void *ctx, const struct lines_row *row)
{
	(void)ctx;
	if (row->lo >= row->hi || !row->line)
		abort();
	keep += strlen(row->file);
	return 0;
}

static int each_function(void *ctx, const struct lines_function *f)
{
	(void)ctx;
	keep += strlen(f->name) + strlen(f->file) + f->line;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const uint8_t *data;
	const char *path;
	uint8_t id[LINES_MAX_ALT_ID];
	struct lines *l;
	struct elf64 f;
	struct err e = { 0 };
	uint64_t left_out;

	if (size > ROOM)
		return 0;
	data = before_a_wall(bytes, size);
	if (lines_open(data, size, "fuzz", &l, &e) < 0) {
		if (!e.text[0])
			abort();
		return 0;
	}
	if (lines_alt(l, id, &path))
		keep += strlen(path);
	if (size & 1)
		(void)lines_set_alt(l, data, size, "alt", &e);
	if (elf64_open(&f, "fuzz", data, size, NULL) < 0)
		abort();
	for (uint32_t i = 0; i < f.phnum && i < 4; i++) {
		Elf64_Phdr p = elf64_phdr(&f, i);

		for (unsigned int n = 0; n < ADDRESSES; n++)
			look(l, p.p_vaddr + p.p_memsz / ADDRESSES * n, n % LINES_MAX_FRAMES + 1);
	}
	look(l, f.entry, LINES_MAX_FRAMES);
	look(l, 0, 1);
	(void)lines_each(l, &(struct lines_visitor){ NULL, each_row, each_function }, &left_out,
			 &e);
	lines_close(l);
	return 0;
}
