/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userelf: reads the facts in the file of a guest's program or library.
 *
 * The file is an ELF64 for x86-64, ET_EXEC or ET_DYN. It is read through a callback (filepiece.h),
 * because it may be incomplete in the guest's page cache: a missing page affects only its own
 * content, and the reason is recorded. Addresses are the file's own virtual addresses, without a
 * load bias.
 *
 * Source of the format: System V ABI "Object Files" and its x86-64 supplement; glibc's elf.h for
 * GNU_HASH and IFUNC; "MiniDebugInfo" of gdb's manual for .gnu_debugdata. Which symbols count, and
 * that .symtab and .dynsym are combined, follows tools/perf/util/symbol-elf.c (Linux 6.1).
 *
 * The source is borrowed and must outlive the struct, which owns nothing. One thread at a time.
 */
#ifndef KVMPROF_SYMBOLIZER_PROGRAM_USERELF_H
#define KVMPROF_SYMBOLIZER_PROGRAM_USERELF_H

#include "base/err.h"
#include "symbolizer/program/filepiece.h"
#include "symbolizer/core/symtab.h"

#define USERELF_MAX_SEGMENTS 64u
#define USERELF_MAX_PHDRS 256u
#define USERELF_BUILD_ID_MAX 20u
/* Bytes of one table in the file: symbols, their names, relocations, a PLT. */
#define USERELF_MAX_TABLE (256ull << 20)
/* Bytes of an unpacked .gnu_debugdata. */
#define USERELF_MAX_DEBUGDATA (64u << 20)

/* A PT_LOAD. The bytes that it covers need not be in the file: debug files have none of them. */
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
	uint64_t shoff;			   /* offset; 0: no section headers */
	uint32_t shnum, shstrndx;	   /* as in the header; 0 and SHN_XINDEX: see section 0 */
	uint64_t dynamic_off, dynamic_len; /* PT_DYNAMIC in the file; 0: none */
	uint64_t frames_va, frames_len;	   /* PT_GNU_EH_FRAME; 0: none */
	uint64_t sframe_va, sframe_len;	   /* PT_GNU_SFRAME; 0: none */
	struct userelf_segment seg[USERELF_MAX_SEGMENTS];
	unsigned int nseg;
	uint8_t build_id[USERELF_BUILD_ID_MAX];
	unsigned int build_id_len; /* bytes; 0: none, or not in memory */
	bool notes_missing;	   /* a PT_NOTE is not in memory: there may be a build id */
};

/*
 * Reads the headers. name and the source are borrowed. Returns 0; -EINVAL if it is not such a file
 * (the message says what it is, for example 32 bit); -ENODATA if its first page or the program
 * headers are not in memory; or -ENOMEM; with *e set.
 */
int userelf_open(struct userelf *u, const char *name, const struct file_source *src, struct err *e);

/*
 * Stores the address of a file offset, in an executable segment if possible. Returns false if no
 * segment covers it.
 */
bool userelf_va_of(const struct userelf *u, uint64_t file_off, uint64_t *va);
/* Stores the file offset of an address. Returns false if the file has no bytes for it. */
bool userelf_off_of(const struct userelf *u, uint64_t va, uint64_t *file_off);
/* Returns whether this address is in an executable segment. */
bool userelf_is_text(const struct userelf *u, uint64_t va);

/* The state of a part of the file. */
enum userelf_part {
	USERELF_ABSENT = 0, /* the file has none */
	USERELF_READ,
	USERELF_HOLES, /* pages of it are not in memory */
	USERELF_BAD,   /* damaged, or beyond a limit */
};

/* The origin of the names, and what is missing. */
struct userelf_names {
	uint8_t symtab, dynsym, plt, debugdata; /* enum userelf_part */
	bool no_sections;			/* .dynsym was found through PT_DYNAMIC */
	uint32_t from_symtab, from_dynsym, from_plt, from_debugdata;
	uint32_t from_go; /* included in from_symtab: names of a stripped Go program's own table */
	/* Entries of .dynsym or the PLT that are not in memory, or whose name is not. */
	uint32_t lost;
	char why[160]; /* the first part that is missing, or "" */
};

/*
 * Reads the names of functions: .symtab (only if all of it is in memory), or else .gnu_debugdata
 * or .gopclntab; .dynsym as far as it is in memory; and PLT entries, named name@plt as in objdump.
 * Types are as in nm: t, T, W. info may be NULL. Returns 0, -ENOENT if there are no names (the
 * message has the reason), or -ENOMEM. The caller frees *out, a frozen table, with
 * symtab_destroy().
 */
int userelf_symbols(const struct userelf *u, struct symtab **out, struct userelf_names *info,
		    struct err *e);

/*
 * Finds the address of a variable among the dynamic symbols. Returns 0; -ENOENT if there is none
 * of that name; -ENODATA if not all of them are in memory, or they are damaged.
 */
int userelf_object(const struct userelf *u, const char *name, uint64_t *va);

/* Returns "read", "absent", ... for messages and JSON; static text. */
const char *userelf_part_name(enum userelf_part p);

/*
 * Files of symbols alone (elfsynth.h, objcopy --only-keep-debug) have segments and sections of the
 * right sizes without bytes; they are recognised by sections of type SHT_NOBITS. Source of the
 * format: System V ABI, "Sections".
 */
/*
 * Returns how many bytes of the file's code are available at address va, at most len, and stores a
 * pointer to them in *out. Returns 0 if there are none, or if the file has no bytes of its code.
 * data, of data_len bytes, is the file with which u was opened; *out points into it.
 */
size_t userelf_text_at(const struct userelf *u, const uint8_t *data, size_t data_len, uint64_t va,
		       size_t len, const uint8_t **out);

#endif
