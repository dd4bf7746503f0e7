/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackset_fixture: stacksets filled by a test. Each function is one frame of the same index; 0
 * ends a list of frames, outermost first.
 */
#ifndef KVMPROF_TESTS_STACKSET_FIXTURE_H
#define KVMPROF_TESTS_STACKSET_FIXTURE_H

#include "profile/analyse/stacks/stackset.h"

#include <stdlib.h>
#include <string.h>

#define FIXTURE_MAX 64

struct fixture {
	struct stackset set;
	struct stackset_func func[FIXTURE_MAX];
	struct stackset_frame frame[FIXTURE_MAX];
	struct stackset_task task[FIXTURE_MAX];
	struct stackset_stack stack[FIXTURE_MAX];
	struct stackset_sample sample[4096];
	uint32_t frames[FIXTURE_MAX][FIXTURE_MAX];
};

static inline void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->set = (struct stackset){ .func = f->func,
				    .frame = f->frame,
				    .task = f->task,
				    .stack = f->stack,
				    .sample = f->sample,
				    .event = "wall",
				    .osrelease = "",
				    .message = "",
				    .weight_is_ns = true,
				    .ncpus = 1 };
}

static inline uint32_t fixture_func(struct fixture *f, const char *name, const char *dso,
				    uint8_t kind)
{
	uint32_t i = (uint32_t)f->set.nfuncs++;

	f->func[i] =
		(struct stackset_func){ .name = name, .dso = dso, .named = true, .kind = kind };
	f->frame[i].func = i;
	f->set.nframes = f->set.nfuncs;
	return i;
}

static inline uint32_t fixture_task(struct fixture *f, const char *comm, uint32_t pid)
{
	f->task[f->set.ntasks] = (struct stackset_task){ .pid = pid, .tid = pid, .comm = comm };
	return (uint32_t)f->set.ntasks++;
}

/*
 * Adds those functions of a list of names that do not exist yet: of the kernel if dso_of() returns
 * a DSO in brackets, else of a program. fixture_forget() frees the names.
 */
static inline void fixture_names(struct fixture *f, const char *names,
				 const char *(*dso_of)(const char *name))
{
	char text[512], *save = NULL;

	strncpy(text, names, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (char *s = strtok_r(text, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
		bool known = false;

		for (size_t i = 0; i < f->set.nfuncs; i++)
			known |= !strcmp(f->func[i].name, s);
		if (!known)
			fixture_func(f, strdup(s), dso_of(s),
				     *dso_of(s) == '[' ? STACKSET_KIND_KERNEL : STACKSET_KIND_USER);
	}
}

static inline void fixture_forget(struct fixture *f)
{
	for (size_t i = 0; i < f->set.nfuncs; i++)
		free((char *)f->func[i].name);
}

/* Returns a stack of existing functions; names: "outer inner". */
static inline uint32_t fixture_stack(struct fixture *f, uint32_t task, uint8_t mode,
				     uint64_t weight, const char *names)
{
	uint32_t at = (uint32_t)f->set.nstacks++, n = 0, list[FIXTURE_MAX];
	char text[512], *save = NULL;

	strncpy(text, names, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (char *s = strtok_r(text, " ", &save); s; s = strtok_r(NULL, " ", &save))
		for (uint32_t i = 0; i < f->set.nfuncs; i++)
			if (!strcmp(f->func[i].name, s)) {
				list[n++] = i;
				break;
			}
	for (uint32_t i = 0; i < n; i++)
		f->frames[at][i] = list[n - 1 - i];
	f->stack[at] = (struct stackset_stack){ .frame = f->frames[at],
						.n = n,
						.task = task,
						.mode = mode,
						.weight = weight,
						.samples = weight };
	f->set.weight += weight;
	f->set.samples += weight;
	f->set.mode_weight[mode] += weight;
	return at;
}

/* Adds n samples of 1 ms on a vCPU, after the last one of the fixture. */
static inline void fixture_samples(struct fixture *f, uint32_t stack, uint32_t cpu, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint64_t before =
			f->set.nsamples ? f->sample[f->set.nsamples - 1].time_ns : 1000000000;

		f->sample[f->set.nsamples++] = (struct stackset_sample){
			.time_ns = before + 1000000, .weight = 1000000, .stack = stack, .cpu = cpu
		};
	}
	f->set.first_ns = f->sample[0].time_ns;
	f->set.last_ns = f->sample[f->set.nsamples - 1].time_ns;
}

#endif
