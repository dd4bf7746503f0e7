/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top_view: draws the live view as lines of text, for a terminal of any size or for none.
 *
 * Control characters in texts of the guest become '?'. No I/O; called by the main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_TOP_VIEW_H
#define KVMPROF_PROFILE_CMD_TOP_VIEW_H

#include "base/buf.h"
#include "profile/cmd/top/model.h"

#include <stdbool.h>
#include <stdint.h>

#define TOP_FILTER 64u /* bytes, with the NUL */
#define TOP_MAX_CALLERS 24u

enum top_style {
	TOP_STYLE_PLAIN,
	TOP_STYLE_HEAD,	   /* facts about the run */
	TOP_STYLE_BAR,	   /* a vCPU: k, u and . between brackets are its modes */
	TOP_STYLE_COLUMNS, /* names of columns */
	TOP_STYLE_KERNEL,  /* rows, by the mode of their function */
	TOP_STYLE_USER,
	TOP_STYLE_IDLE,
	TOP_STYLE_CALLER,
	TOP_STYLE_ALERT,
};

/* The facts about the run. */
struct top_status {
	const char *title; /* "bzImage, pid 4711" */
	const char *event; /* "wall" */
	double elapsed_s;  /* time of the guest, in seconds */
	double rate_hz;	   /* requested samples per second and vCPU; 0 unknown */
	double seen_hz;	   /* samples per second in the last interval, of all vCPUs */
	uint64_t samples, lost, overruns;
	double stop_us; /* median stopped time of a sample; 0 unknown */
	bool collecting;
	const char *end; /* why the run has ended; NULL: it runs */
};

/* The user's settings of the view. */
struct top_choice {
	enum top_order order;
	bool no_idle, frozen;
	char filter[TOP_FILTER];
	bool typing;	 /* the filter is being typed */
	size_t selected; /* row */
	bool expanded;	 /* the selected function's callers are shown */
};

struct top_screen {
	struct buf text;  /* lines, each ends with '\n' */
	struct buf style; /* a byte for each line: enum top_style */
	unsigned int nlines;
	unsigned int row_line;	    /* the first line that is a row */
	unsigned int selected_line; /* line of the selected row; UINT_MAX: none */
	/* The selected row; its name is NULL if none is. Texts belong to the model. */
	struct top_row selected;
	size_t nrows; /* number of rows, shown or not */
};

/* Initialises an empty screen; the caller frees its contents with top_screen_deinit(). */
void top_screen_init(struct top_screen *s);
void top_screen_deinit(struct top_screen *s);

/* The space available; 0: no limit. */
struct top_size {
	unsigned int lines;
	unsigned int columns; /* bytes of a line */
};

/*
 * Replaces the lines of *s by the view. Limits choice->selected to the rows. Returns 0 or -ENOMEM.
 */
int top_view_draw(struct top_screen *s, struct top_model *m, const struct top_status *status,
		  struct top_choice *choice, struct top_size room, struct err *e);

struct top_code;

/*
 * Appends a function's instructions with their share of its time, in lines as annotate prints them;
 * text ends with a NUL. `code` is used during the call only. Returns 0, -ENODATA without code, or
 * another -errno.
 */
int top_code_draw(struct buf *text, const struct top_code *code, struct err *e);

/* Returns "kernel", "user" or "idle", a constant. */
const char *top_mode_name(enum top_mode mode);

#endif
