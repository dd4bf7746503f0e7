/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libvirt_monitor: asks QEMU itself which thread its first vCPU is.
 */
#include "base/cleanup.h"
#include "profile/record/libvirt/private.h"

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <libvirt/libvirt-qemu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBVIRT_QEMU_SONAME "libvirt-qemu.so.0"
/* An answer is 250 bytes for each vCPU. */
#define ANSWER_MAX (1u << 20)

/* {"return": [{"cpu-index": 0, "thread-id": 4711, ...}, ...]}: QMP, since QEMU 2.12. */
static pid_t first_thread(const char *answer)
{
	json_t *root = json_loads(answer, 0, NULL);
	json_int_t tid = json_integer_value(
		json_object_get(json_array_get(json_object_get(root, "return"), 0), "thread-id"));

	json_decref(root);
	return tid > 0 && tid <= INT32_MAX ? (pid_t)tid : 0;
}

static pid_t process_of(pid_t tid)
{
	char path[64], line[256];
	cleanup_fclose FILE *f = NULL;
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %d", &pid) == 1)
			break;
	return pid;
}

int libvirt_monitor_pid(struct libvirt_host *h, const struct libvirt_domain *d, pid_t *pid,
			struct err *e)
{
	void *library = dlopen(LIBVIRT_QEMU_SONAME, RTLD_NOW | RTLD_LOCAL);
	__typeof__(&virDomainQemuMonitorCommand) command;
	cleanup_free char *answer = NULL;
	virDomainPtr dom;
	pid_t found;
	int ret;

	if (!library)
		return err_set(e, ENOENT, "libvirt: %s", dlerror());
	command = (__typeof__(command))dlsym(library, "virDomainQemuMonitorCommand");
	if (!command)
		return err_set(e, ENOENT, "libvirt: %s", dlerror());
	dom = libvirt_domain_get(h, d);
	if (!dom)
		return libvirt_failed(h, EIO, "libvirt", e);
	ret = command(dom, "{\"execute\":\"query-cpus-fast\"}", &answer, 0);
	h->virDomainFree(dom);
	if (ret < 0 || !answer)
		return libvirt_failed(h, EIO, "libvirt: query-cpus-fast", e);
	found = strnlen(answer, ANSWER_MAX) < ANSWER_MAX ? first_thread(answer) : 0;
	found = found ? process_of(found) : 0;
	if (!found)
		return err_set(
			e, ESRCH,
			"domain %s: no thread of this machine in QEMU's answer: does libvirt "
			"run in another PID namespace?",
			d->name);
	*pid = found;
	return 0;
}
