/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/child.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/file.h"
#include "base/reporter.h"
#include "vmm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS_MAX 96u
#define ARG_LEN 768u
#define READY_LOOK_MS 100

/* Descriptor numbers in the child. */
enum {
	FD_RAM = 10,
	FD_SHARED,
	FD_REQUEST,
	FD_ANSWER,
	FD_CONSOLE,
	FD_MONITOR,
	FD_KERNEL,
	FD_INITRD,
	FD_COUNTS,
	FD_TRACE,
	FD_SYNC,
	FD_DISK,
	FD_END = FD_DISK + EXACT_MAX_DISKS
};

struct args {
	const char *at[ARGS_MAX + 1];
	char text[ARGS_MAX][ARG_LEN]; /* texts that had to be formatted */
	char plugin[ENGINE_PLUGIN_ROOM];
	unsigned int n;
	char api[40]; /* environment variable with the interface version that this QEMU accepts */
};

void child_init(struct child *c)
{
	*c = (struct child){
		.pidfd = -1,
		.ram = -1,
		.shared_fd = -1,
		.request = -1,
		.answer = -1,
		.console = -1,
		.errors = -1,
		.monitor = -1,
		.kernel = -1,
		.initrd = -1,
		.counts = -1,
		.trace = -1,
		.sync = -1,
	};
}

/* -- what it is given ----------------------------------------------------------------------- */

static int memory_file(const char *name, const struct exact_bytes *b, int *out, struct err *e)
{
	int ret = file_in_memory(name, 0, out, e);

	if (ret)
		return ret;
	ret = b->len ? file_write_all(*out, b->data, b->len) : 0;
	return ret ? err_set(e, -ret, "no memory for the %s: %s", name, strerror(-ret))
		   : file_seal(*out, FILE_SEAL_ALL, name, e);
}

/*
 * Creates a file whose size is sealed: a shrunken file would make reads of the mapping raise
 * SIGBUS.
 */
static int sized_file(const char *name, uint64_t size, int *out, struct err *e)
{
	int ret = file_in_memory(name, size, out, e);

	return ret ? ret : file_seal(*out, FILE_SEAL_SIZE, name, e);
}

static int make_shared(struct child *c, const struct exact_config *cfg, struct err *e)
{
	void *at;
	int ret = sized_file("shared page", EXACT_SHARED_LEN, &c->shared_fd, e);

	if (ret)
		return ret;
	at = mmap(NULL, EXACT_SHARED_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, c->shared_fd, 0);
	if (at == MAP_FAILED)
		return err_set(e, errno, "shared page: %s", strerror(errno));
	c->shared = at;
	c->nplaces = exact_places_init(c->shared, cfg);
	return 0;
}

/* -- its command line ----------------------------------------------------------------------- */

static void args_add(struct args *a, const char *text)
{
	if (a->n < ARGS_MAX)
		a->at[a->n++] = text;
}

static void args_put(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void args_put(struct args *a, const char *fmt, ...)
{
	char *text = a->text[a->n < ARGS_MAX ? a->n : 0];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, ARG_LEN, fmt, ap);
	va_end(ap);
	args_add(a, text);
}

static uint64_t disk_bytes(const struct child *c)
{
	uint64_t all = 0;

	for (unsigned int i = 0; i < c->ndisks; i++)
		all += c->disk[i].size;
	return all;
}

/*
 * Adds a disk. The image is opened read-only; with rom=off the guest can write to its private
 * copy.
 */
static void args_disk(struct args *a, const struct nvdimm *n, unsigned int i)
{
	args_add(a, "-object");
	args_put(a,
		 "memory-backend-file,id=disk%u,size=%lluM,mem-path=/proc/self/fd/%u,share=off,"
		 "readonly=on,rom=%s",
		 i, (unsigned long long)(n->size >> 20), FD_DISK + i, n->read_only ? "on" : "off");
	args_add(a, "-device");
	args_put(a, "nvdimm,memdev=disk%u%s", i, n->read_only ? ",unarmed=on" : "");
}

