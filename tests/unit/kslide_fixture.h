/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kslide_fixture: a kernel image with enough code to be recognised, its symbols, and an address
 * space in which it runs at some slide. Everything is generated, so that tests and fuzz seeds need
 * no kernel.
 */
#ifndef KVMPROF_TESTS_UNIT_KSLIDE_FIXTURE_H
#define KVMPROF_TESTS_UNIT_KSLIDE_FIXTURE_H

#include "symbolizer/kernel/kslide.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIX_TEXT UINT64_C(0xffffffff81000000)
#define FIX_TEXT_LEN 0x8000u
#define FIX_DATA (FIX_TEXT + FIX_TEXT_LEN)
#define FIX_DATA_LEN 0x2000u
#define FIX_LEN (FIX_TEXT_LEN + FIX_DATA_LEN)
#define FIX_NOTE (FIX_DATA + 0x100)
#define FIX_IDT (FIX_DATA + 0x1000)
#define FIX_OFF_TEXT 0x1000u
#define FIX_FILE (FIX_OFF_TEXT + FIX_LEN)
#define FIX_SYSCALL (FIX_TEXT + 0x40)
#define FIX_EARLY (FIX_TEXT + 0x4000)
#define FIX_HANDLER(vector) (FIX_TEXT + 0x1000 + 64u * (vector))
#define FIX_GATES 19u /* vectors 0 to 19 except 15 */
#define FIX_REGIONS 8u

static const char *const fix_names[20] = {
	"divide_error",
	"debug",
	"nmi",
	"int3",
	"overflow",
	"bounds",
	"invalid_op",
	"device_not_available",
	"double_fault",
	"coproc_segment_overrun",
	"invalid_tss",
	"segment_not_present",
	"stack_segment",
	"general_protection",
	"page_fault",
	NULL,
	"coprocessor_error",
	"alignment_check",
	"machine_check",
	"simd_coprocessor_error",
};

/* Makes an ELF file of FIX_FILE bytes: text and data in one loadable segment each, and a note. */
static inline void fix_elf(uint8_t *out)
{
	const uint32_t note[] = { 4, 20, NT_GNU_BUILD_ID, 0x554e47 };
	Elf64_Phdr ph[3] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = FIX_OFF_TEXT,
		  .p_vaddr = FIX_TEXT,
		  .p_paddr = 0x1000000,
		  .p_filesz = FIX_TEXT_LEN,
		  .p_memsz = FIX_TEXT_LEN },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_offset = FIX_OFF_TEXT + FIX_TEXT_LEN,
		  .p_vaddr = FIX_DATA,
		  .p_paddr = 0x1000000 + FIX_TEXT_LEN,
		  .p_filesz = FIX_DATA_LEN,
		  .p_memsz = FIX_DATA_LEN },
		{ .p_type = PT_NOTE,
		  .p_offset = FIX_OFF_TEXT + (FIX_NOTE - FIX_TEXT),
		  .p_vaddr = FIX_NOTE,
		  .p_filesz = 36,
		  .p_memsz = 36 },
	};
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = 1,
		.e_entry = 0x1000000,
		.e_phoff = sizeof(eh),
		.e_phentsize = sizeof(ph[0]),
		.e_phnum = 3,
		.e_ehsize = sizeof(eh),
	};
	uint32_t x = 42;

	memset(out, 0, FIX_FILE);
	memcpy(out, &eh, sizeof(eh));
	memcpy(out + sizeof(eh), ph, sizeof(ph));
	for (unsigned int i = 0; i < FIX_TEXT_LEN; i++) {
		x = x * 1103515245 + 12345;
		/* functions of 256 bytes with padding between, as code is */
		out[FIX_OFF_TEXT + i] = i % 256 < 200 ? (uint8_t)(x >> 16) : 0xcc;
	}
	memcpy(out + FIX_OFF_TEXT + (FIX_NOTE - FIX_TEXT), note, sizeof(note));
	for (unsigned int i = 0; i < 20; i++)
		out[FIX_OFF_TEXT + (FIX_NOTE - FIX_TEXT) + 16 + i] = (uint8_t)(0xa0 + i);
}

/*
 * Returns the symbols, or NULL if out of memory. asm_: names of 5.8 and newer, else those of older
 * kernels.
 */
static inline struct symtab *fix_symbols(bool asm_names)
{
	struct symtab *t = symtab_create();
	char name[64];
	int bad = !t;

	bad = bad || symtab_add(t, FIX_TEXT, 0, 'T', "_text");
	bad = bad || symtab_add(t, FIX_DATA, 0, 'T', "_etext");
	bad = bad || symtab_add(t, FIX_SYSCALL, 0, 'T', "entry_SYSCALL_64");
	bad = bad || symtab_add(t, FIX_EARLY, 0, 'T', "early_idt_handler_array");
	for (unsigned int v = 0; !bad && v < 20; v++) {
		if (!fix_names[v])
			continue;
		snprintf(name, sizeof(name), "%s%s", asm_names ? "asm_exc_" : "", fix_names[v]);
		bad = symtab_add(t, FIX_HANDLER(v), 0, 'T', name);
	}
	if (bad || symtab_freeze(t, NULL)) {
		symtab_destroy(t);
		return NULL;
	}
	return t;
}

/* -- the running kernel ---------------------------------------------------------- */

struct fix_region {
	uint64_t va;
	uint8_t *bytes;
	size_t len;
};

struct fix_guest {
	struct fix_region region[FIX_REGIONS]; /* later regions hide earlier ones */
	unsigned int n, reads;
	struct kslide_cpu cpu;
};

static inline size_t fix_read(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	struct fix_guest *g = ctx;

	g->reads++;
	if (space != MEMORY_KERNEL)
		return 0;
	for (unsigned int i = g->n; i-- > 0;) {
		const struct fix_region *r = &g->region[i];

		if (va < r->va || va - r->va >= r->len)
			continue;
		if (len > r->len - (va - r->va))
			len = r->len - (va - r->va);
		memcpy(dst, r->bytes + (va - r->va), len);
		return len;
	}
	return 0;
}

/* Maps bytes, which are borrowed. */
static inline void fix_map(struct fix_guest *g, uint64_t va, uint8_t *bytes, size_t len)
{
	g->region[g->n++] = (struct fix_region){ va, bytes, len };
}

static inline void fix_gate(uint8_t *idt, unsigned int vector, uint64_t handler)
{
	uint8_t *gate = idt + 16 * vector;
	uint16_t low = (uint16_t)handler, mid = (uint16_t)(handler >> 16), cs = 0x10;
	uint32_t high = (uint32_t)(handler >> 32);

	memset(gate, 0, 16);
	memcpy(gate, &low, 2);
	memcpy(gate + 2, &cs, 2);
	gate[5] = 0x8e;
	memcpy(gate + 6, &mid, 2);
	memcpy(gate + 8, &high, 4);
}

/* Sets up everything that a running kernel has; image: FIX_LEN bytes from _text on. */
static inline void fix_boot(struct fix_guest *g, uint8_t *image, uint64_t slide)
{
	uint8_t *idt = image + (FIX_IDT - FIX_TEXT);

	fix_map(g, FIX_TEXT + slide, image, FIX_LEN);
	for (unsigned int v = 0; v < 20; v++)
		if (fix_names[v])
			fix_gate(idt, v, FIX_HANDLER(v) + slide);
	g->cpu = (struct kslide_cpu){ .lstar = FIX_SYSCALL + slide, .idt_base = FIX_IDT + slide };
}

#endif
