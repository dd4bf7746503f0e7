/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/run.h"

#include "base/clock.h"
#include "vmm/attach/attach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define CONSOLE_FLUSH_NS 50000000u
/* The status line is drawn so often, and tells of the last second or two. */
#define STATUS_NS 200000000u
#define STATUS_SPAN_NS 1000000000u

static const int end_signals[] = { SIGINT, SIGTERM, SIGHUP };
#define END_SIGNALS (sizeof(end_signals) / sizeof(end_signals[0]))

/*
 * Signals come to signal_fd, but not while the guest runs: whoever waits for a signalfd is woken by each signal to any thread of
 * the process (Linux, fs/signalfd.c, signalfd_notify()), and samples are such signals. Then they come to a handler.
 */
static volatile sig_atomic_t end_came, stop_came;
static struct sigaction end_before[END_SIGNALS], stop_before;
static bool end_handled;

static void on_signal(int signo)
{
	if (signo == SIGTSTP)
		stop_came = 1;
	else
		end_came = 1;
}

static void signals_of_ours(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < END_SIGNALS; i++)
		sigaddset(set, end_signals[i]);
}

static void handle_stops(void)
{
	(void)sigaction(SIGTSTP, &(struct sigaction){ .sa_handler = on_signal }, &stop_before);
}

void run_block_signals(void)
{
	sigset_t set;

	signals_of_ours(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int run_take_signals(struct run *r, struct err *e)
{
	sigset_t set;

	run_block_signals();
	signals_of_ours(&set);
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; !end_handled && i < END_SIGNALS; i++)
		(void)sigaction(end_signals[i], &(struct sigaction){ .sa_handler = on_signal },
				&end_before[i]);
	end_handled = true;
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signal_fd < 0 ? err_set(e, errno, "signalfd: %s", strerror(errno)) : 0;
}

/* Those that came are done with: the next one asks for something else. */
static void forget_signals(struct run *r)
{
	struct signalfd_siginfo info;

	while (r->signal_fd >= 0 && read(r->signal_fd, &info, sizeof(info)) > 0)
		;
	end_came = stop_came = 0;
}

void run_leave_signals(struct run *r)
{
	sigset_t set;

	forget_signals(r);
	for (size_t i = 0; end_handled && i < END_SIGNALS; i++)
		(void)sigaction(end_signals[i], &end_before[i], NULL);
	end_handled = false;
	signals_of_ours(&set);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Did the guest end without being asked, however long that took? */
static bool has_ended_by_itself(const struct run *r)
{
	switch (vm_result(r->vm)->reason) {
	case VM_END_RESET:
	case VM_END_POWEROFF:
	case VM_END_EXIT:
	case VM_END_HALTED:
	case VM_END_TRIPLE_FAULT:
		return r->opt->duration_s <= 0;
	default:
		return false;
	}
}

void run_drain_console(struct run *r)
{
	console_drain(&r->console, has_ended_by_itself(r) ? CONSOLE_FOR_EVER : CONSOLE_SHORTLY,
		      r->signal_fd);
}

static void stop_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTSTP);
	/* A background process that blocks SIGTTOU may write to its terminal (POSIX, 11.1.4). */
	sigaddset(set, SIGTTIN);
	sigaddset(set, SIGTTOU);
}

int run_take_stops(struct run *r, struct err *e)
{
	sigset_t set;

	stop_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	r->takes_stops = true;
	handle_stops();
	signals_of_ours(&set);
	sigaddset(&set, SIGTSTP);
	return signalfd(r->signal_fd, &set, 0) < 0
		       ? err_set(e, errno, "signalfd: %s", strerror(errno))
		       : 0;
}