static void args_machine(struct args *a, const struct child *c, const struct exact_config *cfg)
{
	unsigned long long mib = cfg->mem_size >> 20;

	args_add(a, "-no-user-config");
	args_add(a, "-nodefaults");
	args_add(a, "-display");
	args_add(a, "none");
	if (!cfg->reboots)
		args_add(a, "-no-reboot");
	args_add(a, "-machine");
	args_add(a, c->ndisks ? "pc,hpet=off,memory-backend=ram,nvdimm=on"
			      : "pc,hpet=off,memory-backend=ram");
	args_add(a, "-accel");
	args_add(a, "tcg,thread=single");
	args_add(a, "-cpu");
	args_add(a, EXACT_CPU_MODEL);
	args_add(a, "-smp");
	args_put(a, "%u", cfg->vcpus);
	args_add(a, "-m");
	if (c->ndisks)
		args_put(a, "%lluM,slots=%u,maxmem=%lluM", mib, c->ndisks,
			 mib + (unsigned long long)(disk_bytes(c) >> 20));
	else
		args_put(a, "%lluM", mib);
	args_add(a, "-object");
	args_put(a, "memory-backend-file,id=ram,size=%lluM,mem-path=/proc/self/fd/%d,share=on", mib,
		 FD_RAM);
	args_add(a, "-icount");
	args_put(a, "shift=%u,sleep=off,align=off", EXACT_SHIFT);
	args_add(a, "-rtc");
	args_add(a, "base=" EXACT_RTC ",clock=vm");
	args_add(a, "-seed");
	args_add(a, "1");
	args_add(a, "-chardev");
	args_put(a, "file,id=console,path=/proc/self/fd/%d", FD_CONSOLE);
	args_add(a, "-serial");
	args_add(a, "chardev:console");
	args_add(a, "-chardev");
	args_put(a, "socket,id=monitor,fd=%d", FD_MONITOR);
	args_add(a, "-mon");
	args_add(a, "chardev=monitor,mode=control");
	args_add(a, "-device");
	args_put(a, "isa-debug-exit,iobase=%#x,iosize=%u", PORT_DEBUG_EXIT, PORT_DEBUG_EXIT_LEN);
	for (unsigned int i = 0; i < c->ndisks; i++)
		args_disk(a, &c->disk[i], i);
	args_add(a, "-d"); /* makes QEMU log "Triple fault" */
	args_add(a, "cpu_reset");
	args_add(a, "-sandbox");
	args_add(a, "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
}

static void args_plugin(struct args *a, const struct engine *n, const struct exact_config *cfg)
{
	const struct exact_trace *t = cfg->trace;
	char *option = a->plugin;
	size_t len = engine_plugin_argument(n, option);

	len += (size_t)snprintf(option + len, sizeof(a->plugin) - len,
				",memory=%d,request=%d,answer=%d", FD_SHARED, FD_REQUEST,
				FD_ANSWER);
	if (cfg->counts)
		len += (size_t)snprintf(option + len, sizeof(a->plugin) - len, ",counts=%d",
					FD_COUNTS);
	if (t && t->fd >= 0)
		len += (size_t)snprintf(option + len, sizeof(a->plugin) - len,
					",trace=%d,step=%" PRIu64, FD_TRACE, t->plan.step);
	for (unsigned int i = 0; t && t->fd >= 0 && i < TRACE_WINDOWS; i++)
		len += (size_t)snprintf(option + len, sizeof(a->plugin) - len,
					",from%u=%" PRIu64 ",to%u=%" PRIu64, i,
					t->plan.window[i].from, i, t->plan.window[i].to);
	args_add(a, "-plugin");
	args_add(a, option);
}

static void make_args(struct child *c, struct args *a, const struct engine *n,
		      const struct exact_config *cfg)
{
	size_t len = 0;

	a->n = 0;
	args_add(a, n->qemu);
	args_machine(a, c, cfg);
	for (unsigned int i = 1; i < a->n && len < sizeof(c->machine); i++)
		len += (size_t)snprintf(c->machine + len, sizeof(c->machine) - len, "%s%s",
					i > 1 ? " " : "", a->at[i]);
	args_plugin(a, n, cfg);
	args_add(a, "-kernel");
	args_put(a, "/proc/self/fd/%d", FD_KERNEL);
	if (cfg->initrd.len) {
		args_add(a, "-initrd");
		args_put(a, "/proc/self/fd/%d", FD_INITRD);
	}
	args_add(a, "-append");
	args_add(a, cfg->cmdline);
	a->at[a->n] = NULL;
}

/* -- the process ---------------------------------------------------------------------------- */

struct start {
	const int *from; /* descriptors, by FD_* */
	int errors;
	const struct exact_jail *jail; /* NULL: none */
	const struct args *args;
};

/* Ends the child after writing one line for the parent. */
static void child_fails(const char *what, const char *why)
{
	char text[512];
	int n = snprintf(text, sizeof(text) - 1, "%s: %s", what, why);
	size_t len = n < (int)sizeof(text) - 1 ? (size_t)n : sizeof(text) - 2;

	text[len] = '\n';
	reporter_write_raw(text, len + 1);
	syscall(SYS_exit_group, 127);
}

/*
 * Returns whether the parent still exists. It writes one byte when everything is ready, and keeps
 * its end of the socket open. waits: block until the byte has come.
 */
static bool parent_is_there(int sync, bool waits)
{
	struct pollfd p = { .fd = sync, .events = POLLIN };
	char byte;

	if (waits)
		return read(sync, &byte, 1) == 1;
	return poll(&p, 1, 0) == 0;
}

/* Executes QEMU without our environment, which may contain secrets. */
static void child_execs(const struct args *a)
{
	const char *const env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", a->api, NULL };

	execve(a->at[0], (char *const *)a->at, (char *const *)env);
	child_fails(a->at[0], strerror(errno));
}

/* Runs in the child, between clone and exec. */
static void child_becomes(const struct start *s)
{
	const char *what = "";
	sigset_t none;
	int ret;

	if (dup2(s->errors, STDERR_FILENO) < 0 ||
	    !parent_is_there(s->from[FD_SYNC - FD_RAM], /* waits= */ true))
		syscall(SYS_exit_group, 127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0); /* QEMU must not receive Ctrl-C; the parent acts on it */
	if (dup2(open("/dev/null", O_RDWR | O_CLOEXEC), STDIN_FILENO) < 0 ||
	    dup2(STDIN_FILENO, STDOUT_FILENO) < 0)
		child_fails("/dev/null", strerror(errno));
	for (int i = 0; i < FD_END - FD_RAM; i++)
		if (s->from[i] >= 0 && dup2(s->from[i], FD_RAM + i) < 0)
			child_fails("descriptors", strerror(errno));
	fcntl(FD_SYNC, F_SETFD, FD_CLOEXEC);
	fds_close_range(FD_END, UINT_MAX);
	ret = s->jail ? s->jail->enter(s->jail->ctx, &what) : 0;
	if (ret) {
		char text[200];

		snprintf(text, sizeof(text), "it cannot be confined: %s", what);
		child_fails(text, strerror(-ret));
	}
	/* A change of the user ID would reset it, so it is set after that. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!parent_is_there(FD_SYNC, /* waits= */ false))
		syscall(SYS_exit_group, 127);
	child_execs(s->args);
}

