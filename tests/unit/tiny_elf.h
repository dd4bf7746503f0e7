/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tiny_elf: a kernel image of two kilobytes for tests, shaped like a Linux vmlinux: text and data
 * segments in the upper half, a per-CPU segment at 0, a build-id note, a banner, symbols.
 */
#ifndef KVMPROF_TESTS_UNIT_TINY_ELF_H
#define KVMPROF_TESTS_UNIT_TINY_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TINY_TEXT 0xffffffff81000000ull
#define TINY_RODATA (TINY_TEXT + 0x1000)
#define TINY_END (TINY_TEXT + 0x4000)
#define TINY_SIZE 4096
#define TINY_FUNCS 32u /* functions of 16 bytes each: f0, f1, ... */
#define TINY_BANNER "Linux version 6.1.0-tiny (test@test) #1 SMP"

/* Offsets in the file. */
enum {
	TINY_OFF_TEXT = 0x400,
	TINY_OFF_RODATA = 0x600,
	TINY_OFF_SYMS = 0x800,
	TINY_OFF_STRS = 0xc00,
	TINY_OFF_SHSTR = 0xd80,
	TINY_OFF_SHDRS = 0xe00
};

struct tiny_elf {
	bool no_sections, no_symbols, no_note, orc, no_frames;
	uint8_t id; /* first byte of the build id */
};

/* Makes text in which each function calls the next but one: push; mov; call; pop; ret. */
static inline void tiny_text(uint8_t *p, bool no_frames)
{
	for (unsigned int i = 0; i < TINY_FUNCS; i++) {
		uint32_t rel = 32 - 9;

		if (i + 2 >= TINY_FUNCS)
			rel = (uint32_t)-9 - 16 * i;
		memcpy(p + 16 * i, "\x55\x48\x89\xe5\xe8\0\0\0\0\x5d\xc3\x90\x90\x90\x90\x90", 16);
		if (no_frames)
			memcpy(p + 16 * i, "\x48\x83\xec\x08", 4);
		memcpy(p + 16 * i + 5, &rel, 4);
	}
}

