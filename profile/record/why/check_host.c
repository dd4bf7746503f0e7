/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of the host's side: whether vCPUs' threads get a processor and memory, or wait in the VMM. */
#include "profile/record/why/private.h"
#include "vmm/attach/standing.h"

#include <inttypes.h>

bool why_host_stands(const struct standing *h)
{
	for (unsigned int i = 0; i < STANDING_CAUSES; i++)
		if (h->check[i].result == STANDING_BAD)
			return true;
	return false;
}

/* Sets what the host's look found. bad: with the thread as its proof. */
static void judge_host(struct why *w, struct why_finding *f, enum standing_cause cause)
{
	const struct standing *h = w->host;
	const struct standing_check *c = h ? &h->check[cause] : NULL;

	if (!c) {
		why_unknown(f, "%s",
			    w->still ? "the machine was saved, so no process runs it"
				     : "the machine's process is not known: it is reached through "
				       "a gdbstub");
	} else if (c->result == STANDING_UNKNOWN) {
		why_unknown(f, "%s", c->text);
	} else if (c->result == STANDING_OK) {
		why_ok(f, "%s", c->text);
	} else {
		why_bad(f, "The host keeps the machine from running: %s.", c->text);
		why_prove(w, f, "tid", (uint64_t)c->tid);
		why_prove(w, f, "ran_ns", c->run_ns);
		why_prove(w, f, "of_ns", h->interval_ns);
		why_fact(w, f,
			 "thread %d was looked at several times in %" PRIu64
			 " ms, and ran for %" PRIu64 " ms of them",
			 (int)c->tid, h->interval_ns / 1000000, c->run_ns / 1000000);
	}
}

void why_check_paused(struct why *w, struct why_finding *f)
{
	judge_host(w, f, STANDING_PAUSED);
}

void why_check_not_scheduled(struct why *w, struct why_finding *f)
{
	judge_host(w, f, STANDING_NOT_SCHEDULED);
}

void why_check_absent(struct why *w, struct why_finding *f)
{
	judge_host(w, f, STANDING_MEMORY);
}

void why_check_vmm_thread(struct why *w, struct why_finding *f)
{
	judge_host(w, f, STANDING_THREAD);
}
