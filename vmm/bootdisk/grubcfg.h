/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * grubcfg: the menu in a grub.cfg: which entries, and which of them is the default.
 *
 * The file is a script. It is run as far as menus need: assignments, `set`, `load_env`,
 * `if` with [ and test, `search`, `menuentry`, `submenu`, `linux` and `initrd`. Other
 * commands do nothing and fail as conditions; loops and functions are skipped. Pure
 * functions over text, no I/O.
 *
 * Source: GNU GRUB manual 2.06, "Writing full configuration files directly", "The list of
 * command-line and menu entry commands", "The GRUB environment block".
 */
#ifndef KVMPROF_VMM_BOOTDISK_GRUBCFG_H
#define KVMPROF_VMM_BOOTDISK_GRUBCFG_H

#include "base/bytes.h"
#include "base/err.h"

#include <stddef.h>

#define GRUBCFG_MAX_FILE (1u << 20) /* bytes of grub.cfg, and of grubenv */
#define GRUBCFG_MAX_ENTRIES 256u
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
	char *args;	  /* of the kernel; NULL with linux_path */
	char *initrd[GRUBCFG_MAX_INITRDS];
	unsigned int ninitrd;
	enum grub_search search; /* how it finds the file system of these files */
	char *search_for;
};

struct grubcfg {
	struct grub_entry *entry; /* in the menu's order; owned */
	unsigned int n;
	char *chosen; /* what `default` says: a title, id or place as above; owned */
};

/*
 * name is for messages. env: the file grubenv beside it, data NULL: none. -EINVAL: not text,
 * or more than the limits above (which one is said, with the line); -ENOMEM.
 */
int grubcfg_parse(struct grubcfg *g, const char *name, struct bytes text, struct bytes env,
		  struct err *e);
void grubcfg_deinit(struct grubcfg *g);

/*
 * The entry that the menu starts by itself: of what `default` names the first that boots
 * a Linux; where it names none, the first of all. NULL: no entry boots a Linux.
 */
const struct grub_entry *grubcfg_default(const struct grubcfg *g);

#endif
