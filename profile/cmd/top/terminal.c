/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/top/terminal.h"

#include <errno.h>
#include <limits.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ESCAPE 27

/* Colour pairs. */
enum { PAIR_KERNEL = 1, PAIR_USER, PAIR_IDLE, PAIR_ALERT };

static SCREEN *screen;

int top_terminal_open(struct err *e)
{
	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(e, ENOTTY, "this is no terminal: add --stdio");
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return err_set(e, EINVAL,
			       "nothing is known of terminals of the type '%s': add --stdio",
			       term ? term : "");
	set_term(screen);
	set_escdelay(25);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	curs_set(0);
	if (has_colors()) {
		start_color();
		use_default_colors();
		init_pair(PAIR_KERNEL, COLOR_YELLOW, -1);
		init_pair(PAIR_USER, COLOR_GREEN, -1);
		init_pair(PAIR_IDLE, COLOR_BLUE, -1);
		init_pair(PAIR_ALERT, COLOR_RED, -1);
	}
	return 0;
}

void top_terminal_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

struct top_size top_terminal_size(void)
{
	return (struct top_size){ .lines = LINES > 0 ? (unsigned int)LINES : 1,
				  .columns = COLS > 0 ? (unsigned int)COLS : 1 };
}

static chtype attributes(enum top_style style)
{
	switch (style) {
	case TOP_STYLE_HEAD:
		return A_BOLD;
	case TOP_STYLE_COLUMNS:
		return A_REVERSE;
	case TOP_STYLE_KERNEL:
		return (chtype)COLOR_PAIR(PAIR_KERNEL);
	case TOP_STYLE_USER:
		return (chtype)COLOR_PAIR(PAIR_USER);
	case TOP_STYLE_IDLE:
		return (chtype)COLOR_PAIR(PAIR_IDLE);
	case TOP_STYLE_ALERT:
		return A_BOLD | (chtype)COLOR_PAIR(PAIR_ALERT);
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
			mvaddch(y, (int)(c - line),
				(chtype)(unsigned char)*c | (chtype)COLOR_PAIR(pair));
	}
}

static void show_foot(const char *foot)
{
	move(LINES - 1, 0);
	clrtoeol();
	attrset(A_REVERSE);
	addnstr(foot, COLS > 1 ? COLS - 1 : 1);
	attrset(A_NORMAL);
	refresh();
}

void top_terminal_show(const struct top_screen *s, const char *foot)
{
	const char *line = (const char *)s->text.data;

	erase();
	for (unsigned int i = 0; i < s->nlines; i++) {
		size_t len = (size_t)(strchr(line, '\n') - line);
		enum top_style style = (enum top_style)s->style.data[i];

		attrset(attributes(style) | (i == s->selected_line ? A_REVERSE : 0));
		mvaddnstr((int)i, 0, line, (int)len);
		attrset(A_NORMAL);
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

	erase();
	attrset(A_REVERSE);
	mvaddnstr(0, 0, title, COLS);
	attrset(A_NORMAL);
	for (const char *line = text; *line; n++) {
		size_t len = strcspn(line, "\n");

		if (n >= first && (int)(n - first) + 2 < LINES)
			mvaddnstr((int)(n - first) + 1, 0, line,
				  len < (size_t)COLS ? (int)len : COLS);
		line += len + (line[len] == '\n');
	}
	show_foot(foot);
}

int top_terminal_key(int timeout_ms)
{
	int key;

	timeout(timeout_ms > 0 ? timeout_ms : 0);
	key = getch();
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
