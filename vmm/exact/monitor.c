/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/monitor.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MS 2000

void monitor_init(struct monitor *m, int fd)
{
	static const char greeting[] = "{\"execute\": \"qmp_capabilities\"}\n";

	m->fd = fd;
	m->end = MONITOR_RUNS;
	m->len = 0;
	m->text[0] = '\0';
	(void)!write(fd, greeting, sizeof(greeting) - 1);
}

bool monitor_take(struct monitor *m)
{
	ssize_t n;

	while (m->fd >= 0) {
		if (m->len == sizeof(m->text) - 1) /* nobody has asked for so much */
			m->len = 0;
		n = read(m->fd, m->text + m->len, sizeof(m->text) - 1 - m->len);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n <= 0) {
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
	return false;
}

void monitor_quit(struct monitor *m)
{
	static const char quit[] = "{\"execute\": \"quit\"}\n";

	if (m->fd >= 0)
		(void)!write(m->fd, quit, sizeof(quit) - 1);
}

bool monitor_says_halted(const char *text)
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

bool monitor_is_halted(struct monitor *m)
{
	static const char ask[] = "{\"execute\": \"human-monitor-command\", \"arguments\": "
				  "{\"command-line\": \"info registers -a\"}, \"id\": \"regs\"}\n";

	if (!monitor_take(m))
		return false;
	m->len = 0;
	m->text[0] = '\0';
	if (write(m->fd, ask, sizeof(ask) - 1) != sizeof(ask) - 1)
		return false;
	while (!strstr(m->text, "\"id\": \"regs\"")) {
		struct pollfd p = { .fd = m->fd, .events = POLLIN };

		if (poll(&p, 1, ANSWER_MS) <= 0 || !monitor_take(m))
			return false;
	}
	return monitor_says_halted(m->text);
}
