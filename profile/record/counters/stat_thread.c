/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/counters/stat_thread.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool stat_thread_parse_sched(struct stat_thread *t, const char *text)
{
	unsigned long long run, delay;

	t->have_sched = sscanf(text, "%llu %llu ", &run, &delay) == 2;
	if (t->have_sched) {
		t->run_ns = run;
		t->delay_ns = delay;
	}
	return t->have_sched;
}

bool stat_thread_parse_times(struct stat_thread *t, const char *text, long ticks)
{
	/* Field 2 is a name in parentheses, which may contain anything. */
	const char *p = strrchr(text, ')');
	unsigned long long utime, stime, guest;
	uint64_t ns;

	t->have_times = false;
	/* 27 fields between 15 and 43. */
	if (!p || ticks <= 0 ||
	    sscanf(p + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d "
		   "%*d %*u %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %*d "
		   "%*u %*u %*u %llu",
		   &utime, &stime, &guest) != 3)
		return false;
	ns = NSEC_PER_SEC / (unsigned long)ticks;
	t->user_ns = (utime > guest ? utime - guest : 0) * ns;
	t->system_ns = stime * ns;
	t->guest_ns = guest * ns;
	t->state = p[1] ? p[2] : '\0';
	t->have_times = true;
	return true;
}

static int open_file(int tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool read_text(int fd, char *text, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);

	if (n <= 0)
		return false;
	text[n] = 0;
	return true;
}

void stat_thread_open(struct stat_thread_files *f, int tid)
{
	*f = (struct stat_thread_files){ open_file(tid, "schedstat"), open_file(tid, "stat") };
}

void stat_thread_close(struct stat_thread_files *f)
{
	if (f->sched >= 0)
		close(f->sched);
	if (f->times >= 0)
		close(f->times);
	*f = (struct stat_thread_files){ -1, -1 };
}

void stat_thread_read_files(struct stat_thread *t, const struct stat_thread_files *f)
{
	char text[1024];

	memset(t, 0, sizeof(*t));
	if (read_text(f->sched, text, sizeof(text)))
		stat_thread_parse_sched(t, text);
	if (read_text(f->times, text, sizeof(text)))
		stat_thread_parse_times(t, text, sysconf(_SC_CLK_TCK));
}

void stat_thread_read(struct stat_thread *t, int tid)
{
	struct stat_thread_files f;

	stat_thread_open(&f, tid);
	stat_thread_read_files(t, &f);
	stat_thread_close(&f);
}