/* Moves fd out of the range of numbers that the child uses. */
static int move_up(int fd)
{
	int up = fcntl(fd, F_DUPFD_CLOEXEC, FD_END);

	if (fd >= 0)
		close(fd);
	return up;
}

/* The child's ends of the pipes and sockets. */
struct ends {
	int console, errors, monitor, request, answer, sync;
};

/* Works like fork(2), with namespaces. The process has only one thread now. */
static pid_t clone_child(const struct exact_jail *jail)
{
	return jail && jail->namespaces ? (pid_t)syscall(SYS_clone, jail->namespaces | SIGCHLD,
							 NULL, NULL, NULL, NULL)
					: fork();
}

static int run_child(struct child *c, const struct args *a, const struct ends *ends,
		     const struct exact_jail *jail, struct err *e)
{
	int from[FD_END - FD_RAM] = {
		[FD_RAM - FD_RAM] = c->ram,
		[FD_SHARED - FD_RAM] = c->shared_fd,
		[FD_REQUEST - FD_RAM] = ends->request,
		[FD_ANSWER - FD_RAM] = ends->answer,
		[FD_CONSOLE - FD_RAM] = ends->console,
		[FD_MONITOR - FD_RAM] = ends->monitor,
		[FD_KERNEL - FD_RAM] = c->kernel,
		[FD_INITRD - FD_RAM] = c->initrd,
		[FD_COUNTS - FD_RAM] = c->counts,
		[FD_TRACE - FD_RAM] = c->trace,
		[FD_SYNC - FD_RAM] = ends->sync,
	};
	const struct start s = { from, ends->errors, jail, a };
	pid_t pid;
	int ret;

	for (unsigned int i = 0; i < EXACT_MAX_DISKS; i++)
		from[FD_DISK - FD_RAM + i] = i < c->ndisks ? c->disk[i].fd : -1;
	/* QEMU opens the console again, by name. */
	if (jail && jail->uid != geteuid() && fchown(ends->console, jail->uid, (gid_t)-1) < 0)
		return err_set(e, errno, "cannot give QEMU its console: %s", strerror(errno));
	pid = clone_child(jail);
	if (pid < 0)
		return err_set(e, errno, "cannot start QEMU: %s", strerror(errno));
	if (!pid) {
		close(c->sync);
		child_becomes(&s);
	}
	c->pid = pid;
	c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	ret = c->pidfd < 0 ? -errno : jail ? jail->made(jail->ctx, pid) : 0;
	if (!ret && write(c->sync, "", 1) == 1)
		return 0;
	ret = ret ? ret : -errno;
	kill(pid, SIGKILL);
	return err_set(e, -ret, "cannot confine QEMU: %s", strerror(-ret));
}

