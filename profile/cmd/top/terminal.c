/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/top/terminal.h"

#include "base/cleanup.h"
#include "base/library.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Functions are to be functions, whose addresses are looked up. */
#define NCURSES_NOMACROS 1
#include <ncurses.h>

/* The functions and variables of ncurses, and of libtinfo, which it needs itself, that are used. */
/* clang-format off */
#define FUNCTIONS(X) \
	X(COLOR_PAIR) \
	X(COLS) \
	X(LINES) \
	X(addnstr) \
	X(attrset) \
	X(cbreak) \
	X(clrtoeol) \
	X(curs_set) \
	X(delscreen) \
	X(endwin) \
	X(erase) \
	X(getch) \
	X(has_colors) \
	X(init_pair) \
	X(keypad) \
	X(move) \
	X(mvaddch) \
	X(mvaddnstr) \
	X(newterm) \
	X(noecho) \
	X(nonl) \
	X(refresh) \
	X(set_escdelay) \
	X(set_term) \
	X(start_color) \
	X(stdscr) \
	X(timeout) \
	X(use_default_colors)
/* clang-format on */

static const char *const names[] = { FUNCTIONS(LIBRARY_NAME) };
static struct {
	FUNCTIONS(LIBRARY_MEMBER)
} nc; /* the main thread's alone */

#define ESCAPE 27

/* Colour pairs. */
enum { PAIR_KERNEL = 1, PAIR_USER, PAIR_IDLE, PAIR_ALERT };

static SCREEN *screen;

static int terminal_load(struct err *e)
{
	const struct library want = {
		.soname = "libncursesw.so.6",
		.what = "nothing can be shown on a terminal",
		.hint = "install libncursesw6, or add --stdio",
		.names = names,
		.nnames = ARRAY_SIZE(names),
	};

	return library_load(&want, (void **)&nc, e);
}

int top_terminal_open(struct err *e)
{
	const char *term = getenv("TERM");
	int ret;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(e, ENOTTY,
			       "standard input or output is not a terminal: add --stdio");
	ret = terminal_load(e);
	if (ret)
		return ret;
	screen = nc.newterm(NULL, stdout, stdin);
	if (!screen)
		return err_set(e, EINVAL, "the terminal type '%s' is not known: add --stdio",
			       term ? term : "");
	nc.set_term(screen);
	nc.set_escdelay(25);
	nc.cbreak();
	nc.noecho();
	nc.nonl();
	nc.keypad(*nc.stdscr, TRUE);
	nc.curs_set(0);
	if (nc.has_colors()) {
		nc.start_color();
		nc.use_default_colors();
		nc.init_pair(PAIR_KERNEL, COLOR_YELLOW, -1);
		nc.init_pair(PAIR_USER, COLOR_GREEN, -1);
		nc.init_pair(PAIR_IDLE, COLOR_BLUE, -1);
		nc.init_pair(PAIR_ALERT, COLOR_RED, -1);
	}
	return 0;
}

void top_terminal_close(void)
{
	if (!screen)
		return;
	nc.endwin();
	nc.delscreen(screen);
	screen = NULL;
}

struct top_size top_terminal_size(void)
{
	return (struct top_size){ .lines = *nc.LINES > 0 ? (unsigned int)*nc.LINES : 1,
				  .columns = *nc.COLS > 0 ? (unsigned int)*nc.COLS : 1 };
}

static chtype attributes(enum top_style style)
{
	switch (style) {
	case TOP_STYLE_HEAD:
		return A_BOLD;
	case TOP_STYLE_COLUMNS:
		return A_REVERSE;
	case TOP_STYLE_KERNEL:
		return (chtype)nc.COLOR_PAIR(PAIR_KERNEL);
	case TOP_STYLE_USER:
		return (chtype)nc.COLOR_PAIR(PAIR_USER);
	case TOP_STYLE_IDLE:
		return (chtype)nc.COLOR_PAIR(PAIR_IDLE);
	case TOP_STYLE_ALERT:
		return A_BOLD | (chtype)nc.COLOR_PAIR(PAIR_ALERT);
	default:
		return A_NORMAL;
	}
}

/* The part of a line between its brackets, each character in its mode's colour. */
static void paint_bar(int y, const char *line, size_t len)
{
	const char *open = memchr(line, '[', len), *close = memchr(line, ']', len);

	for (const char *c = open; c && c < close; c++) {
		int pair = *c == 'k' ? PAIR_KERNEL : *c == 'u' ? PAIR_USER : PAIR_IDLE;

		if (c > open)
			nc.mvaddch(y, (int)(c - line),
				   (chtype)(unsigned char)*c | (chtype)nc.COLOR_PAIR(pair));
	}
}

static void show_foot(const char *foot)
{
	nc.move(*nc.LINES - 1, 0);
	nc.clrtoeol();
	nc.attrset(A_REVERSE);
	nc.addnstr(foot, *nc.COLS > 1 ? *nc.COLS - 1 : 1);
	nc.attrset(A_NORMAL);
	nc.refresh();
}

void top_terminal_show(const struct top_screen *s, const char *foot)
{
	const char *line = (const char *)s->text.data;

	nc.erase();
	for (unsigned int i = 0; i < s->nlines; i++) {
		size_t len = (size_t)(strchr(line, '\n') - line);
		enum top_style style = (enum top_style)s->style.data[i];

		nc.attrset(attributes(style) | (i == s->selected_line ? A_REVERSE : 0));
		nc.mvaddnstr((int)i, 0, line, (int)len);
		nc.attrset(A_NORMAL);
		if (style == TOP_STYLE_BAR)
			paint_bar((int)i, line, len);
		line += len + 1;
	}
	show_foot(foot);
}

void top_terminal_show_text(const char *title, const char *text, unsigned int first,
			    const char *foot)
{
	unsigned int n = 0;

	nc.erase();
	nc.attrset(A_REVERSE);
	nc.mvaddnstr(0, 0, title, *nc.COLS);
	nc.attrset(A_NORMAL);
	for (const char *line = text; *line; n++) {
		size_t len = strcspn(line, "\n");

		if (n >= first && (int)(n - first) + 2 < *nc.LINES)
			nc.mvaddnstr((int)(n - first) + 1, 0, line,
				     len < (size_t)*nc.COLS ? (int)len : *nc.COLS);
		line += len + (line[len] == '\n');
	}
	show_foot(foot);
}

int top_terminal_key(int timeout_ms)
{
	int key;

	nc.timeout(timeout_ms > 0 ? timeout_ms : 0);
	key = nc.getch();
	switch (key) {
	case ERR:
		return TOP_KEY_NONE;
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TOP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TOP_KEY_HOME;
	case KEY_END:
		return TOP_KEY_END;
	case KEY_RESIZE:
		return TOP_KEY_RESIZE;
	case KEY_ENTER:
	case '\r':
	case '\n':
		return TOP_KEY_ENTER;
	case ESCAPE:
		return TOP_KEY_ESCAPE;
	case KEY_BACKSPACE:
	case 127:
	case '\b':
		return TOP_KEY_BACKSPACE;
	default:
		return key >= ' ' && key < 256 ? key : TOP_KEY_NONE;
	}
}
