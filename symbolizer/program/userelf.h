/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userelf: what the file of a guest's program or library says about itself.
 *
 * ELF64 for x86-64, ET_EXEC and ET_DYN. The file is read through a callback
 * (filepiece.h), as it may lie in pieces in the guest's page cache: what is not
 * there costs only what is written in it, and the reason is kept. Addresses are
 * the file's own virtual addresses, without a load bias.
 *
 * Source of the format: System V ABI "Object Files" and its x86-64 supplement;
 * glibc's elf.h for GNU_HASH and IFUNC; "MiniDebugInfo" of gdb's manual for
 * .gnu_debugdata. Which symbols count, and that .symtab and .dynsym are taken
 * together, as in tools/perf/util/symbol-elf.c (Linux 6.1).
 *
 * The source is borrowed and must outlive the struct. One thread at a time.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_USERELF_H
#define KVMPROF_SYMBOLIZER_PROGRAM_USERELF_H

#include "base/err.h"
#include "symbolizer/program/filepiece.h"
#include "symbolizer/core/symtab.h"

#define USERELF_MAX_SEGMENTS 64u
#define USERELF_MAX_PHDRS 256u
#define USERELF_BUILD_ID_MAX 20u
/* One table of the file: symbols, their names, relocations, a PLT. */
#define USERELF_MAX_TABLE (256ull << 20)
/* Unpacked .gnu_debugdata. */
#define USERELF_MAX_DEBUGDATA (64u << 20)

/* A PT_LOAD. What it covers in the file need not be in the file: debug files have none of it. */
struct userelf_segment {
	uint64_t va, file_off, file_len, mem_len;
	uint64_t align;
	uint32_t flags; /* PF_R | PF_W | PF_X */
};

struct userelf {
	const char *name; /* for messages; borrowed */
	struct file_source src;
	uint16_t type; /* ET_EXEC, ET_DYN */
	uint64_t entry;
	uint64_t shoff;			   /* 0: no section headers */
	uint32_t shnum, shstrndx;	   /* as in the header; 0 and SHN_XINDEX: see section 0 */
	uint64_t dynamic_off, dynamic_len; /* PT_DYNAMIC in the file; 0: none */
	uint64_t frames_va, frames_len;	   /* PT_GNU_EH_FRAME; 0: none */
	uint64_t sframe_va, sframe_len;	   /* PT_GNU_SFRAME; 0: none */
	struct userelf_segment seg[USERELF_MAX_SEGMENTS];
	unsigned int nseg;
	uint8_t build_id[USERELF_BUILD_ID_MAX];
	unsigned int build_id_len; /* 0: none, or not in memory */
	bool notes_missing;	   /* a PT_NOTE was not in memory: there may be a build id */
};

/*
 * -EINVAL: not such a file (32 bit and other machines too; the message says what
 * it is). -ENODATA: its first page or the program headers are not in memory.
 */
int userelf_open(struct userelf *u, const char *name, const struct file_source *src, struct err *e);

/* Address of a file offset, in an executable segment if there is the choice. */
bool userelf_va_of(const struct userelf *u, uint64_t file_off, uint64_t *va);
/* File offset of an address that has bytes in the file. */
bool userelf_off_of(const struct userelf *u, uint64_t va, uint64_t *file_off);
/* Is this address in an executable segment? */
bool userelf_is_text(const struct userelf *u, uint64_t va);

enum userelf_part {
	USERELF_ABSENT = 0, /* the file has none */
	USERELF_READ,
	USERELF_HOLES, /* pages of it are not in memory */
	USERELF_BAD,   /* damaged, or over a cap */
};

/* Where names came from, and what is missing. */
struct userelf_names {
	uint8_t symtab, dynsym, plt, debugdata; /* enum userelf_part */
	bool no_sections;			/* .dynsym was found through PT_DYNAMIC */
	uint32_t from_symtab, from_dynsym, from_plt, from_debugdata;
	uint32_t from_go; /* of from_symtab: a stripped Go program's own */
	uint32_t
		lost; /* entries of .dynsym or the PLT that are not in memory, or have no name there */
	char why[160]; /* the first thing that is missing, or "" */
};

/*
 * Functions: .symtab (only when all of it is in memory), or .gnu_debugdata or .gopclntab
 * where there is none; .dynsym as far as it is in memory; calls through the PLT, called
 * name@plt as objdump does. Types as in nm: t, T, W. *out is frozen and the
 * caller's; info may be NULL. -ENOENT: no names at all, and e says why; -ENOMEM.
 */
int userelf_symbols(const struct userelf *u, struct symtab **out, struct userelf_names *info,
		    struct err *e);

/*
 * The address of a variable among the dynamic symbols. -ENOENT: it has none of that name;
 * -ENODATA: not all of them are in memory, or they are damaged.
 */
int userelf_object(const struct userelf *u, const char *name, uint64_t *va);

/* "read", "absent", ...: for messages and JSON. */
const char *userelf_part_name(enum userelf_part p);

/*
 * Files of symbols alone (elfsynth.h, objcopy --only-keep-debug) have segments and
 * sections of the right sizes without bytes; sections of type SHT_NOBITS tell.
 * Source of the format: System V ABI, "Sections".
 */
/*
 * Bytes at the file's address va, at most len: how many there are from *out on.
 * 0: none, or the file has no bytes of its code. data is what u was opened on.
 */
size_t userelf_text_at(const struct userelf *u, const uint8_t *data, size_t data_len, uint64_t va,
		       size_t len, const uint8_t **out);

#endif
