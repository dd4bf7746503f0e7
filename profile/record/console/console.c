/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/console/console.h"

#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An unfinished line is written when it has this many bytes. */
#define READY_BYTES 1024u
/* A pipe that poll() reports as writable accepts this many bytes. */
#define CHUNK_PIPE 4096u
#define CHUNK_FILE 65536u
/* Room that is needed after bytes were dropped; with less the output would consist of gaps. */
#define RESUME_ROOM (CONSOLE_RING / 4)
/* How often a waiting thread checks whether it should stop waiting. */
#define LOOK_MS 50
#define STATUS_WAIT_NS 200000000ull
/* Time limits at the end of a run: without any progress, and in total. */
#define DRAIN_IDLE_NS 2000000000ull
#define DRAIN_MAX_NS 10000000000ull
/* Interrupts a write() that blocks, and has no other effect. */
#define CONSOLE_SIGNAL (SIGRTMIN + 2)

void console_init(struct console *c, int fd)
{
	memset(c, 0, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->out, NULL);
	thread_cond_init(&c->more);
	thread_cond_init(&c->less);
	c->fd = fd;
	c->wake_fd = -1;
	c->status.fd = -1;
}

/* -- the writer thread ------------------------------------------------------------------- */

/*
 * Called with `out` held. Returns the number of bytes written, or -errno; -EINTR: the end may have
 * come.
 */
static ssize_t console_write_once(struct console *c, const uint8_t *p, size_t n)
{
	ssize_t ret;

	if (!c->apart)
		status_line_hide(&c->status);
	ret = write(c->fd, p, n);
	if (ret < 0)
		return -errno;
	if (ret > 0)
		c->mid_line = p[ret - 1] != '\n';
	return ret;
}

/* Called without a lock, because the reader may be slow. */
static ssize_t console_write_some(struct console *c, const uint8_t *p, size_t n)
{
	struct pollfd out = { .fd = c->fd, .events = POLLOUT };
	ssize_t ret;

	ret = poll(&out, 1, LOOK_MS);
	if (ret <= 0)
		return ret < 0 && errno != EINTR ? -errno : 0;
	pthread_mutex_lock(&c->out);
	ret = console_write_once(c, p, n < c->chunk ? n : c->chunk);
	pthread_mutex_unlock(&c->out);
	return ret == -EINTR || ret == -EAGAIN ? 0 : ret;
}

/* Called with the lock held. Ends the console for the bytes in the ring and later ones. */
static void console_discard(struct console *c)
{
	c->dropped += c->n;
	c->n = c->ready = 0;
	c->dropping = false;
	pthread_cond_broadcast(&c->less);
}

