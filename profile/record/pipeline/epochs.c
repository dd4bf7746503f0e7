/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/pipeline/epochs.h"

#include <stdlib.h>

void epochs_init(struct epochs *x)
{
	*x = (struct epochs){ 0 };
	sample_queue_init(&x->doubt);
}

void epochs_deinit(struct epochs *x)
{
	sample_queue_deinit(&x->doubt);
	while (x->n > 0) {
		x->n--;
		guest_destroy(x->before[x->n]);
		if (x->target[x->n])
			target_close(x->target[x->n]);
		free(x->target[x->n]);
	}
}

bool epochs_have_room(const struct epochs *x)
{
	return x->n + 1 < EPOCHS_MAX;
}

int epochs_next(struct epochs *x, struct guest **g, struct err *e)
{
	struct target *target = calloc(1, sizeof(*target));
	struct guest *next = NULL;
	int ret = target ? guest_finish(*g, e) : err_nomem(e);

	if (!ret)
		ret = guest_create_later(&next, *g, target, e);
	if (ret) {
		if (target)
			target_close(target);
		free(target);
		return ret;
	}
	x->before[x->n] = *g;
	x->target[x->n++] = target;
	*g = next;
	return 0;
}

bool epochs_hold(struct epochs *x, const struct sample *s)
{
	if (x->doubt_ns && s->time_ns > x->doubt_ns && s->time_ns - x->doubt_ns > EPOCHS_WAIT_NS)
		return false;
	if (!sample_queue_add(&x->doubt, s))
		return false;
	if (!x->doubt_ns)
		x->doubt_ns = s->time_ns;
	return true;
}

void epochs_release(struct epochs *x, void (*take)(void *ctx, const struct sample *s), void *ctx)
{
	x->doubt_ns = 0;
	sample_queue_release(&x->doubt, take, ctx);
}