static inline void tiny_build(const struct tiny_elf *t, uint8_t out[TINY_SIZE])
{
	static const char shstr[] =
		"\0.text\0.rodata\0.notes\0.symtab\0.strtab\0.shstrtab\0.orc_unwind";
	Elf64_Phdr ph[4] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = TINY_OFF_TEXT,
		  .p_vaddr = TINY_TEXT,
		  .p_paddr = 0x1000000,
		  .p_filesz = 512,
		  .p_memsz = 512 },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_offset = TINY_OFF_RODATA,
		  .p_vaddr = TINY_RODATA,
		  .p_paddr = 0x1001000,
		  .p_filesz = 256,
		  .p_memsz = 0x2f80 },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_offset = TINY_OFF_RODATA,
		  .p_vaddr = 0,
		  .p_paddr = 0x1008000,
		  .p_filesz = 256,
		  .p_memsz = 0x5000 },
		{ .p_type = PT_NOTE,
		  .p_offset = TINY_OFF_RODATA + 128,
		  .p_filesz = 36,
		  .p_memsz = 36 },
	};
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = 1,
		.e_entry = TINY_TEXT,
		.e_phoff = sizeof(eh),
		.e_phentsize = sizeof(ph[0]),
		.e_phnum = t->no_note ? 3 : 4,
		.e_ehsize = sizeof(eh),
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	Elf64_Shdr sh[8] = {
		{ 0 },
		{ .sh_name = 1,
		  .sh_type = SHT_PROGBITS,
		  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		  .sh_addr = TINY_TEXT,
		  .sh_offset = TINY_OFF_TEXT,
		  .sh_size = 512 },
		{ .sh_name = 7,
		  .sh_type = SHT_PROGBITS,
		  .sh_flags = SHF_ALLOC,
		  .sh_addr = TINY_RODATA,
		  .sh_offset = TINY_OFF_RODATA,
		  .sh_size = 256 },
		{ .sh_name = 46,
		  .sh_type = SHT_STRTAB,
		  .sh_offset = TINY_OFF_SHSTR,
		  .sh_size = sizeof(shstr) },
		{ .sh_name = 30,
		  .sh_type = SHT_STRTAB,
		  .sh_offset = TINY_OFF_STRS,
		  .sh_size = 0x180 },
		{ .sh_name = 22,
		  .sh_type = SHT_SYMTAB,
		  .sh_offset = TINY_OFF_SYMS,
		  .sh_link = 4,
		  .sh_entsize = sizeof(Elf64_Sym),
		  .sh_size = (TINY_FUNCS + 4) * sizeof(Elf64_Sym) },
		{ .sh_name = 48,
		  .sh_type = SHT_PROGBITS,
		  .sh_flags = SHF_ALLOC,
		  .sh_offset = TINY_OFF_RODATA,
		  .sh_size = 8 },
	};
	Elf64_Sym sym[TINY_FUNCS + 4] = { { 0 } };
	char *names = (char *)out + TINY_OFF_STRS;
	uint32_t at = 1, note[4] = { 4, 20, NT_GNU_BUILD_ID, 0x554e47 };

	sh[6].sh_name = t->orc ? 48 : 0;
	memset(out, 0, TINY_SIZE);
	tiny_text(out + TINY_OFF_TEXT, t->no_frames);
	memcpy(out + TINY_OFF_RODATA, TINY_BANNER "\n", sizeof(TINY_BANNER));
	memcpy(out + TINY_OFF_RODATA + 128, note, sizeof(note));
	out[TINY_OFF_RODATA + 144] = t->id;
	memcpy(out + TINY_OFF_SHSTR, shstr, sizeof(shstr));
	for (unsigned int i = 0; i < TINY_FUNCS; i++) {
		sym[i + 1] = (Elf64_Sym){ .st_name = at,
					  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					  .st_shndx = 1,
					  .st_value = TINY_TEXT + 16 * i,
					  .st_size = 11 };
		at += (uint32_t)sprintf(names + at, "f%u", i) + 1;
	}
	sym[TINY_FUNCS + 1] = (Elf64_Sym){ .st_name = at,
					   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
					   .st_shndx = 2,
					   .st_value = TINY_RODATA,
					   .st_size = 64 };
	at += (uint32_t)sprintf(names + at, "linux_banner") + 1;
	sym[TINY_FUNCS + 2] = (Elf64_Sym){ .st_name = at,
					   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE),
					   .st_shndx = 2,
					   .st_value = TINY_END };
	at += (uint32_t)sprintf(names + at, "_end") + 1;
	sym[TINY_FUNCS + 3] = (Elf64_Sym){ .st_name = at,
					   .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
					   .st_shndx = SHN_UNDEF };
	sprintf(names + at, "undefined");
	if (!t->no_symbols)
		memcpy(out + TINY_OFF_SYMS, sym, sizeof(sym));
	else
		sh[5] = (Elf64_Shdr){ 0 };
	if (!t->no_sections) {
		eh.e_shoff = TINY_OFF_SHDRS;
		eh.e_shnum = 7;
		eh.e_shstrndx = 3;
		memcpy(out + TINY_OFF_SHDRS, sh, 7 * sizeof(sh[0]));
	}
	memcpy(out, &eh, sizeof(eh));
	memcpy(out + sizeof(eh), ph, sizeof(ph));
}

/* Writes the same symbols as a System.map, and returns its length. delta moves every address. */
static inline size_t tiny_map(char *out, size_t size, uint64_t delta)
{
	size_t n = 0;

	for (unsigned int i = 0; i < TINY_FUNCS; i++)
		n += (size_t)snprintf(out + n, size - n, "%016llx T f%u\n",
				      (unsigned long long)(TINY_TEXT + delta + 16 * i), i);
	n += (size_t)snprintf(out + n, size - n,
			      "%016llx T _text\n%016llx R linux_banner\n%016llx B _end\n",
			      (unsigned long long)(TINY_TEXT + delta),
			      (unsigned long long)(TINY_RODATA + delta),
			      (unsigned long long)(TINY_END + delta));
	return n;
}

#endif