static void *console_writer(void *console)
{
	struct console *c = console;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, CONSOLE_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_mutex_lock(&c->lock);
	while (!c->quit) {
		const uint8_t *p = c->ring + c->head;
		size_t n = c->ready < CONSOLE_RING - c->head ? c->ready : CONSOLE_RING - c->head;
		ssize_t ret;

		if (!n) {
			pthread_cond_wait(&c->more, &c->lock);
			continue;
		}
		/* Other threads only append to the ring, so these bytes do not change. */
		pthread_mutex_unlock(&c->lock);
		ret = console_write_some(c, p, n);
		pthread_mutex_lock(&c->lock);
		if (ret < 0) {
			c->failed = (int)-ret;
			console_discard(c);
		} else if (ret) {
			c->head = (c->head + (size_t)ret) % CONSOLE_RING;
			c->n -= (size_t)ret;
			c->ready -= (size_t)ret;
			c->written += (uint64_t)ret;
			pthread_cond_broadcast(&c->less);
		}
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void on_console_signal(int signo)
{
	(void)signo;
}

int console_start(struct console *c, struct err *e)
{
	struct sigaction sa = { .sa_handler = on_console_signal };
	struct stat st;
	int ret;

	if (c->fd < 0)
		return 0;
	c->chunk = fstat(c->fd, &st) == 0 && S_ISREG(st.st_mode) ? CHUNK_FILE : CHUNK_PIPE;
	c->ring = malloc(CONSOLE_RING);
	if (!c->ring)
		return err_set(e, ENOMEM, "out of memory for the guest's console");
	sigaction(CONSOLE_SIGNAL, &sa, NULL);
	ret = thread_start(&c->writer, THREAD_CONSOLE, console_writer, c);
	if (ret)
		return err_set(e, ret, "cannot start the console's thread: %s", strerror(ret));
	c->started = true;
	return 0;
}

/* Interrupts a write that blocks on a stopped terminal until the writer thread notices the end. */
static void console_stop(struct console *c)
{
	struct timespec ts;

	if (!c->started)
		return;
	pthread_mutex_lock(&c->lock);
	c->quit = true;
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
	do {
		pthread_kill(c->writer, CONSOLE_SIGNAL);
		ts = clock_timespec(clock_mono_ns() + LOOK_MS * 1000000ull);
	} while (pthread_clockjoin_np(c->writer, NULL, CLOCK_MONOTONIC, &ts) == ETIMEDOUT);
	c->started = false;
}

void console_end(struct console *c)
{
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_broadcast(&c->less);
	pthread_mutex_unlock(&c->lock);
}

void console_flush(struct console *c)
{
	pthread_mutex_lock(&c->lock);
	c->ready = c->n;
	if (c->ready)
		pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
}

void console_deinit(struct console *c)
{
	console_drain(c, CONSOLE_SHORTLY, -1);
	console_stop(c);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->out);
	pthread_cond_destroy(&c->more);
	pthread_cond_destroy(&c->less);
	free(c->ring);
	buf_deinit(&c->kept);
	buf_deinit(&c->times);
}

uint64_t console_dropped(struct console *c)
{
	uint64_t n;

	pthread_mutex_lock(&c->lock);
	n = c->dropped;
	pthread_mutex_unlock(&c->lock);
	return n;
}

int console_error(struct console *c)
{
	int failed;

	pthread_mutex_lock(&c->lock);
	failed = c->failed;
	pthread_mutex_unlock(&c->lock);
	return failed == EPIPE ? 0 : -failed;
}

/* -- the guest's output --------------------------------------------------------------------- */

/* Called with the lock held, and with room in the ring. */
static void console_append(struct console *c, uint8_t byte)
{
	c->ring[(c->head + c->n++) % CONSOLE_RING] = byte;
	if (byte != '\n' && c->n - c->ready < READY_BYTES)
		return;
	c->ready = c->n;
	pthread_cond_signal(&c->more);
}

/* Appends a line that marks missing bytes. Called with the lock held, and with room. */
static void console_note_gap(struct console *c)
{
	char text[160];
	int n = snprintf(text, sizeof(text),
			 "\n[kvmprof: %" PRIu64
			 " bytes of the console were dropped here: nobody read them]\n",
			 c->gap);

	for (int i = 0; i < n; i++)
		console_append(c, (uint8_t)text[i]);
	c->gap = 0;
	c->dropping = false;
}

/* Called with the lock held. Returns false if the reader took nothing for too long. */
static bool console_wait_for_room(struct console *c)
{
	uint64_t until = clock_mono_ns() + CONSOLE_WAIT_NS;

	while (c->n == CONSOLE_RING && !c->ending)
		if (thread_cond_wait_until(&c->less, &c->lock, until) == ETIMEDOUT)
			break;
	return c->n < CONSOLE_RING;
}

/* Called with the lock held. */
static void console_add(struct console *c, uint8_t byte)
{
	if (c->dropping && CONSOLE_RING - c->n >= RESUME_ROOM)
		console_note_gap(c);
	if (!c->dropping && c->n == CONSOLE_RING && !console_wait_for_room(c))
		c->dropping = true;
	if (c->failed)
		return;
	if (c->dropping) {
		c->dropped++;
		c->gap++;
	} else {
		console_append(c, byte);
	}
}

/* Runs on the vCPU's thread, so matching is left to the watcher. */
static void console_keep(struct console *c, uint8_t byte)
{
	uint64_t one = 1;
	bool end = byte == '\n' || byte == '\r';

	c->last_ns = c->clock ? c->clock(c->clock_ctx) : clock_mono_ns();
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
		console_keep(c, byte);
	if (c->started && !c->failed)
		console_add(c, byte);
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

/* -- the end -------------------------------------------------------------------------------- */

static bool is_readable(int fd)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&in, 1, 0) > 0;
}

void console_drain(struct console *c, enum console_patience patience, int fd)
{
	uint64_t begin = clock_mono_ns(), moved = begin, now = begin, written;

	pthread_mutex_lock(&c->lock);
	written = c->written;
	c->ready = c->n;
	pthread_cond_signal(&c->more);
	while (c->started && !c->failed && (c->n || c->dropping)) {
		if (c->dropping && CONSOLE_RING - c->n >= RESUME_ROOM)
			console_note_gap(c);
		thread_cond_wait_until(&c->less, &c->lock, now + LOOK_MS * 1000000ull);
		now = clock_mono_ns();
		if (c->written != written)
			moved = now;
		written = c->written;
		if ((patience == CONSOLE_SHORTLY &&
		     (now - moved > DRAIN_IDLE_NS || now - begin > DRAIN_MAX_NS)) ||
		    is_readable(fd)) {
			console_discard(c);
			break;
		}
	}
	pthread_mutex_unlock(&c->lock);
}

/* -- the status line -------------------------------------------------------------------------- */

void console_add_status(struct console *c)
{
	status_line_init(&c->status, STDERR_FILENO);
	/* Lines of the guest that are written elsewhere do not interfere with it. */
	c->apart = c->fd >= 0 && !isatty(c->fd);
}

/* Returns false for a terminal that was stopped, for example by Ctrl-S. */
static bool status_is_writable(const struct console *c)
{
	struct pollfd out = { .fd = c->status.fd, .events = POLLOUT };

	return c->status.fd >= 0 && poll(&out, 1, 0) > 0;
}

void console_status(struct console *c, const char *text)
{
	if (pthread_mutex_trylock(&c->out)) /* the writer thread uses the terminal */
		return;
	if ((!c->mid_line || c->apart) && status_is_writable(c))
		status_line_show(&c->status, text);
	pthread_mutex_unlock(&c->out);
}

void console_hide_status(struct console *c)
{
	struct timespec ts = clock_timespec(clock_mono_ns() + STATUS_WAIT_NS);

	if (pthread_mutex_clocklock(&c->out, CLOCK_MONOTONIC, &ts))
		return;
	if (status_is_writable(c))
		status_line_hide(&c->status);
	pthread_mutex_unlock(&c->out);
}
