/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/exact_words.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/patience.h"
#include "vmm/exact/countfile.h"
#include "vmm/vm.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNTS_MAX_BYTES (UINT64_C(4) << 30)
/*
 * Limits for QEMU to write all counts and end. The second one applies once a signal has
 * interrupted the run.
 */
#define COUNTS_MS 60000
#define COUNTS_ASKED_MS 1500
#define CONSOLE_TURN 65536u /* bytes read from the console per call */
/*
 * Maximum number of console bytes that wait for the next sample. The guest's serial line carries
 * 11 KiB per second of guest time, so this is enough for 24 minutes.
 */
#define CONSOLE_MOST (16u << 20)

/*
 * Stores console bytes when QEMU writes them. They are passed on at the next sample, which is at
 * the same instruction in each run.
 */
static void keep_console(struct exact *x)
{
	uint8_t bytes[4096];

	for (size_t taken = 0; !x->console_closed && taken < CONSOLE_TURN;) {
		ssize_t n = read(x->child.console, bytes, sizeof(bytes));

		if (n < 0)
			return;
		x->console_closed = !n;
		buf_add(&x->kept, bytes, (size_t)n);
		taken += (size_t)n;
	}
}

void exact_forward_console(struct exact *x)
{
	keep_console(x);
	for (size_t i = 0; i < x->kept.len && x->cfg.console; i++)
		x->cfg.console(x->cfg.console_ctx, x->kept.data[i]);
	x->kept.len = 0;
}

int exact_read_output(struct exact *x, const struct pollfd *console, const struct pollfd *monitor,
		      const struct pollfd *errors, struct err *e)
{
	if (console->revents)
		keep_console(x);
	if (monitor->revents)
		(void)monitor_read(&x->monitor);
	if (errors->revents)
		x->errors_closed = !child_listen(&x->child);
	if (x->kept.len > CONSOLE_MOST)
		return err_set(e, EMSGSIZE, "QEMU writes to the guest's console endlessly");
	if (x->kept.failed)
		return err_set(e, ENOMEM, "out of memory for the guest's console");
	if (x->monitor.floods)
		return err_set(e, EMSGSIZE, "QEMU writes to its monitor endlessly");
	return 0;
}

/* Empties QEMU's pipes while it ends, so that it does not block on them. */
static void drain(struct exact *x)
{
	x->errors_closed = !child_listen(&x->child);
	(void)monitor_read(&x->monitor);
	keep_console(x);
	if (x->kept.len > CONSOLE_MOST)
		x->kept.len = CONSOLE_MOST;
}

static bool end_was_asked_for(const struct exact *x)
{
	return atomic_load(&x->vm->stop) && vm_result(x->vm)->reason == VM_END_INTERRUPTED;
}

void exact_finish_counts(struct exact *x)
{
	struct pollfd p = { .fd = x->child.pidfd, .events = POLLIN };
	struct patience left = { 0 };
	uint64_t limit;

	if (!x->cfg.counts || !x->child.pid)
		return;
	x->child.shared->frozen = 1;
	x->child.shared->next = UINT64_MAX;
	monitor_quit(&x->monitor);
	if (!x->answered)
		child_resume(&x->child);
	while (poll(&p, 1, PATIENCE_LOOK_NS / 1000000) <= 0) {
		limit = (end_was_asked_for(x) ? COUNTS_ASKED_MS : COUNTS_MS) * UINT64_C(1000000);
		if (!patience_is_left(&left, clock_mono_ns(), limit) ||
		    lseek(x->child.counts, 0, SEEK_END) > (off_t)COUNTS_MAX_BYTES)
			return;
		drain(x);
	}
}

int exact_counts_of(const struct vm *vm, struct countfile *out, struct err *e)
{
	const struct exact *x = vm->attached;
	off_t len = lseek(x->child.counts, 0, SEEK_END);
	void *at;
	int ret;

	if (len <= 0)
		return err_set(e, EINVAL, "exact counts: QEMU ended before it had written them");
	if ((uint64_t)len > COUNTS_MAX_BYTES)
		return err_set(e, EFBIG, "exact counts: more than %llu GiB",
			       (unsigned long long)(COUNTS_MAX_BYTES >> 30));
	/*
	 * QEMU has ended; the seal prevents any other process from changing the bytes between
	 * check and use.
	 */
	ret = file_seal(x->child.counts, FILE_SEAL_ALL, "counts", e);
	if (ret)
		return ret;
	at = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, x->child.counts, 0);
	if (at == MAP_FAILED)
		return err_set(e, errno, "exact counts: %s", strerror(errno));
	ret = countfile_parse(out, at, (size_t)len, e);
	munmap(at, (size_t)len);
	return ret;
}