void run_give_stops_back(struct run *r)
{
	sigset_t set;

	if (!r->takes_stops)
		return;
	r->takes_stops = false;
	(void)sigaction(SIGTSTP, &stop_before, NULL);
	stop_signals(&set);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* As the signal would have done it, which does nothing where nobody could continue us. */
static void stop_process(struct run *r)
{
	sigset_t set;

	if (r->vm)
		vm_attach_rest(r->vm);
	console_hide_status(&r->console);
	(void)sigaction(SIGTSTP, &stop_before, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	kill(getpid(), SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	/* SIGCONT has come. */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	handle_stops();
	if (r->vm)
		vm_attach_resume(r->vm);
}

bool run_is_to_end(struct run *r)
{
	struct signalfd_siginfo info;
	bool end = end_came, stop = stop_came;

	end_came = stop_came = 0;
	while (read(r->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		stop |= info.ssi_signo == SIGTSTP;
		end |= info.ssi_signo != SIGTSTP;
	}
	if (stop && !end)
		stop_process(r);
	return end;
}

static void forward_input(struct run *r, struct pollfd *stdin_poll)
{
	uint8_t bytes[64];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n <= 0)
		stdin_poll->fd = -1;
	else
		vm_console_input(r->vm, bytes, (size_t)n);
}

static void read_figures(struct run *r, struct status_figures *f)
{
	uint64_t first = vm_first_entry_ns(r->vm);

	*f = (struct status_figures){
		.elapsed_ns = first ? vm_now_ns(r->vm) - first : 0,
		.collecting = vm_is_collecting(r->vm),
	};
	for (unsigned int i = 0; i < vm_vcpus(r->vm); i++) {
		const struct vcpu_stats st = vm_stats(r->vm, i);

		f->samples += st.samples;
		f->kernel += st.kernel;
		f->user += st.user;
		f->idle += st.idle;
		f->lost += ring_dropped(vm_ring(r->vm, i));
	}
}

static void draw_status(struct run *r, uint64_t now)
{
	char text[STATUS_LINE_MAX];
	struct status_figures f;

	if (!status_line_is_on(&r->console.status) || !clock_is_due(now, r->status_ns, STATUS_NS))
		return;
	r->status_ns = now;
	read_figures(r, &f);
	status_line_text(text, &f, &r->status_before);
	console_status(&r->console, text);
	if (f.elapsed_ns - r->status.elapsed_ns >= STATUS_SPAN_NS) {
		r->status_before = r->status;
		r->status = f;
	}
}

/* Of these descriptors; a signal of ours ends it, too, and no other one wakes this thread. */
static void wait_for_any(const struct run *r, struct pollfd *fds, nfds_t n, uint64_t ns)
{
	const struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	sigset_t open;

	pthread_sigmask(SIG_SETMASK, NULL, &open);
	for (size_t i = 0; i < END_SIGNALS; i++)
		sigdelset(&open, end_signals[i]);
	if (r->takes_stops)
		sigdelset(&open, SIGTSTP);
	if (ppoll(fds, n, &t, &open) < 0)
		for (nfds_t i = 0; i < n; i++)
			fds[i].revents = 0;
}

static void wait_for_end(struct run *r)
{
	struct pollfd fds[] = {
		{ .fd = vm_end_fd(r->vm), .events = POLLIN },
		/* Only a person's keyboard: a script's stdin is not ours to eat. */
		{ .fd = isatty(STDIN_FILENO) && !r->opt->quiet ? STDIN_FILENO : -1,
		  .events = POLLIN },
		{ .fd = r->markers.wake_fd, .events = POLLIN },
		{ .fd = r->domain ? libvirt_watch_fd(r->domain->watch) : -1, .events = POLLIN },
	};

	const struct run_machine machine = {
		.opt = r->opt,
		.source = &r->source,
		.exec = &r->exec,
		.vm = r->vm,
		.cmdline = (const char *)r->cmdline.data,
	};

	for (;;) {
		uint64_t now = clock_mono_ns(), deadline = UINT64_MAX;

		/* Of an exact machine the moments are those of its samples (prepare.c). */
		if (r->opt->engine == RUN_ENGINE_KVM)
			deadline = run_markers_look(&r->markers, r->vm, now);
		if (run_markers_snapshot_due(&r->markers, r->vm))
			run_snapshot_take(&r->snapshot, &machine);
		if (now >= deadline)
			return;
		wait_for_any(r, fds, sizeof(fds) / sizeof(fds[0]),
			     deadline - now < CONSOLE_FLUSH_NS ? deadline - now : CONSOLE_FLUSH_NS);
		console_flush(&r->console);
		draw_status(r, clock_mono_ns());
		if (r->tick)
			r->tick(r, clock_mono_ns());
		run_has_crashed(r);
		if (fds[3].revents & POLLIN) {
			vm_end(r->vm, VM_END_STOPPED);
			attach_domain_wait(r->domain, r->signal_fd);
			return;
		}
		if (fds[0].revents) {
			if (r->domain && vm_result(r->vm)->reason == VM_END_GONE)
				attach_domain_wait(r->domain, r->signal_fd);
			return;
		}
		if (run_is_to_end(r)) {
			vm_end(r->vm, VM_END_INTERRUPTED);
			return;
		}
		if (fds[1].revents)
			forward_input(r, &fds[1]);
	}
}

void run_wait(struct run *r)
{
	wait_for_end(r);
	console_end(&r->console);
	console_hide_status(&r->console);
}
