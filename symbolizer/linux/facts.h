/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * facts: where a Linux kernel stores its tasks, mappings and files, according to its own type
 * information.
 *
 * Each part may be missing, with a reason; a profile then shows less. One thread fills the struct;
 * afterwards it is constant. It owns nothing and does not refer to the image.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_FACTS_H
#define KVMPROF_SYMBOLIZER_LINUX_FACTS_H

#include "symbolizer/core/kimage.h"
#include "symbolizer/linux/dyncode.h"
#include "symbolizer/linux/file.h"
#include "symbolizer/linux/graph.h"
#include "symbolizer/linux/hang.h"
#include "symbolizer/linux/mm.h"
#include "symbolizer/linux/module.h"
#include "symbolizer/linux/printk.h"
#include "symbolizer/linux/sched.h"
#include "symbolizer/linux/task.h"
#include "symbolizer/linux/tree.h"

struct target_linux {
	bool have_current;	 /* task.current, per_cpu and init_task are known */
	bool have_task;		 /* the members of a task are known, too */
	bool have_mm, have_file; /* mappings of processes; pages of files */
	bool have_tree;		 /* files by their paths */
	bool have_modules;
	bool have_dyncode; /* code generated at run time */
	bool have_graph;   /* return addresses stored by the function graph tracer */
	struct linux_task_layout task;
	uint64_t irq_stack_ptr;		 /* by types, per-CPU if task.current is; 0: unknown */
	struct linux_sched_layout sched; /* as far as known; source 0: no members */
	struct linux_mm_layout mm;
	struct linux_file_layout file;
	struct linux_tree_layout tree;
	struct linux_module_layout modules;
	struct linux_dyncode_layout dyncode;
	struct linux_graph_layout graph;
	struct linux_rethook_layout rethook; /* len 0: unknown */
	/* Set by linux_target_explain(); nothing of them is known before. */
	struct linux_hang_layout hang;
	bool have_printk;
	struct linux_printk_layout printk;
	struct err types_note; /* why there are no types; code 0: there are */
	struct err task_note, mm_note, file_note, tree_note, module_note, printk_note;
};

/*
 * Fills in every part that types and symbols allow; cannot fail. types may be NULL (types_note
 * then has the reason). All addresses in the result are of the symbols' kind, linked or runtime
 * ones; symbols NULL: nothing is found.
 */
void linux_target_init(struct target_linux *l, const struct types *types,
		       const struct symtab *symbols);
/*
 * Adds what explains a guest that stands still, after linux_target_init() with the same types and
 * symbols: `hang`, `printk` and printk_note. It takes as long as that function, so a run does without.
 */
void linux_target_explain(struct target_linux *l, const struct types *types,
			  const struct symtab *symbols);

#endif
