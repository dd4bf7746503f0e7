/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_arrows: the arrows of jumps within a function.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_ARROWS_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_ARROWS_H

#include "profile/analyse/annotate/annotate.h"

/* Fills in arrow, narrows, lanes, grid and undrawn. */
int annotate_arrows(struct annotate *a, struct err *e);
/* Two characters for each lane and one for the arrow's head; text has room for 2 * lanes + 2. */
void annotate_draw(const struct annotate *a, size_t row, char *text);

#endif
