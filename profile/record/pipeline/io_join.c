/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/pipeline/io_join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The layout of a token, as vmm/capture/source_exit.c makes it: 1 + the index of the vCPU above
 * this bit, the number of the notification below.
 */
#define TOKEN_VCPU_SHIFT 48

struct io_join {
	unsigned int vcpus;
	/* IO_JOIN_STACKS for each vCPU, indexed by the number of the notification */
	struct io_who *who;
	uint64_t *seen; /* for each vCPU: the newest token that had a sample */
	struct io_record *waiting;
	/* number of records in waiting[]; index of the next one to examine in this round */
	size_t n, look;
	size_t kept; /* the examined ones that still wait were moved to [0, kept) */
};

int io_join_create(struct io_join **out, unsigned int vcpus, struct err *e)
{
	struct io_join *j = calloc(1, sizeof(*j));

	if (j) {
		j->vcpus = vcpus;
		j->who = calloc((size_t)vcpus * IO_JOIN_STACKS, sizeof(*j->who));
		j->seen = calloc(vcpus, sizeof(*j->seen));
		j->waiting = calloc(IO_JOIN_WAITING, sizeof(*j->waiting));
	}
	if (!j || !j->who || !j->seen || !j->waiting) {
		io_join_destroy(j);
		return err_set(e, ENOMEM, "out of memory for requests of disks");
	}
	*out = j;
	return 0;
}

void io_join_destroy(struct io_join *j)
{
	if (!j)
		return;
	free(j->who);
	free(j->seen);
	free(j->waiting);
	free(j);
}

/* Returns the index of the vCPU, or j->vcpus if the token names none. */
static unsigned int vcpu_of(const struct io_join *j, uint64_t token)
{
	uint64_t v = token >> TOKEN_VCPU_SHIFT;

	return v >= 1 && v <= j->vcpus ? (unsigned int)v - 1 : j->vcpus;
}

static struct io_who *place_of(const struct io_join *j, unsigned int vcpu, uint64_t token)
{
	return &j->who[(size_t)vcpu * IO_JOIN_STACKS + token % IO_JOIN_STACKS];
}

void io_join_sample(struct io_join *j, const struct sample *s, const struct profile_sample *out,
		    const struct stack *stack)
{
	unsigned int vcpu = vcpu_of(j, s->exit_addr);
	struct io_who *w;

	if (vcpu == j->vcpus)
		return;
	w = place_of(j, vcpu, s->exit_addr);
	w->token = s->exit_addr;
	w->task = s->task;
	w->sample = *out;
	w->stack = *stack;
	w->sample.stack = &w->stack;
	w->sample.mem = NULL;
	if (s->exit_addr > j->seen[vcpu])
		j->seen[vcpu] = s->exit_addr;
}

void io_join_forget(struct io_join *j)
{
	for (size_t i = 0; i < (size_t)j->vcpus * IO_JOIN_STACKS; i++)
		j->who[i].token = 0;
}

bool io_join_record(struct io_join *j, const struct io_record *r)
{
	if (j->n == IO_JOIN_WAITING)
		return false;
	j->waiting[j->n++] = *r;
	return true;
}

/*
 * Returns whether the submitter of r is known, or is known to stay unknown. *who is the submitter
 * or NULL.
 */
static bool is_known(const struct io_join *j, const struct io_record *r, const struct io_who **who)
{
	unsigned int vcpu = vcpu_of(j, r->token);
	const struct io_who *w;

	*who = NULL;
	if (vcpu == j->vcpus)
		return true;
	w = place_of(j, vcpu, r->token);
	if (w->token == r->token)
		*who = w;
	return *who || r->token <= j->seen[vcpu];
}

bool io_join_next(struct io_join *j, enum io_join_which which, struct io_record *r,
		  const struct io_who **who)
{
	while (j->look < j->n) {
		struct io_record *at = &j->waiting[j->look++];

		if (is_known(j, at, who) || which == IO_JOIN_REST) {
			*r = *at;
			return true;
		}
		j->waiting[j->kept++] = *at;
	}
	j->n = j->kept;
	j->look = j->kept = 0;
	return false;
}
