/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/monitor.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS 20

void monitor_init(struct monitor *m, int fd)
{
	static const char greeting[] = "{\"execute\": \"qmp_capabilities\"}\n";

	m->fd = fd;
	m->end = MONITOR_RUNS;
	m->len = m->unasked = 0;
	m->floods = false;
	m->text[0] = '\0';
	(void)!write(fd, greeting, sizeof(greeting) - 1);
}

bool monitor_read(struct monitor *m)
{
	for (size_t taken = 0; m->fd >= 0 && taken < MONITOR_TURN;) {
		ssize_t n;

		if (m->len == sizeof(m->text) - 1) /* no query has an answer of this length */
			m->len = 0;
		n = read(m->fd, m->text + m->len, sizeof(m->text) - 1 - m->len);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n > 0) {
			taken += (size_t)n;
			m->unasked += (size_t)n;
			m->floods = m->unasked > MONITOR_MOST;
		}
		if (n <= 0 || m->floods) {
			m->fd = -1;
			return false;
		}
		m->len += (size_t)n;
		m->text[m->len] = '\0';
		if (strstr(m->text, "\"guest-reset\""))
			m->end = MONITOR_RESET;
		else if (strstr(m->text, "\"guest-shutdown\""))
			m->end = MONITOR_POWEROFF;
	}
	return m->fd >= 0;
}

void monitor_quit(struct monitor *m)
{
	static const char quit[] = "{\"execute\": \"quit\"}\n";

	if (m->fd >= 0)
		(void)!write(m->fd, quit, sizeof(quit) - 1);
}

bool monitor_text_is_halted(const char *text)
{
	bool any = false;

	/* "RIP=... RFL=00000046 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1" */
	for (const char *at = text; (at = strstr(at, "HLT=")); at += 4) {
		if (at[4] != '1')
			return false;
		any = true;
	}
	return any;
}

enum monitor_answer monitor_is_halted(struct monitor *m, const atomic_bool *stop)
{
	static const char ask[] = "{\"execute\": \"human-monitor-command\", \"arguments\": "
				  "{\"command-line\": \"info registers -a\"}, \"id\": \"regs\"}\n";
	uint64_t end = clock_mono_ns() + MONITOR_ANSWER_MS * UINT64_C(1000000);

	if (!monitor_read(m))
		return MONITOR_NO_ANSWER;
	m->len = m->unasked = 0;
	m->text[0] = '\0';
	if (write(m->fd, ask, sizeof(ask) - 1) != sizeof(ask) - 1)
		return MONITOR_NO_ANSWER;
	while (!strstr(m->text, "\"id\": \"regs\"")) {
		struct pollfd p = { .fd = m->fd, .events = POLLIN };

		if (atomic_load(stop) || clock_mono_ns() >= end)
			return MONITOR_NO_ANSWER;
		if (poll(&p, 1, LOOK_MS) > 0 && !monitor_read(m))
			return MONITOR_NO_ANSWER;
	}
	return monitor_text_is_halted(m->text) ? MONITOR_IS_HALTED : MONITOR_IS_NOT_HALTED;
}
