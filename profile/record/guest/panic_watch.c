/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/panic_watch.h"

#include "base/clock.h"
#include "base/gmem_remote.h"

#include <string.h>

#define TICK_NS 100000000u

/* panic_cpu's value while there is no panic: PANIC_CPU_INVALID of include/linux/panic.h. */
#define NO_CPU (-1)
/* No kernel has as many processors (NR_CPUS of arch/x86/Kconfig). */
#define CPUS_MAX 8192

static bool has_banner(const struct gmem *mem, uint64_t gpa)
{
	char banner[4];

	return gmem_read(mem, gpa, banner, sizeof(banner)) == 0 &&
	       !memcmp(banner, "Linu", sizeof(banner));
}

/* Before the kernel is unpacked other bytes lie at its variables; its banner is not there then. */
static bool is_unpacked(struct guest *g, const struct gmem *mem, uint64_t *gpa)
{
	return guest_variable(g, "linux_banner", gpa) && has_banner(mem, *gpa);
}

static void find_variables(struct panic_watch *w, struct guest *g, const struct gmem *mem)
{
	uint64_t cpu, timeout, image, banner;

	if (atomic_load(&w->cpu) || !is_unpacked(g, mem, &banner) ||
	    !guest_variable(g, "panic_cpu", &cpu))
		return;
	if (guest_variable(g, "panic_timeout", &timeout))
		atomic_store(&w->timeout, timeout);
	if (guest_variable(g, "kexec_crash_image", &image))
		atomic_store(&w->image, image);
	atomic_store(&w->banner, banner);
	atomic_store(&w->cpu, cpu);
}

void panic_watch_reset(struct panic_watch *w)
{
	atomic_store(&w->cpu, 0);
	atomic_store(&w->timeout, 0);
	atomic_store(&w->image, 0);
	atomic_store(&w->banner, 0);
	atomic_store(&w->sampled_ns, 0);
	atomic_store(&w->seen, false);
	w->once = w->have_range = false;
	w->end[0] = w->end[1] = 0;
	/* Incremented last: a reader that sees the new value finds nothing of the kernel before. */
	atomic_fetch_add(&w->kernels, 1);
}

void panic_watch_tick(struct panic_watch *w, struct guest *g, const struct gmem *mem)
{
	uint64_t now = clock_mono_ns();
	struct panic_state s;

	/* A gdbstub reads memory only while its machine is stopped. */
	if (mem->is_virtual || !clock_is_due(now, w->tick_ns, TICK_NS))
		return;
	w->tick_ns = now;
	if (mem->remote)
		gmem_remote_invalidate(mem->remote);
	find_variables(w, g, mem);
	if (!mem->remote || !atomic_load(&w->cpu))
		return;
	s = panic_watch_read(w, mem);
	/*
	 * A panic does not end, so a later read without one means that another kernel's data was
	 * read.
	 */
	atomic_store(&w->seen, s.panicked && w->once);
	w->once = s.panicked;
}

static void find_range(struct panic_watch *w, const struct guest *g)
{
	static const char *const name[] = { "panic", "vpanic" };

	w->have_range = true;
	for (unsigned int i = 0; i < 2; i++) {
		const struct symbol *s = guest_function(g, name[i]);

		w->start[i] = s ? s->addr : 0;
		w->end[i] = s ? s->addr + s->size : 0;
	}
}

void panic_watch_stack(struct panic_watch *w, const struct guest *g, const struct stack *s,
		       uint64_t time_ns)
{
	if (!w->have_range && guest_is_known_linux(g))
		find_range(w, g);
	if (!w->end[0])
		return;
	for (unsigned int i = 0; i < s->n_kernel; i++) {
		uint64_t at = s->exact[i] ? s->ip[i] : s->ip[i] - 1;

		if (at - w->start[0] < w->end[0] - w->start[0] ||
		    at - w->start[1] < w->end[1] - w->start[1])
			atomic_store(&w->sampled_ns, time_ns);
	}
}

struct panic_state panic_watch_read(const struct panic_watch *w, const struct gmem *mem)
{
	uint64_t cpu_gpa = atomic_load(&w->cpu), timeout_gpa = atomic_load(&w->timeout),
		 image_gpa = atomic_load(&w->image), image = 0;
	struct panic_state s = { 0 };
	int cpu = NO_CPU;

	/* After a kexec or a reboot something else lies there. */
	s.known = cpu_gpa && has_banner(mem, atomic_load(&w->banner)) &&
		  gmem_read(mem, cpu_gpa, &cpu, sizeof(cpu)) == 0;
	s.panicked = s.known && cpu >= 0 && cpu < CPUS_MAX;
	s.have_timeout =
		timeout_gpa && gmem_read(mem, timeout_gpa, &s.timeout, sizeof(s.timeout)) == 0;
	s.crash_kernel =
		image_gpa && gmem_read(mem, image_gpa, &image, sizeof(image)) == 0 && image;
	return s;
}
