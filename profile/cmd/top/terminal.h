/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top_terminal: shows lines on the terminal of stdin and stdout, and reads keys from it, with
 * ncurses.
 *
 * Called by the main thread; a process has one terminal. All functions except top_terminal_open()
 * and top_terminal_close() need an open terminal.
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

/*
 * Switches the terminal to a screen of its own. Returns 0, -ENOTTY if stdin or stdout is not a
 * terminal, -EINVAL if the type $TERM is not known, or another -errno if ncurses cannot be loaded.
 */
int top_terminal_open(struct err *e);
/* Restores the terminal. Does nothing if it is not open. */
void top_terminal_close(void);

/* Returns the size of the terminal: one line and one column or more. */
struct top_size top_terminal_size(void);
/* Shows the lines of *s from the top, and `foot` on the last line of the terminal. */
void top_terminal_show(const struct top_screen *s, const char *foot);
/*
 * Shows a title, below it the lines of `text` from number `first` (0-based) on, and `foot` on the
 * last line.
 */
void top_terminal_show_text(const char *title, const char *text, unsigned int first,
			    const char *foot);
/*
 * Waits at most timeout_ms for a key. Returns a character (32 to 255), an enum top_key, or
 * TOP_KEY_NONE if no key was pressed, or one without a meaning.
 */
int top_terminal_key(int timeout_ms);

#endif
