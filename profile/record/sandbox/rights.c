/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/rights.h"

#include "base/cleanup.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (UINT64_C(1) << (cap))
#define FILES (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH))
#ifndef CAP_PERFMON /* Linux 5.8 */
#define CAP_PERFMON 38
#endif

uint64_t rights_counters(bool wanted)
{
	cleanup_fclose FILE *f =
		wanted ? fopen("/proc/sys/kernel/perf_event_paranoid", "re") : NULL;
	int paranoid = 0;

	if (!wanted)
		return 0;
	/* Kernels of Debian and Ubuntu have a level 3, at which CAP_PERFMON is not enough. */
	if (f && fscanf(f, "%d", &paranoid) == 1 && paranoid > 2)
		return BIT(CAP_PERFMON) | BIT(CAP_SYS_ADMIN);
	return BIT(CAP_PERFMON);
}

uint64_t rights_of(enum thread_kind kind, uint64_t counters)
{
	switch (kind) {
	case THREAD_VCPU:
		return counters;
	case THREAD_9P_FILES: /* utimensat(2) and chmod(2) of others' files */
		return FILES | BIT(CAP_FOWNER);
	case THREAD_CONSUMER:
	case THREAD_MAIN:
		return FILES;
	default:
		return 0;
	}
}

uint64_t rights_of_all(uint64_t counters, bool pagemap)
{
	uint64_t all = pagemap ? BIT(CAP_SYS_ADMIN) : 0;

	for (int kind = 0; kind < THREAD_KINDS; kind++)
		if (kind != THREAD_9P_FILES) /* another process */
			all |= rights_of((enum thread_kind)kind, counters);
	return all;
}

int rights_no_new(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int rights_get(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };

	return syscall(SYS_capget, &head, data) < 0 ? -errno : 0;
}

bool rights_any(void)
{
	struct __user_cap_data_struct data[2];

	return rights_get(data) == 0 && (data[0].permitted || data[1].permitted);
}

int rights_keep(uint64_t keep)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];
	int ret = rights_get(data);

	if (ret)
		return ret;
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t mask = (uint32_t)(keep >> 32 * i);

		data[i].permitted &= mask;
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}
