/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top_terminal: lines on a terminal, and keys from it. By ncurses.
 *
 * One at a time in a process, on one thread.
 */
#ifndef KVMPROF_PROFILE_CMD_TOP_TERMINAL_H
#define KVMPROF_PROFILE_CMD_TOP_TERMINAL_H

#include "base/err.h"
#include "profile/cmd/top/view.h"

/* Keys beyond characters. */
enum top_key {
	TOP_KEY_NONE = -1,
	TOP_KEY_UP = 0x1000,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_ESCAPE,
	TOP_KEY_BACKSPACE,
	TOP_KEY_RESIZE,
};

/* Takes the terminal over. -ENOTTY, or -EINVAL when TERM is not known. */
int top_terminal_open(struct err *e);
/* Gives it back as it was. */
void top_terminal_close(void);

/* At least one line and one column. */
struct top_size top_terminal_size(void);
/* The last line of the terminal is `foot`. */
void top_terminal_show(const struct top_screen *s, const char *foot);
/* Lines of text from the first-th on, below a title. */
void top_terminal_show_text(const char *title, const char *text, unsigned int first,
			    const char *foot);
/* A character, an enum top_key, or TOP_KEY_NONE when none came in time. */
int top_terminal_key(int timeout_ms);

#endif
