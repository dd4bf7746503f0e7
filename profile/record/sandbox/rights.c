/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/rights.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
	/* Kernels of Debian and Ubuntu have a level 3, at which CAP_PERFMON is not sufficient. */
	if (f && fscanf(f, "%d", &paranoid) == 1 && paranoid > 2)
		return BIT(CAP_PERFMON) | BIT(CAP_SYS_ADMIN);
	return BIT(CAP_PERFMON);
}

uint64_t rights_of(enum thread_kind kind, uint64_t counters, bool other_user)
{
	switch (kind) {
	case THREAD_VCPU:
		return counters;
	case THREAD_KEEPER: /* owners, modes, and names in other users' directories */
		return FILES | BIT(CAP_FOWNER) | BIT(CAP_CHOWN);
	case THREAD_9P_FILES: /* utimensat(2) and chmod(2) of other users' files */
		return FILES | BIT(CAP_FOWNER);
	case THREAD_CONSUMER:
	case THREAD_MAIN:
		return other_user ? BIT(CAP_DAC_READ_SEARCH) : FILES;
	default:
		return 0;
	}
}

uint64_t rights_of_all(uint64_t counters, bool pagemap, bool other_user)
{
	uint64_t all = pagemap ? BIT(CAP_SYS_ADMIN) : 0;

	for (int kind = 0; kind < THREAD_KINDS; kind++)
		/* these are other processes */
		if (kind != THREAD_9P_FILES && kind != THREAD_KEEPER)
			all |= rights_of((enum thread_kind)kind, counters, other_user);
	return all;
}

int rights_no_new(void)
{
	/*
	 * Threads inherit it: one that starts later has nothing left to do that could fail and end
	 * the run.
	 */
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return 0;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* Numbers for users that exist only while one service runs (systemd, UIDS-GIDS.md). */
#define DYNAMIC_FIRST 61184u
#define DYNAMIC_COUNT 4336u

static uid_t user_number(const char *name)
{
	const char *text = getenv(name);
	char *end;
	unsigned long v = text ? strtoul(text, &end, 10) : 0;

	return text && *text >= '0' && *text <= '9' && !*end && v < 0xffffffff ? (uid_t)v : 0;
}

bool rights_map_has(const char *path, unsigned long id)
{
	FILE *f = file_stream(path);
	unsigned long inside, outside, count;
	bool has = false;

	while (f && !has && fscanf(f, "%lu %lu %lu", &inside, &outside, &count) == 3)
		has = id >= inside && id - inside < count;
	if (f)
		fclose(f);
	return has;
}

static bool user_exists(const struct rights_user *u)
{
	return rights_map_has("/proc/self/uid_map", u->uid) &&
	       rights_map_has("/proc/self/gid_map", u->gid);
}

bool rights_choose_user(struct rights_user *out)
{
	struct rights_user u = { user_number("SUDO_UID"), user_number("SUDO_GID") };

	if (geteuid())
		return false;
	if (u.uid && !u.gid)
		u.gid = u.uid;
	if (!u.uid || !user_exists(&u))
		u.uid = u.gid = DYNAMIC_FIRST + (uid_t)getpid() % DYNAMIC_COUNT;
	if (!user_exists(&u))
		return false;
	*out = u;
	return true;
}

int rights_become(const struct rights_user *user)
{
	int ret = 0;

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return -errno;
	if (setgroups(1, &user->gid) < 0 || setresgid(user->gid, user->gid, user->gid) < 0 ||
	    setresuid(user->uid, user->uid, user->uid) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		ret = -errno;
	(void)prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	return ret;
}

static int rights_get(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };

	return syscall(SYS_capget, &head, data) < 0 ? -errno : 0;
}

bool rights_has_any(void)
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

int rights_limit(int what, uint64_t most)
{
	struct rlimit now, want = { most, most };

	if (getrlimit(what, &now) < 0)
		return -errno;
	if (now.rlim_cur != RLIM_INFINITY && now.rlim_cur < most)
		want.rlim_cur = want.rlim_max = now.rlim_cur;
	return setrlimit(what, &want) < 0 ? -errno : 0;
}
