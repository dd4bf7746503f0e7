/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/pipeline/io_join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* See vmm/capture/source_exit.c: 1 + the vCPU's index, and the number of the notification. */
#define TOKEN_VCPU_SHIFT 48

struct io_join {
	unsigned int vcpus;
	struct io_who *who; /* IO_JOIN_STACKS for each vCPU, by number of the notification */
	uint64_t *seen;	    /* of each vCPU: the newest token with a sample */
	struct io_record *waiting;
	size_t n, look; /* records; the first that was not looked at in this round */
	size_t kept;	/* of those that were looked at, [0, kept) go on waiting */
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

/* The vCPU's index, or j->vcpus: the token is nobody's. */
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

/* Is it known who brought r, or that nobody will be? */
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