static int set_nonblocking(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/*
 * Stores both ends. The program's end is non-blocking, because QEMU determines when it is full or
 * empty.
 */
static int make_end(const int pair[2], int *ours, int *childs)
{
	*ours = move_up(pair[0]);
	*childs = move_up(pair[1]);
	return *ours < 0 || *childs < 0 || set_nonblocking(*ours) < 0 ? -EMFILE : 0;
}

static int make_pipe(int *ours, int *childs)
{
	int pair[2];

	return pipe2(pair, O_CLOEXEC) < 0 ? -errno : make_end(pair, ours, childs);
}

/*
 * Tokens use sockets instead of eventfds: QEMU could fill an eventfd, which blocks its writer, or
 * empty it, which blocks its reader.
 */
static int make_socket(int type, int *ours, int *childs)
{
	int pair[2];

	return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) < 0 ? -errno
								     : make_end(pair, ours, childs);
}

static void close_ends(const struct ends *ends)
{
	const int fd[] = { ends->console, ends->errors, ends->monitor,
			   ends->request, ends->answer, ends->sync };

	for (unsigned int i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

static int make_ends(struct child *c, struct ends *ends)
{
	int ret = make_pipe(&c->console, &ends->console);

	if (ret)
		return ret;
	ret = make_pipe(&c->errors, &ends->errors);
	if (ret)
		return ret;
	ret = make_socket(SOCK_STREAM, &c->monitor, &ends->monitor);
	if (ret)
		return ret;
	ret = make_socket(SOCK_SEQPACKET, &c->request, &ends->request);
	if (ret)
		return ret;
	ret = make_socket(SOCK_SEQPACKET, &c->answer, &ends->answer);
	return ret ? ret : make_socket(SOCK_STREAM, &c->sync, &ends->sync);
}

static int start_with_pipes(struct child *c, const struct args *a, const struct exact_jail *jail,
			    struct err *e)
{
	struct ends ends = { -1, -1, -1, -1, -1, -1 };
	int ret = make_ends(c, &ends);

	if (ret)
		err_set(e, -ret, "no descriptors for QEMU: %s", strerror(-ret));
	for (int *fd = &c->ram; !ret && fd <= &c->shared_fd; fd++)
		*fd = move_up(*fd);
	if (!ret) {
		c->kernel = move_up(c->kernel);
		if (c->initrd >= 0)
			c->initrd = move_up(c->initrd);
		if (c->counts >= 0)
			c->counts = move_up(c->counts);
		for (unsigned int i = 0; i < c->ndisks; i++)
			c->disk[i].fd = move_up(c->disk[i].fd);
		ret = run_child(c, a, &ends, jail, e);
	}
	close_ends(&ends);
	return ret;
}

static int open_disks(struct child *c, const struct exact_config *cfg, struct err *e)
{
	int ret = 0;

	while (!ret && c->ndisks < cfg->ndisks) {
		ret = nvdimm_open(&c->disk[c->ndisks], cfg->disk[c->ndisks], e);
		c->ndisks += !ret;
	}
	return ret || disk_bytes(c) <= NVDIMM_MAX_ALL
		       ? ret
		       : err_set(e, EFBIG, "--engine exact has 512 GiB of disks at most");
}

int child_stopped(struct child *c)
{
	uint64_t token;
	ssize_t n = read(c->request, &token, sizeof(token));

	if (n == sizeof(token))
		return 0;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? -EAGAIN : -EPROTO;
}

void child_resume(struct child *c)
{
	uint64_t one = 1;

	/* If QEMU does not read its answers, the token is dropped. SIGPIPE is ignored. */
	(void)!write(c->answer, &one, sizeof(one));
}

static int child_greets(struct child *c, struct err *e)
{
	struct exact_hello hello;

	exact_stop_read_hello(c->shared, &hello);
	if (hello.magic != EXACT_MAGIC || hello.version != EXACT_VERSION)
		return err_set(e, EPROTO,
			       "the plugin inside QEMU is of another version than "
			       "kvmprof: build and install both anew");
	c->has_begun = true;
	return *hello.error ? err_set(e, ENOTSUP, "QEMU: %s", hello.error) : 0;
}

/* Waits until QEMU has loaded all files and its vCPU is stopped, or until QEMU has ended. */
static int wait_until_ready(struct child *c, struct err *e)
{
	uint64_t end = clock_mono_ns() + CHILD_READY_MS * UINT64_C(1000000);
	struct pollfd p[3] = { { .fd = c->request, .events = POLLIN },
			       { .fd = c->pidfd, .events = POLLIN },
			       { .fd = c->errors, .events = POLLIN } };

	while (clock_mono_ns() < end) {
		int ret = -EAGAIN;

		if (poll(p, 3, READY_LOOK_MS) < 0 && errno != EINTR)
			return err_set(e, errno, "poll: %s", strerror(errno));
		if (p[2].revents && !child_listen(c))
			p[2].fd = -1;
		if (p[0].revents)
			ret = child_stopped(c);
		if (!ret)
			return child_greets(c, e);
		if (ret == -EPROTO || p[1].revents) {
			child_end(c);
			return err_set(e, ENOEXEC, "QEMU ended before the guest began: %s",
				       *c->said ? c->said : "it reported no reason");
		}
	}
	child_end(c);
	return err_set(e, ETIMEDOUT, "QEMU did not start the guest within %d s: %s",
		       CHILD_READY_MS / 1000, *c->said ? c->said : "it reported no reason");
}

static int tell_needs(const struct child *c, const struct engine *n, const struct exact_config *cfg,
		      struct err *e)
{
	struct exact_needs needs = { .engine = n, .disk = c->disk, .ndisks = c->ndisks };

	for (unsigned int i = 0; i < c->ndisks; i++)
		needs.disk_fd[i] = FD_DISK + (int)i;
	return cfg->jail ? cfg->jail->needs(cfg->jail->ctx, &needs, e) : 0;
}

static int make_counts(struct child *c, struct err *e)
{
	int ret = file_in_memory("counts", 0, &c->counts, e);

	return ret ? ret : file_seal(c->counts, FILE_SEAL_LENGTH, "counts", e);
}

static int take_trace(struct child *c, const struct exact_trace *trace, struct err *e)
{
	c->trace = fcntl(trace->fd, F_DUPFD_CLOEXEC, FD_END);
	return c->trace < 0 ? err_set(e, errno, "trace: %s", strerror(errno))
			    : file_seal(c->trace, FILE_SEAL_SIZE, "trace", e);
}

/* Creates the files that QEMU receives. */
static int make_files(struct child *c, const struct exact_config *cfg, struct err *e)
{
	int ret = sized_file("guest memory", cfg->mem_size, &c->ram, e);

	if (ret)
		return ret;
	ret = make_shared(c, cfg, e);
	if (ret)
		return ret;
	ret = memory_file("kernel", &cfg->kernel, &c->kernel, e);
	if (ret)
		return ret;
	ret = cfg->initrd.len ? memory_file("initial RAM disk", &cfg->initrd, &c->initrd, e) : 0;
	if (ret)
		return ret;
	ret = open_disks(c, cfg, e);
	if (ret)
		return ret;
	ret = cfg->counts ? make_counts(c, e) : 0;
	if (ret)
		return ret;
	return cfg->trace && cfg->trace->fd >= 0 ? take_trace(c, cfg->trace, e) : 0;
}

static int start_qemu(struct child *c, const struct engine *n, const struct exact_config *cfg,
		      struct err *e)
{
	cleanup_free struct args *a = calloc(1, sizeof(*a));
	int ret;

	if (!a)
		return err_nomem(e);
	snprintf(a->api, sizeof(a->api), ENGINE_API_VARIABLE "=%d", n->api);
	make_args(c, a, n, cfg);
	ret = tell_needs(c, n, cfg, e);
	return ret ? ret : start_with_pipes(c, a, cfg->jail, e);
}

int child_start(struct child *c, const struct engine *n, const struct exact_config *cfg,
		struct err *e)
{
	int ret = make_files(c, cfg, e);

	if (ret)
		return ret;
	ret = start_qemu(c, n, cfg, e);
	return ret ? ret : wait_until_ready(c, e);
}

/* Handles a line of QEMU's log, or a message of its own, which begins with its name. */
static void take_line(struct child *c, const char *line, size_t len)
{
	static const char own[] = "qemu-system-x86_64: ";
	const char *said = memmem(line, len, own, strlen(own));

	if (memmem(line, len, "Triple fault", 12))
		c->triple_fault = true;
	if (said) {
		len -= (size_t)(said - line) + strlen(own);
		line = said + strlen(own);
	}
	if (len && (said || !c->has_begun))
		snprintf(c->said, sizeof(c->said), "%.*s", (int)len, line);
}

bool child_listen(struct child *c)
{
	for (size_t taken = 0; c->errors >= 0 && taken < CHILD_TURN;) {
		char *at = c->line, *end;
		ssize_t n = read(c->errors, c->line + c->line_len, sizeof(c->line) - c->line_len);

		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		taken += (size_t)n;
		c->line_len += (size_t)n;
		while ((end = memchr(at, '\n', c->line_len - (size_t)(at - c->line)))) {
			take_line(c, at, (size_t)(end - at));
			at = end + 1;
		}
		c->line_len -= (size_t)(at - c->line);
		if (c->line_len == sizeof(c->line))
			c->line_len = 0; /* no line is so long */
		memmove(c->line, at, c->line_len);
	}
	return c->errors >= 0;
}

void child_end(struct child *c)
{
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };

	if (c->pid) {
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
		/*
		 * It is a child of this process: if it has not ended by now, it ends with this
		 * process.
		 */
		if (poll(&p, 1, CHILD_END_MS) > 0)
			while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
				;
		c->pid = 0;
	}
	(void)child_listen(c);
}

void child_deinit(struct child *c)
{
	int *fds[] = { &c->pidfd,   &c->ram,	&c->shared_fd, &c->request, &c->answer,
		       &c->console, &c->errors, &c->monitor,   &c->kernel,  &c->initrd,
		       &c->counts,  &c->trace,	&c->sync };

	child_end(c);
	for (unsigned int i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	for (unsigned int i = 0; i < c->ndisks; i++)
		nvdimm_close(&c->disk[i]);
	if (c->shared)
		munmap((void *)(uintptr_t)c->shared, EXACT_SHARED_LEN);
	c->shared = NULL;
}
