/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/bench/counter.h"

#include "base/cleanup.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>

int bench_counter_check(struct err *e)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_host = 1,
		.disabled = 1,
	};
	cleanup_close int fd =
		(int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return err_set(e, errno,
			       "not allowed to count instructions (perf_event_open: %s; "
			       "see /proc/sys/kernel/perf_event_paranoid)",
			       strerror(errno));
	if (errno == EBUSY)
		return err_set(
			e, errno,
			"another event has the PMU for itself (perf_event_open: %s): end the "
			"profiler that uses it",
			strerror(errno));
	return err_set(e, errno,
		       "this host has no counter of guest instructions "
		       "(perf_event_open: %s)",
		       strerror(errno));
}
