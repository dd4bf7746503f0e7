/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_module: reads the kernel modules of a running guest from its memory.
 *
 * The list starts at the symbol `modules`; the kernel's types describe the rest:
 *
 *	text		core_layout and init_layout {base, text_size}; since 6.4
 *			("module: replace module_layout with module_memory")
 *			mem[MOD_TEXT] and mem[MOD_INIT_TEXT] {base, size}
 *	symbols		kallsyms -> struct mod_kallsyms: ELF symbols at run-time
 *			addresses, and since 5.2 a letter for each as in nm (typetab);
 *			before, the letter was in st_size (5.0) or st_info
 *	ORC		arch.{num_orcs, orc_unwind_ip, orc_unwind}, as in orc.h, but
 *			for core and init text together
 *	build id	build_id (CONFIG_STACKTRACE_BUILD_ID), else the note that
 *			/sys/module/NAME/notes shows
 *
 * Init text exists only while a module is being loaded. Addresses are runtime guest-virtual ones.
 * Pure functions apart from reading memory; any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MODULE_H
#define KVMPROF_SYMBOLIZER_LINUX_MODULE_H

#include "base/err.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/unwind/orc.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/types/types.h"
#include "symbolizer/unwind/unwind.h"

#define LINUX_MODULE_MAX 4096u
#define LINUX_MODULE_MAX_TEXT (64u << 20)
#define LINUX_MODULE_MAX_SYMBOLS (256u << 10)
#define LINUX_MODULE_MAX_STRINGS (32u << 20)
#define LINUX_MODULE_MAX_ORCS (1u << 20)
#define LINUX_MODULE_NAME 64u /* MODULE_NAME_LEN is 56 */

#define LINUX_MODULE_NONE UINT32_MAX

enum linux_module_state {
	LINUX_MODULE_LIVE = 0,
	LINUX_MODULE_COMING,
	LINUX_MODULE_GOING,
	LINUX_MODULE_UNFORMED, /* other members are not valid yet; not listed */
};

/* Offsets in struct module, except in the last two groups. Some may be LINUX_MODULE_NONE. */
struct linux_module_layout {
	uint64_t modules;		   /* address of the list's head */
	uint64_t kernel_start, kernel_end; /* the kernel's own image, where no module is */
	uint32_t list, name, name_size;	   /* always known */
	uint32_t text_base, text_size;	   /* always known */
	uint32_t init_base, init_size;	   /* always known */
	uint32_t state;			   /* always known */
	uint32_t kallsyms;		   /* pointer to struct mod_kallsyms */
	uint32_t build_id, build_id_size;  /* bytes */
	uint32_t num_orcs, orc_ip, orc;	   /* u32, pointers */
	uint32_t notes_attrs;		   /* pointer to struct module_notes_attrs */
	/*
	 * The form of the entries in the kernel's own ORC table; the caller sets it if it is
	 * known, because a module's few entries are not always conclusive.
	 */
	struct orc_format orc_format;
	uint32_t symtab, num_symtab, strtab, typetab; /* in struct mod_kallsyms */
	uint32_t notes, attrs;			      /* in struct module_notes_attrs */
	/* Stride of the array, and offsets in struct bin_attribute. */
	uint32_t attr_stride, attr_size, attr_data;
};

/*
 * Finds the offsets. types may be NULL. Returns 0, or -ENOENT with the reason: the kernel has no
 * modules (no symbol `modules`), or its types are missing or do not describe struct module. In the
 * second case out->modules and the kernel's bounds are set for linux_module_find().
 */
int linux_module_layout(struct linux_module_layout *out, const struct types *types,
			const struct symtab *symbols, struct err *e);

struct linux_module_range {
	uint64_t start, end; /* both 0: none */
};

struct linux_module {
	char name[LINUX_MODULE_NAME]; /* printable */
	uint64_t module;	      /* address of its struct module */
	enum linux_module_state state;
	struct linux_module_range text, init_text;
	uint8_t build_id[KIMAGE_BUILD_ID_MAX];
	unsigned int build_id_len; /* 0: none */
	/* Set by linux_module_load(); owned. NULL: missing or implausible. */
	struct symtab *symbols; /* code symbols of text and init_text, runtime addresses */
	struct orc *orc, *init_orc;
};

struct linux_module_list {
	struct linux_module *module; /* the newest first, as in the kernel; owned */
	size_t n;
	size_t skipped; /* modules with an implausible name, state or address */
	bool cut; /* the list did not return to its head: it changed, is damaged, or too long */
};

/*
 * Reads names, states, addresses and build ids of all modules. Returns 0, -ENOENT if the list
 * cannot be read at all, or -ENOMEM, with *e set. The caller frees *out with
 * linux_module_list_deinit().
 */
int linux_module_list(const struct linux_module_layout *l, const struct memory *m,
		      struct linux_module_list *out, struct err *e);
void linux_module_list_deinit(struct linux_module_list *list);

/*
 * Computes a number that changes whenever a module is added, removed or changes its state; cheap
 * enough for frequent calls. Returns 0, or -ENOENT if the list cannot be followed at the moment.
 */
int linux_module_hash(const struct linux_module_layout *l, const struct memory *m, uint64_t *out);

/*
 * Writes the code of all listed modules in the unwinder's form, sorted, to out; borrowed from the
 * list. Returns how many regions were written, at most cap (2 * n are enough).
 */
size_t linux_module_regions(const struct linux_module_list *list, struct unwind_region *out,
			    size_t cap);

#endif
