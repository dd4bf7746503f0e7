/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * module_guest: loaded modules in a made-up guest's memory, laid out as kernels from 5.1 to 7.x do.
 */
#ifndef KVMPROF_TESTS_MODULE_GUEST_H
#define KVMPROF_TESTS_MODULE_GUEST_H

#include "symbolizer/linux/module.h"
#include "tests/memory_bytes.h"

#include <elf.h>
#include <stdio.h>

#define MG_BASE 0xffffffffc0000000ull
#define MG_EACH 0x10000u /* bytes of memory for one module */
#define MG_MODULES 3u
#define MG_HEAD (MG_BASE + MG_MODULES * MG_EACH)
/* Layout of a module's memory: its code, then its data with the struct module and its tables. */
#define MG_TEXT 0x0u
#define MG_TEXT_BYTES 0x3000u
#define MG_DATA 0x4000u
#define MG_STRUCT (MG_DATA + 0x140u)
#define MG_TABLE (MG_DATA + 0x1000u)
#define MG_SYMS (MG_DATA + 0x1100u)
#define MG_STRINGS (MG_DATA + 0x2000u)
#define MG_TYPES (MG_DATA + 0x2100u)
#define MG_IPS (MG_DATA + 0x3000u)
#define MG_ORC (MG_DATA + 0x3800u)
#define MG_DATA_BYTES 0x5000u
#define MG_NSYMS 6u
#define MG_NORCS 40u

struct mg_shape {
	const char *name;
	uint32_t kallsyms, text, size; /* size: bytes after the base */
	uint32_t stride;	       /* distance to the next area; 0: one area has all */
	uint32_t init;		       /* distance from text to init text */
	bool tree, typetab;
	uint32_t orc; /* 0: none */
};

static const struct mg_shape mg_shapes[] = {
	{ "5.1: letters in st_info", 0x140, 0xc0, 12, 0, 24, false, false, 0x1c0 },
	{ "5.10", 0x1c8, 0x140, 12, 0, 80, true, true, 0x200 },
	{ "6.1 without MG_ORC", 0x180, 0x100, 12, 0, 80, true, true, 0 },
	{ "6.4", 0x3c0, 0x140, 8, 72, 4 * 72, true, true, 0x340 },
	{ "6.4 without a tree", 0x3c0, 0x140, 8, 16, 4 * 16, false, true, 0x340 },
	{ "6.13: rw_copy", 0x3c0, 0x140, 20, 80, 4 * 80, true, true, 0x380 },
	{ "7.0: is_rox", 0x3c0, 0x140, 12, 72, 4 * 72, true, true, 0x340 },
};

static uint8_t mg_bytes[MG_MODULES * MG_EACH + 0x1000];

static struct memory_bytes mg_whole = { MG_BASE, mg_bytes, sizeof(mg_bytes) };
static const struct memory mg_memory = { memory_bytes_read, &mg_whole };

static inline void mg_put(uint64_t va, const void *p, size_t n)
{
	memcpy(mg_bytes + (va - MG_BASE), p, n);
}

static inline void mg_put8(uint64_t va, uint64_t v)
{
	mg_put(va, &v, 8);
}

static inline void mg_put4(uint64_t va, uint32_t v)
{
	mg_put(va, &v, 4);
}

static inline uint64_t mg_at(unsigned int i, uint32_t off)
{
	return MG_BASE + (uint64_t)i * MG_EACH + off;
}

static inline void mg_put_area(const struct mg_shape *s, uint64_t va, uint64_t base, uint32_t len,
			       uint64_t mod)
{
	mg_put8(va, base);
	if (s->size == 20)
		mg_put8(va + 8, base);
	mg_put4(va + s->size, len);
	if (s->tree)
		mg_put8(va + (s->size + 11) / 8 * 8, mod);
}

static inline void mg_put_areas(const struct mg_shape *s, unsigned int i)
{
	uint64_t mod = mg_at(i, MG_STRUCT), area = mod + s->text;

	if (s->stride) {
		mg_put_area(s, area, mg_at(i, MG_TEXT), MG_TEXT_BYTES, mod);
		mg_put_area(s, area + s->stride, mg_at(i, MG_DATA), MG_DATA_BYTES, mod);
		return;
	}
	/* base, size, text_size, ro_size, ro_after_init_size */
	mg_put8(area, mg_at(i, MG_TEXT));
	mg_put4(area + 8, MG_DATA + MG_DATA_BYTES);
	mg_put4(area + 12, MG_TEXT_BYTES);
	mg_put4(area + 16, MG_DATA);
	mg_put4(area + 20, MG_DATA);
	if (s->tree)
		mg_put8(area + 24, mod);
	if (s->tree)
		mg_put8(area + 80 + 24, mod);
}

