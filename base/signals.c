/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/signals.h"

#include "base/clock.h"
#include "base/reporter.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int end_signals[] = { SIGINT, SIGTERM, SIGHUP };
#define END_IGNORED 2 /* the first two; SIGHUP stays ignored under nohup(1) */
#define END_SIGNALS (sizeof(end_signals) / sizeof(end_signals[0]))

#define WATCH_MS 100u
/*
 * A watched process that works for at least 1 / WORKS_PART of the time is not ended; a process that
 * only polls for a reply works less. On a host that takes the processor away for milliseconds, that
 * time counts as work of the process that ran.
 */
#define WORKS_PART 25u

static struct {
	pid_t owner; /* a child of this process keeps its handlers until execve(2) */
	int fd;
	volatile sig_atomic_t mode, came, last, watching;
	/* While watched: time without work, minus WORKS_PART times the work since then. */
	int idle_ms;
	uint64_t worked_ns; /* processor time of the process at the end of the last check */
	uint64_t first_ns;  /* used by the handler only, in which these signals are blocked */
	volatile sig_atomic_t noted[SIGNALS_MAX_FILES];
	char file[SIGNALS_MAX_FILES][PATH_MAX];
} signals = { .fd = -1 };

/* Removes the noted files and ends the process as the signal does by default. */
static void signals_die(int signo)
{
	sigset_t set;
	pid_t pid = getpid();

	for (unsigned int i = 0; pid == signals.owner && i < SIGNALS_MAX_FILES; i++)
		if (signals.noted[i] && unlink(signals.file[i]) < 0 && errno == EISDIR)
			(void)rmdir(signals.file[i]);
	(void)sigaction(signo, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	sigemptyset(&set);
	sigaddset(&set, signo);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	/*
	 * Sent to the main thread, whose list of system calls allows it; the signal ends the whole
	 * process.
	 */
	(void)syscall(SYS_tgkill, pid, pid, signo);
	syscall(SYS_exit_group, 128 + signo);
}

/* Returns whether the process has been idle for too long. Called in the handler every WATCH_MS. */
static bool signals_are_idle(void)
{
	uint64_t worked_ms = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - signals.worked_ns) / 1000000;

	if (worked_ms < WATCH_MS)
		signals.idle_ms += (int)WATCH_MS - (int)(WORKS_PART * worked_ms);
	if (worked_ms >= WATCH_MS || signals.idle_ms < 0)
		signals.idle_ms = 0;
	/*
	 * The clock is read again, so that time which the handler lost to other processes does not
	 * count as work.
	 */
	signals.worked_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	return signals.idle_ms >= SIGNALS_GRACE_MS;
}

static void on_alarm(int signo)
{
	static const char line[] =
		"kvmprof: cannot end cleanly: the process that it waits for does not answer\n";

	(void)signo;
	if (signals.watching && !signals_are_idle())
		return;
	reporter_write_raw(line, sizeof(line) - 1);
	signals_die(signals.last ? signals.last : SIGTERM);
}

static void signals_alarm(unsigned int ms, bool again)
{
	const struct timeval t = { ms / 1000, ms % 1000 * 1000 };
	const struct itimerval when = { .it_value = t,
					.it_interval = again ? t : (struct timeval){ 0 } };

	(void)setitimer(ITIMER_REAL, &when, NULL);
}

/* Starts the grace period. Called in the handler. */
static void signals_give_grace(void)
{
	signals.watching = 0;
	signals_alarm(SIGNALS_GRACE_MS, false);
}

void signals_watch(bool on)
{
	signals.idle_ms = 0;
	signals.worked_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	signals.watching = on;
	signals_alarm(on ? WATCH_MS : 0, on);
}

static void on_end(int signo)
{
	int saved = errno;
	uint64_t now = clock_mono_ns();

	signals.last = signo;
	if (signals.mode == SIGNALS_END || getpid() != signals.owner)
		signals_die(signo);
	signals.came = 1;
	signals_wake();
	if (signals.mode == SIGNALS_WATCH && !signals.first_ns)
		signals_watch(true);
	else if (signals.mode == SIGNALS_GRACE ||
		 (signals.first_ns &&
		  now - signals.first_ns > SIGNALS_AGAIN_MS * UINT64_C(1000000)))
		signals_give_grace();
	if (!signals.first_ns)
		signals.first_ns = now;
	errno = saved;
}

static void signals_install(bool ignored, unsigned int n)
{
	struct sigaction sa = { .sa_handler = on_end, .sa_flags = SA_RESTART }, before;

	for (unsigned int i = 0; i < END_SIGNALS; i++)
		sigaddset(&sa.sa_mask, end_signals[i]);
	sigaddset(&sa.sa_mask, SIGALRM);
	for (unsigned int i = 0; i < n; i++)
		if (sigaction(end_signals[i], NULL, &before) == 0 &&
		    (ignored || before.sa_handler != SIG_IGN))
			(void)sigaction(end_signals[i], &sa, NULL);
}

void signals_init(void)
{
	signals.owner = getpid();
	signals.mode = SIGNALS_END;
	signals.came = signals.watching = 0;
	signals.first_ns = 0;
	for (unsigned int i = 0; i < SIGNALS_MAX_FILES; i++)
		signals.noted[i] = 0;
	if (signals.fd >= 0) /* inherited from the parent */
		close(signals.fd);
	signals.fd = -1;
	(void)sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm }, NULL);
	signals_install(/* ignored= */ false, END_SIGNALS);
}

void signals_set(enum signals_mode mode)
{
	if (signals.fd < 0)
		signals.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	signals_install(/* ignored= */ true, END_IGNORED);
	signals.mode = mode;
}

int signals_fd(void)
{
	return signals.fd;
}

bool signals_take(void)
{
	uint64_t count;
	bool came;

	(void)!read(signals.fd, &count, sizeof(count));
	came = signals.came;
	signals.came = 0;
	return came;
}

bool signals_pending(void)
{
	return signals.came;
}

void signals_wake(void)
{
	uint64_t one = 1;

	if (signals.fd >= 0)
		(void)!write(signals.fd, &one, sizeof(one));
}

int signals_remove(const char *path)
{
	int i = 0;

	while (i < SIGNALS_MAX_FILES && signals.noted[i])
		i++;
	if (i == SIGNALS_MAX_FILES || strlen(path) >= sizeof(signals.file[i]))
		return -1;
	strcpy(signals.file[i], path);
	signals.noted[i] = 1;
	return i;
}

void signals_keep(int file)
{
	if (file >= 0 && file < SIGNALS_MAX_FILES)
		signals.noted[file] = 0;
}
