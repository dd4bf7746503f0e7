/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/console/status_line.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_WIDTH 80u
/* ECMA-48: back to the line's start and erase the rest; one line up. */
#define ERASE "\r\033[K"
#define UP "\033[A"

void status_line_init(struct status_line *s, int fd)
{
	const char *term = getenv("TERM");

	*s = (struct status_line){ .fd = -1 };
	if (fd >= 0 && isatty(fd) && term && *term && strcmp(term, "dumb"))
		s->fd = fd;
}

static unsigned int width_of(int fd)
{
	struct winsize w;

	return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : DEFAULT_WIDTH;
}

void status_line_hide(struct status_line *s)
{
	unsigned int width, rows;

	if (!s->shown)
		return;
	/* If a window has become narrower the terminal has wrapped the line. */
	width = width_of(s->fd);
	rows = (s->shown + width - 1) / width;
	(void)file_write_all(s->fd, ERASE, sizeof(ERASE) - 1);
	for (unsigned int i = 1; i < rows && i < STATUS_LINE_MAX; i++)
		(void)file_write_all(s->fd, UP ERASE, sizeof(UP ERASE) - 1);
	s->shown = 0;
}

void status_line_show(struct status_line *s, const char *text)
{
	char line[STATUS_LINE_MAX + sizeof(ERASE)];
	unsigned int width;
	size_t len;

	if (s->fd < 0)
		return;
	/* After a full last column some terminals would move to the next line. */
	width = width_of(s->fd) - 1;
	len = strnlen(text, STATUS_LINE_MAX - 1);
	len = len < width ? len : width;
	if (!len)
		return;
	if (s->shown > width)
		status_line_hide(s);
	memcpy(line, "\r", 1);
	memcpy(line + 1, text, len);
	/* Overwrites the old text and then erases the rest, which does not flicker. */
	memcpy(line + 1 + len, "\033[K", 3);
	if (file_write_all(s->fd, line, len + 4) < 0) {
		s->fd = -1;
		return;
	}
	s->shown = (unsigned int)len;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

void status_line_text(char *out, const struct status_figures *now,
		      const struct status_figures *before)
{
	uint64_t k = now->kernel - before->kernel, u = now->user - before->user,
		 i = now->idle - before->idle, all = k + u + i;
	int n;

	if (!now->elapsed_ns) {
		snprintf(out, STATUS_LINE_MAX, "kvmprof: starting");
		return;
	}
	n = snprintf(out, STATUS_LINE_MAX, "kvmprof: %.1f s, %" PRIu64 " samples",
		     (double)now->elapsed_ns / 1e9, now->samples);
	if (!now->collecting)
		n += snprintf(out + n, STATUS_LINE_MAX - (size_t)n, ", not collecting");
	else if (all)
		n += snprintf(out + n, STATUS_LINE_MAX - (size_t)n,
			      ", user %.0f %% kernel %.0f %% idle %.0f %%", percent(u, all),
			      percent(k, all), percent(i, all));
	snprintf(out + n, STATUS_LINE_MAX - (size_t)n, ", lost %" PRIu64, now->lost);
}