static inline void mg_put_symbols(const struct mg_shape *s, unsigned int i)
{
	static const char letter[MG_NSYMS] = { 0, 't', 'd', 'T', 't', 'r' };
	static const char strings[] = "\0one\0two\0three\0four\0five";
	static const uint32_t name[MG_NSYMS] = { 0, 1, 5, 9, 15, 20 };

	mg_put8(mg_at(i, MG_TABLE), mg_at(i, MG_SYMS));
	mg_put8(mg_at(i, MG_TABLE) + 8, MG_NSYMS);
	mg_put8(mg_at(i, MG_TABLE) + 16, mg_at(i, MG_STRINGS));
	if (s->typetab)
		mg_put8(mg_at(i, MG_TABLE) + 24, mg_at(i, MG_TYPES));
	mg_put(mg_at(i, MG_STRINGS), strings, sizeof(strings));
	mg_put(mg_at(i, MG_TYPES), letter, sizeof(letter));
	for (unsigned int k = 1; k < MG_NSYMS; k++) {
		bool code = (letter[k] | 0x20) == 't';
		Elf64_Sym x = { .st_name = name[k],
				.st_info = s->typetab ? 2 : (uint8_t)letter[k],
				.st_shndx = 1,
				.st_value =
					mg_at(i, code ? MG_TEXT + 0x100 * k : MG_DATA + 0x40 * k),
				.st_size = 0x40 };

		mg_put(mg_at(i, MG_SYMS) + k * sizeof(x), &x, sizeof(x));
	}
	mg_put8(mg_at(i, MG_STRUCT) + s->kallsyms, mg_at(i, MG_TABLE));
}

static inline void mg_put_orc(const struct mg_shape *s, unsigned int i)
{
	if (!s->orc)
		return;
	mg_put4(mg_at(i, MG_STRUCT) + s->orc, MG_NORCS);
	mg_put8(mg_at(i, MG_STRUCT) + s->orc + 8, mg_at(i, MG_IPS));
	mg_put8(mg_at(i, MG_STRUCT) + s->orc + 16, mg_at(i, MG_ORC));
	for (unsigned int k = 0; k < MG_NORCS; k++) {
		uint64_t ip = mg_at(i, MG_IPS) + 4ull * k;

		mg_put4(ip, (uint32_t)(mg_at(i, MG_TEXT) + 16ull * k - ip));
		mg_put(mg_at(i, MG_ORC) + 6ull * k, (int16_t[]){ 8, 0, 0x05 }, 6);
	}
}

static inline void mg_make(const struct mg_shape *s)
{
	memset(mg_bytes, 0, sizeof(mg_bytes));
	for (unsigned int i = 0; i < MG_MODULES; i++) {
		char name[56] = "";

		snprintf(name, sizeof(name), "module_%u", i);
		mg_put(mg_at(i, MG_STRUCT) + 24, name, sizeof(name));
		mg_put8(mg_at(i, MG_STRUCT) + 8,
			i + 1 < MG_MODULES ? mg_at(i + 1, MG_STRUCT) + 8 : MG_HEAD);
		mg_put8(mg_at(i, MG_STRUCT) + 16, i ? mg_at(i - 1, MG_STRUCT) + 8 : MG_HEAD);
		mg_put_areas(s, i);
		mg_put_symbols(s, i);
		mg_put_orc(s, i);
	}
	mg_put8(MG_HEAD, mg_at(0, MG_STRUCT) + 8);
	mg_put8(MG_HEAD + 8, mg_at(MG_MODULES - 1, MG_STRUCT) + 8);
}

/* Returns the layout as it is known before a module is read. */
static inline struct linux_module_layout mg_layout(void)
{
	return (struct linux_module_layout){ .modules = MG_HEAD,
					     .kernel_start = 0xffffffff81000000,
					     .kernel_end = 0xffffffff83000000 };
}

#endif
