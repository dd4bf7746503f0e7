/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/console/console.h"

#include "base/clock.h"
#include "base/file.h"

#include <string.h>
#include <unistd.h>

void console_init(struct console *c, int fd)
{
	memset(c, 0, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	c->fd = fd;
	c->wake_fd = -1;
	c->status.fd = -1;
}

static void flush_locked(struct console *c)
{
	/* A closed pipe (`| head`) ends the console, not the profile. */
	if (c->n && c->fd >= 0 && !c->broken) {
		if (!c->apart)
			status_line_hide(&c->status);
		if (file_write_all(c->fd, c->buf, c->n) < 0)
			c->broken = true;
		c->mid_line = c->buf[c->n - 1] != '\n';
	}
	c->n = 0;
}

void console_flush(struct console *c)
{
	pthread_mutex_lock(&c->lock);
	flush_locked(c);
	pthread_mutex_unlock(&c->lock);
}

void console_deinit(struct console *c)
{
	console_flush(c);
	pthread_mutex_destroy(&c->lock);
	buf_deinit(&c->kept);
	buf_deinit(&c->times);
}

void console_add_status(struct console *c)
{
	status_line_init(&c->status, STDERR_FILENO);
	/* Lines of the guest's that go elsewhere are not in its way. */
	c->apart = c->fd >= 0 && !isatty(c->fd);
}

void console_status(struct console *c, const char *text)
{
	pthread_mutex_lock(&c->lock);
	if (!c->mid_line || c->apart)
		status_line_show(&c->status, text);
	pthread_mutex_unlock(&c->lock);
}

void console_hide_status(struct console *c)
{
	pthread_mutex_lock(&c->lock);
	status_line_hide(&c->status);
	pthread_mutex_unlock(&c->lock);
}

void console_watch(struct console *c, int wake_fd)
{
	c->wake_fd = wake_fd;
}

void console_take(struct console *c, struct console_bytes *out)
{
	struct buf bytes = out->bytes, times = out->times;

	bytes.len = times.len = 0;
	bytes.failed = times.failed = false;
	pthread_mutex_lock(&c->lock);
	out->bytes = c->kept;
	out->times = c->times;
	out->last_ns = c->last_ns;
	c->kept = bytes;
	c->times = times;
	c->told = false;
	pthread_mutex_unlock(&c->lock);
}

/* On the vCPU's thread: matching is for those who have the time. */
static void keep(struct console *c, uint8_t byte)
{
	uint64_t one = 1;
	bool end = byte == '\n' || byte == '\r';

	c->last_ns = clock_mono_ns();
	if (c->kept.len >= CONSOLE_KEPT_MAX || !buf_reserve(&c->kept, 1) ||
	    (end && !buf_reserve(&c->times, sizeof(uint64_t)))) {
		c->missed++;
		return;
	}
	buf_u8(&c->kept, byte);
	if (!end)
		return;
	buf_u64(&c->times, c->last_ns);
	if (!c->told)
		(void)!write(c->wake_fd, &one, sizeof(one));
	c->told = true;
}

void console_put(void *console, uint8_t byte)
{
	struct console *c = console;

	pthread_mutex_lock(&c->lock);
	c->bytes++;
	if (c->wake_fd >= 0)
		keep(c, byte);
	c->buf[c->n++] = byte;
	if (byte == '\n' || c->n == sizeof(c->buf))
		flush_locked(c);
	pthread_mutex_unlock(&c->lock);
}
