/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/wait.h"

#include "base/clock.h"
#include "base/signals.h"
#include "profile/record/run/run.h"
#include "vmm/attach/attach.h"
#include "base/ring.h"
#include "vmm/attach/foreign.h"
#include "vmm/control.h"
#include "vmm/devices.h"
#include "vmm/vm.h"
#include "vmm/end.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CONSOLE_FLUSH_NS 50000000u
/* The status line is drawn at this interval, and shows rates of the last second or two. */
#define STATUS_NS 200000000u
#define STATUS_SPAN_NS 1000000000u

static volatile sig_atomic_t stop_came;
static struct sigaction stop_before;

static void on_stop(int signo)
{
	(void)signo;
	stop_came = 1;
	signals_wake();
}

static void handle_stops(void)
{
	(void)sigaction(SIGTSTP,
			&(struct sigaction){ .sa_handler = on_stop, .sa_flags = SA_RESTART },
			&stop_before);
}

int run_catch_signals(struct run *r, struct err *e)
{
	signal(SIGPIPE, SIG_IGN);
	signals_set(SIGNALS_END);
	r->signals.fd = signals_fd();
	return r->signals.fd < 0 ? err_set(e, errno, "eventfd: %s", strerror(errno)) : 0;
}

void run_report_signals(void)
{
	signals_set(SIGNALS_REPORT);
}

void run_watch_start(const struct run *r)
{
	signals_set(r->opt->engine == RUN_ENGINE_EXACT ? SIGNALS_REPORT : SIGNALS_WATCH);
}

void run_watch_end(void)
{
	signals_set(SIGNALS_REPORT);
	signals_watch(false);
}

void run_restore_signals(void)
{
	(void)signals_take();
	stop_came = 0;
	signals_set(SIGNALS_END);
}

/* Returns whether the guest ended by itself, however long that took. */
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
		      r->signals.fd);
}

/* A background process that blocks SIGTTOU may write to its terminal (POSIX, 11.1.4). */
static void terminal_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTTIN);
	sigaddset(set, SIGTTOU);
}

void run_catch_stop_signals(struct run *r)
{
	sigset_t set;

	terminal_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	r->signals.takes_stops = true;
	handle_stops();
}

