/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annotate_arrows: arrows for the jumps within a function. The rules of annotate.h for threads
 * apply.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_ANNOTATE_ARROWS_H
#define KVMPROF_PROFILE_ANALYSE_ANNOTATE_ARROWS_H

#include "profile/analyse/annotate/annotate.h"

/*
 * Sets arrow, narrows, lanes, grid and undrawn, which annotate_destroy() frees. Returns 0 or
 * -ENOMEM.
 */
int annotate_arrows(struct annotate *a, struct err *e);
/*
 * Draws the arrows at a row: two characters for each lane and one for the arrow's head. text must
 * have room for 2 * lanes + 2 bytes.
 */
void annotate_draw(const struct annotate *a, size_t row, char *text);

#endif
