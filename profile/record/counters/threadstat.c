/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/counters/threadstat.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool threadstat_parse_sched(struct threadstat *t, const char *text)
{
	unsigned long long run, delay;

	t->have_sched = sscanf(text, "%llu %llu ", &run, &delay) == 2;
	if (t->have_sched) {
		t->run_ns = run;
		t->delay_ns = delay;
	}
	return t->have_sched;
}

bool threadstat_parse_times(struct threadstat *t, const char *text, long ticks)
{
	/* Field 2 is a name in parentheses, which may hold anything. */
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

static bool read_text(int tid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	return true;
}

void threadstat_read(struct threadstat *t, int tid)
{
	char text[1024];

	memset(t, 0, sizeof(*t));
	if (read_text(tid, "schedstat", text, sizeof(text)))
		threadstat_parse_sched(t, text);
	if (read_text(tid, "stat", text, sizeof(text)))
		threadstat_parse_times(t, text, sysconf(_SC_CLK_TCK));
}
