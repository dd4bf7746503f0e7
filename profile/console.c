/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/console.h"

#include "base/file.h"

#include <string.h>

void console_init(struct console *c, int fd)
{
	memset(c, 0, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	c->fd = fd;
}

static void flush_locked(struct console *c)
{
	/* A closed pipe (`| head`) ends the console, not the profile. */
	if (c->n && c->fd >= 0 && !c->broken && file_write_all(c->fd, c->buf, c->n) < 0)
		c->broken = true;
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
}

void console_put(void *console, uint8_t byte)
{
	struct console *c = console;

	pthread_mutex_lock(&c->lock);
	c->bytes++;
	c->buf[c->n++] = byte;
	if (byte == '\n' || c->n == sizeof(c->buf))
		flush_locked(c);
	pthread_mutex_unlock(&c->lock);
}
