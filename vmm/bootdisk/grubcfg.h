/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * grubcfg: parses the menu in a grub.cfg: its entries, and the default one.
 *
 * The file is a script. It is executed as far as menus need it: assignments, `set`, `load_env`,
 * `if` with [ and test, `search`, `menuentry`, `submenu`, `blscfg`, `linux` and `initrd`. Other
 * commands do nothing and are false as conditions; loops and functions are skipped. Pure functions
 * over text, no I/O; any thread.
 *
 * Sources: GNU GRUB manual 2.06, "Writing full configuration files directly", "The list of
 * command-line and menu entry commands", "The GRUB environment block"; GRUB's get_entry_number()
 * and grub_menu_execute_entry() (grub-core/normal/menu.c); for `blscfg`, which Fedora's and Red
 * Hat's GRUB have, the Boot Loader Specification and Fedora's grub2 (blscfg.c).
 */
#ifndef KVMPROF_VMM_BOOTDISK_GRUBCFG_H
#define KVMPROF_VMM_BOOTDISK_GRUBCFG_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define GRUBCFG_MAX_FILE (1u << 20) /* bytes of grub.cfg, and of grubenv */
#define GRUBCFG_MAX_ENTRIES 256u
#define GRUBCFG_MAX_MENUS 64u /* submenus */
#define GRUBCFG_MAX_LOADER 24u
#define GRUBCFG_MAX_INITRDS 8u
#define GRUBCFG_MAX_VARIABLES 256u
#define GRUBCFG_MAX_WORDS 256u /* most words of one command */
#define GRUBCFG_MAX_WORD 8192u /* bytes of a word or of a variable's value */
#define GRUBCFG_MAX_DEPTH 16u  /* nested blocks */

enum grub_search { GRUB_SEARCH_NONE = 0, GRUB_SEARCH_UUID, GRUB_SEARCH_LABEL, GRUB_SEARCH_FILE };

/* One entry of the menu. Its strings are owned by it. */
struct grub_entry {
	char *title; /* titles of the submenus and of the entry, joined with '>' */
	/* `path` with ids instead of titles where there are any; NULL: no entry has an id. */
	char *id;
	char *index;	  /* the same with positions in the menus, such as "1>0" */
	char *linux_path; /* without a device in parentheses; NULL: it does not boot Linux */
	/*
	 * The command that starts something other than Linux ("multiboot2", "chainloader"), or "".
	 */
	char loader[GRUBCFG_MAX_LOADER];
	char *args; /* arguments of the kernel; NULL if linux_path is */
	char *initrd[GRUBCFG_MAX_INITRDS];
	unsigned int ninitrd;
	enum grub_search search; /* how GRUB finds the file system of these files */
	char *search_for;
	unsigned int menu;   /* number of its menu: 0 is the top, else the submenu's index + 1 */
	unsigned int place;  /* position in that menu, from 0 */
	char *name, *own_id; /* within that menu; own_id is "" if it has none */
	/* Index + 1 of the boot entry from which `blscfg` created it; 0: none. */
	unsigned int bls;
};

struct grub_submenu {
	char *name, *own_id; /* as in grub_entry; owned */
	unsigned int menu, place;
};

/* A boot entry of a file of its own (bls.h), for `blscfg`, in the order of the menu. */
struct grub_bls {
	const char *title, *id;
	const char *script; /* the commands of its block */
};

struct grubcfg_source {
	const char *name; /* for messages */
	/* Env: content of the file grubenv next to it; data NULL: none. */
	struct bytes text, env;
	const struct grub_bls *bls; /* borrowed during grubcfg_parse() */
	unsigned int nbls;
};

struct grubcfg {
	struct grub_entry *entry; /* in the menu's order; owned */
	unsigned int n;
	struct grub_submenu *submenu; /* owned */
	unsigned int nsubmenus;
	bool blscfg; /* whether the script contains this command */
	/* The variable that chose it: "next_entry", "saved_entry" or "default"; static. */
	const char *chosen_by;
	char *chosen; /* final value of `default`: a title, id or position; owned */
};

/*
 * Executes the script and fills *g. Returns 0; -EINVAL if it is not text or exceeds a limit above
 * (*e says which, with the line); or -ENOMEM. The caller frees *g with grubcfg_deinit().
 */
int grubcfg_parse(struct grubcfg *g, const struct grubcfg_source *source, struct err *e);
/* Frees everything in *g. */
void grubcfg_deinit(struct grubcfg *g);

/*
 * Returns the entry that GRUB starts by default, whatever it boots: the one that `default` names;
 * the first of a submenu if it names only that; else the first entry. Returns NULL if the menu, or
 * that submenu, is empty. The entry belongs to g.
 */
const struct grub_entry *grubcfg_default(const struct grubcfg *g);

#endif