void run_restore_stop_signals(struct run *r)
{
	sigset_t set;

	if (!r->signals.takes_stops)
		return;
	r->signals.takes_stops = false;
	(void)sigaction(SIGTSTP, &stop_before, NULL);
	terminal_signals(&set);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/*
 * Stops the process as the signal would have done, which does nothing if no process could continue
 * it.
 */
static void stop_process(struct run *r)
{
	if (r->vm)
		foreign_suspend(r->vm);
	console_hide_status(&r->console);
	(void)sigaction(SIGTSTP, &stop_before, NULL);
	/* This thread's filter of system calls allows tgkill(2) to itself, but not kill(2). */
	(void)syscall(SYS_tgkill, getpid(), getpid(), SIGTSTP);
	/* The process was continued. */
	handle_stops();
	if (r->vm)
		foreign_resume(r->vm);
}

bool run_must_end(struct run *r)
{
	bool end = signals_take(), stop = stop_came;

	stop_came = 0;
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

	if (!status_line_is_on(&r->console.status) ||
	    !clock_is_due(now, r->status.drawn_ns, STATUS_NS))
		return;
	r->status.drawn_ns = now;
	read_figures(r, &f);
	status_line_text(text, &f, &r->status.before);
	console_status(&r->console, text);
	if (f.elapsed_ns - r->status.now.elapsed_ns >= STATUS_SPAN_NS) {
		r->status.before = r->status.now;
		r->status.now = f;
	}
}

static void wait_for_any(struct pollfd *fds, nfds_t n, uint64_t ns)
{
	const struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	if (ppoll(fds, n, &t, NULL) < 0)
		for (nfds_t i = 0; i < n; i++)
			fds[i].revents = 0;
}

/* Boots the guest again after it has reset itself. */
static void boot_again(struct run *r)
{
	struct err e = { 0 };
	int ret = vm_boot_again(r->vm, &e);

	if (!ret)
		run_panic_boot_again(r, clock_mono_ns());
	if (!ret || ret == -ECANCELED)
		return;
	reporter_printf(r->opt->reporter, "kvmprof: the guest cannot boot again: %s\n", e.text);
	vm_end(r->vm, VM_END_ERROR);
}

static uint64_t look_at_markers(struct run *r, uint64_t now)
{
	r->markers.named_ns = r->pipeline ? pipeline_named_ns(r->pipeline) : 0;
	return run_markers_handle(&r->markers, r->vm, now);
}

static void wait_for_end(struct run *r)
{
	struct pollfd fds[] = {
		{ .fd = vm_end_fd(r->vm), .events = POLLIN },
		/* Only a terminal is read: a script's stdin is left to the script. */
		{ .fd = isatty(STDIN_FILENO) && !r->opt->quiet && !run_options_is_attached(r->opt)
				? STDIN_FILENO
				: -1,
		  .events = POLLIN },
		{ .fd = r->markers.wake_fd, .events = POLLIN },
		{ .fd = r->domain ? libvirt_watch_fd(r->domain->watch) : -1, .events = POLLIN },
		{ .fd = r->signals.fd, .events = POLLIN },
		{ .fd = r->launched.launch.out, .events = POLLIN },
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

		/* The moments of an exact machine are those of its samples (prepare.c). */
		if (r->opt->engine == RUN_ENGINE_KVM) {
			deadline = look_at_markers(r, now);
			run_panic_check(r, now);
			if (run_alarm_check(r, now))
				vm_end(r->vm, r->alarm.panic_told ? VM_END_PANIC : VM_END_HUNG);
		}
		run_panic_report(r);
		if (vm_reset_is_due(r->vm))
			boot_again(r);
		if (run_markers_snapshot_due(&r->markers, r->vm))
			run_snapshot_take(&r->snapshot, &machine);
		if (now >= run_launched_deadline_ns(r)) {
			r->launched.timed_out = true;
			vm_end(r->vm, VM_END_DURATION);
			return;
		}
		if (now >= deadline)
			return;
		wait_for_any(fds, sizeof(fds) / sizeof(fds[0]),
			     deadline - now < CONSOLE_FLUSH_NS ? deadline - now : CONSOLE_FLUSH_NS);
		if (fds[5].revents) {
			run_launched_copy_output(&r->launched, &r->console);
			fds[5].fd = r->launched.launch.out;
		}
		console_flush(&r->console);
		draw_status(r, clock_mono_ns());
		if (r->tick)
			r->tick(r, clock_mono_ns());
		run_has_crashed(r);
		if (fds[3].revents & POLLIN) {
			vm_end(r->vm, VM_END_STOPPED);
			attach_domain_wait(r->domain, r->signals.fd);
			return;
		}
		if (fds[0].revents) {
			if (r->domain && vm_result(r->vm)->reason == VM_END_GONE)
				attach_domain_wait(r->domain, r->signals.fd);
			return;
		}
		if (run_must_end(r)) {
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

/*
 * Says why the machine has ended, for a caller that waits for something else. A sampler that failed ends it, too: then its
 * process may well go on.
 */
static int run_ended(const struct run *r, struct err *e)
{
	const struct vm_result *end = vm_result(r->vm);

	if (end->reason == VM_END_ERROR && end->err.code)
		return err_set(e, ESRCH, "%s", end->err.text);
	return err_set(e, ESRCH, "%s", vm_end_name(end->reason));
}

int run_nap(struct run *r, double ms, struct err *e)
{
	struct pollfd fds[] = {
		{ .fd = r->signals.fd, .events = POLLIN },
		{ .fd = vm_end_fd(r->vm), .events = POLLIN },
	};
	uint64_t end = clock_mono_ns() + (uint64_t)(ms * 1e6), now;

	while ((now = clock_mono_ns()) < end) {
		int n = poll(fds, 2, (int)((end - now) / 1000000) + 1);

		if (n > 0 && fds[0].revents && run_must_end(r))
			return err_set(e, EINTR, "interrupted");
		if (n > 0 && fds[1].revents)
			return run_ended(r, e);
	}
	return 0;
}

void run_leave(struct run *r)
{
	vm_end(r->vm, VM_END_ASKED);
	vm_join(r->vm);
	run_restore_stop_signals(r);
}
