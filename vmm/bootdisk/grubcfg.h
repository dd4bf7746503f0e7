/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * grubcfg: the menu in a grub.cfg: which entries, and which of them is the default.
 *
 * The file is a script. It is run as far as menus need: assignments, `set`, `load_env`,
 * `if` with [ and test, `search`, `menuentry`, `submenu`, `blscfg`, `linux` and `initrd`. Other
 * commands do nothing and fail as conditions; loops and functions are skipped. Pure
 * functions over text, no I/O.
 *
 * Sources: GNU GRUB manual 2.06, "Writing full configuration files directly", "The list of
 * command-line and menu entry commands", "The GRUB environment block"; GRUB's get_entry_number() and
 * grub_menu_execute_entry() (grub-core/normal/menu.c); for `blscfg`, which Fedora's and Red Hat's GRUB have, the Boot
 * Loader Specification and Fedora's grub2 (blscfg.c).
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
#define GRUBCFG_MAX_WORDS 256u /* of one command */
#define GRUBCFG_MAX_WORD 8192u /* bytes of a word and of a value */
#define GRUBCFG_MAX_DEPTH 16u  /* blocks in blocks */

enum grub_search { GRUB_SEARCH_NONE = 0, GRUB_SEARCH_UUID, GRUB_SEARCH_LABEL, GRUB_SEARCH_FILE };

struct grub_entry {
	char *title;	  /* of submenus and the entry, joined with '>' */
	char *id;	  /* the same with their ids, where they have one; NULL: none has */
	char *index;	  /* the same with their places in their menus: "1>0" */
	char *linux_path; /* NULL: it boots no Linux; a device in parentheses is cut off */
	/* The command that starts something else than Linux: "multiboot2", "chainloader"; "": none. */
	char loader[GRUBCFG_MAX_LOADER];
	char *args; /* of the kernel; NULL with linux_path */
	char *initrd[GRUBCFG_MAX_INITRDS];
	unsigned int ninitrd;
	enum grub_search search; /* how it finds the file system of these files */
	char *search_for;
	unsigned int menu;   /* that it is in: 0 is the top, else the submenu's index + 1 */
	unsigned int place;  /* in that menu */
	char *name, *own_id; /* in that menu; own_id is "" without one */
	unsigned int bls;    /* index + 1 of the boot entry that `blscfg` made it of; 0: none */
};

struct grub_submenu {
	char *name, *own_id; /* as of an entry; owned */
	unsigned int menu, place;
};

/* A boot entry of a file of its own (bls.h), for `blscfg`; in the order of the menu. */
struct grub_bls {
	const char *title, *id;
	const char *script; /* the commands of its block */
};

struct grubcfg_source {
	const char *name;	    /* for messages */
	struct bytes text, env;	    /* env: the file grubenv beside it, data NULL: none */
	const struct grub_bls *bls; /* borrowed during the call */
	unsigned int nbls;
};

struct grubcfg {
	struct grub_entry *entry; /* in the menu's order; owned */
	unsigned int n;
	struct grub_submenu *submenu; /* owned */
	unsigned int nsubmenus;
	bool blscfg;	       /* the script has that command */
	const char *chosen_by; /* "next_entry", "saved_entry" or "default"; static */
	char *chosen;	       /* what `default` says: a title, id or place as above; owned */
};

/* Returns 0, -EINVAL: not text, or more than the limits above (e says which, with the line), or -ENOMEM. */
int grubcfg_parse(struct grubcfg *g, const struct grubcfg_source *source, struct err *e);
void grubcfg_deinit(struct grubcfg *g);

/*
 * Returns the entry that GRUB starts by itself, whatever it boots: the one that `default` names in the menu, a submenu's
 * first where it names no more, and the first where it names none. NULL: the menu, or that submenu, is empty.
 */
const struct grub_entry *grubcfg_default(const struct grubcfg *g);

#endif
