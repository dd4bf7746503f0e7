/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/child.h"

#include "base/file.h"
#include "vmm/exact/places.h"
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
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS_MAX 96u
#define ARG_LEN 768u

/* Descriptors as the child has them. */
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
	FD_DISK,
	FD_END = FD_DISK + EXACT_MAX_DISKS
};

struct args {
	const char *at[ARGS_MAX + 1];
	char text[ARGS_MAX][ARG_LEN]; /* of those that are put together */
	unsigned int n;
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
	};
}

/* -- what it is given ----------------------------------------------------------------------- */

static int memory_file(const char *name, const struct exact_bytes *b, int *out, struct err *e)
{
	int ret = file_in_memory(name, 0, out, e);

	if (ret)
		return ret;
	ret = b->len ? file_write_all(*out, b->data, b->len) : 0;
	return ret ? err_set(e, -ret, "no memory for the %s: %s", name, strerror(-ret)) : 0;
}

static int make_shared(struct child *c, const struct exact_config *cfg, struct err *e)
{
	void *at;
	int ret = file_in_memory("shared page", EXACT_SHARED_LEN, &c->shared_fd, e);

	if (ret)
		return ret;
	at = mmap(NULL, EXACT_SHARED_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, c->shared_fd, 0);
	if (at == MAP_FAILED)
		return err_set(e, errno, "shared page: %s", strerror(errno));
	c->shared = at;
	places_init(c->shared, cfg);
	c->request = eventfd(0, EFD_CLOEXEC);
	c->answer = eventfd(0, EFD_CLOEXEC);
	return c->request < 0 || c->answer < 0 ? err_set(e, errno, "eventfd: %s", strerror(errno))
					       : 0;
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

/* The image is opened to be read; with rom=off the guest can write to its private copy. */
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
	args_add(a, "-d"); /* for the words "Triple fault" */
	args_add(a, "cpu_reset");
	args_add(a, "-sandbox");
	args_add(a, "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
}

/* A comma in a name is written twice (QEMU's option syntax). */
static void args_plugin(struct args *a, const char *path, const struct exact_config *cfg)
{
	const struct exact_trace *t = cfg->trace;
	char name[ARG_LEN], option[ARG_LEN];
	size_t n = 0;
	int len;

	for (; *path && n + 2 < sizeof(name); path++) {
		if (*path == ',')
			name[n++] = ',';
		name[n++] = *path;
	}
	name[n] = '\0';
	args_add(a, "-plugin");
	len = snprintf(option, sizeof(option), "%.400s,memory=%d,request=%d,answer=%d", name,
		       FD_SHARED, FD_REQUEST, FD_ANSWER);
	if (cfg->counts)
		len += snprintf(option + len, sizeof(option) - (size_t)len, ",counts=%d",
				FD_COUNTS);
	if (t && t->fd >= 0)
		len += snprintf(option + len, sizeof(option) - (size_t)len,
				",trace=%d,step=%" PRIu64, FD_TRACE, t->plan.step);
	for (unsigned int i = 0; t && t->fd >= 0 && i < TRACE_WINDOWS; i++)
		len += snprintf(option + len, sizeof(option) - (size_t)len,
				",from%u=%" PRIu64 ",to%u=%" PRIu64, i, t->plan.window[i].from, i,
				t->plan.window[i].to);
	args_put(a, "%s", option);
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
	args_plugin(a, n->plugin, cfg);
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

/* In the child, between fork and exec. */
static void child_becomes(const int *from, int errors, pid_t parent, const struct args *a)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		syscall(SYS_exit_group, 127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0); /* Ctrl-C is for us to act on */
	if (dup2(open("/dev/null", O_RDWR), STDIN_FILENO) < 0 ||
	    dup2(STDIN_FILENO, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0)
		syscall(SYS_exit_group, 127);
	for (int i = 0; i < FD_END - FD_RAM; i++)
		if (from[i] >= 0 && dup2(from[i], FD_RAM + i) < 0)
			syscall(SYS_exit_group, 127);
	syscall(SYS_close_range, FD_END, ~0u, 0);
	execv(a->at[0], (char *const *)a->at);
	dprintf(STDERR_FILENO, "%s: %s\n", a->at[0], strerror(errno));
	syscall(SYS_exit_group, 127);
}

/* Not where the child is going to have its own. */
static int move_up(int fd)
{
	int up = fcntl(fd, F_DUPFD_CLOEXEC, FD_END);

	if (fd >= 0)
		close(fd);
	return up;
}

static int run_child(struct child *c, const struct args *a, int console, int errors, int monitor,
		     struct err *e)
{
	int from[FD_END - FD_RAM] = {
		[FD_RAM - FD_RAM] = c->ram,	    [FD_SHARED - FD_RAM] = c->shared_fd,
		[FD_REQUEST - FD_RAM] = c->request, [FD_ANSWER - FD_RAM] = c->answer,
		[FD_CONSOLE - FD_RAM] = console,    [FD_MONITOR - FD_RAM] = monitor,
		[FD_KERNEL - FD_RAM] = c->kernel,   [FD_INITRD - FD_RAM] = c->initrd,
		[FD_COUNTS - FD_RAM] = c->counts,   [FD_TRACE - FD_RAM] = c->trace,
	};
	pid_t parent = getpid(), pid;

	for (unsigned int i = 0; i < EXACT_MAX_DISKS; i++)
		from[FD_DISK - FD_RAM + i] = i < c->ndisks ? c->disk[i].fd : -1;
	pid = fork();
	if (pid < 0)
		return err_set(e, errno, "cannot start QEMU: %s", strerror(errno));
	if (!pid)
		child_becomes(from, errors, parent, a);
	c->pid = pid;
	c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (c->pidfd >= 0)
		return 0;
	kill(pid, SIGKILL);
	return err_set(e, errno, "pidfd_open: %s", strerror(errno));
}

static int set_nonblocking(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static int start_with_pipes(struct child *c, const struct args *a, struct err *e)
{
	int console[2], errors[2], monitor[2], ret;

	if (pipe2(console, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, monitor) < 0)
		return err_set(e, errno, "no descriptors for QEMU: %s", strerror(errno));
	c->console = move_up(console[0]);
	c->errors = move_up(errors[0]);
	c->monitor = move_up(monitor[0]);
	for (int *fd = &c->ram; fd <= &c->shared_fd; fd++)
		*fd = move_up(*fd);
	c->request = move_up(c->request);
	c->answer = move_up(c->answer);
	c->kernel = move_up(c->kernel);
	if (c->initrd >= 0)
		c->initrd = move_up(c->initrd);
	if (c->counts >= 0)
		c->counts = move_up(c->counts);
	for (unsigned int i = 0; i < c->ndisks; i++)
		c->disk[i].fd = move_up(c->disk[i].fd);
	console[1] = move_up(console[1]);
	errors[1] = move_up(errors[1]);
	monitor[1] = move_up(monitor[1]);
	(void)set_nonblocking(c->console);
	(void)set_nonblocking(c->errors);
	(void)set_nonblocking(c->monitor);
	ret = run_child(c, a, console[1], errors[1], monitor[1], e);
	close(console[1]);
	close(errors[1]);
	close(monitor[1]);
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

/* QEMU has loaded all that it was given, and its vCPU stands; or it has ended. */
static int wait_until_ready(struct child *c, struct err *e)
{
	struct pollfd p[2] = { { .fd = c->request, .events = POLLIN },
			       { .fd = c->pidfd, .events = POLLIN } };
	uint64_t token;

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			return err_set(e, errno, "poll: %s", strerror(errno));
	if (p[0].revents & POLLIN) {
		if (read(c->request, &token, sizeof(token)) != sizeof(token) ||
		    c->shared->magic != EXACT_MAGIC || c->shared->version != EXACT_VERSION)
			return err_set(e, EPROTO,
				       "the plugin inside QEMU is of another version than "
				       "kvmprof: build and install both anew");
		c->has_begun = true;
		c->shared->error[sizeof(c->shared->error) - 1] = '\0';
		return *c->shared->error ? err_set(e, ENOTSUP, "QEMU: %s", c->shared->error) : 0;
	}
	child_end(c);
	return err_set(e, ENOEXEC, "QEMU ended before the guest began: %s",
		       *c->said ? c->said : "it did not say why");
}

int child_start(struct child *c, const struct engine *n, const struct exact_config *cfg,
		struct err *e)
{
	struct args *a = calloc(1, sizeof(*a));
	int ret = a ? 0 : err_set(e, ENOMEM, "out of memory");

	ret = ret ? ret : file_in_memory("guest memory", cfg->mem_size, &c->ram, e);
	ret = ret ? ret : make_shared(c, cfg, e);
	ret = ret ? ret : memory_file("kernel", &cfg->kernel, &c->kernel, e);
	if (!ret && cfg->initrd.len)
		ret = memory_file("initial RAM disk", &cfg->initrd, &c->initrd, e);
	ret = ret ? ret : open_disks(c, cfg, e);
	if (!ret && cfg->counts)
		ret = file_in_memory("counts", 0, &c->counts, e);
	if (!ret && cfg->trace && cfg->trace->fd >= 0) {
		c->trace = fcntl(cfg->trace->fd, F_DUPFD_CLOEXEC, FD_END);
		ret = c->trace < 0 ? err_set(e, errno, "trace: %s", strerror(errno)) : 0;
	}
	if (!ret) {
		/* The plugin's own version is that which this QEMU wants (plugin.c). */
		setenv("KVMPROF_QEMU_API",
		       n->major > 10 || (n->major == 10 && n->minor) ? "5" : "3", 1);
		make_args(c, a, n, cfg);
		ret = start_with_pipes(c, a, e);
	}
	free(a);
	return ret ? ret : wait_until_ready(c, e);
}

/* A line of QEMU's log, or a message of its own, which begins with its name. */
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

void child_listen(struct child *c)
{
	ssize_t n;

	while (c->errors >= 0 &&
	       (n = read(c->errors, c->line + c->line_len, sizeof(c->line) - c->line_len)) > 0) {
		char *at = c->line, *end;

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
}

void child_end(struct child *c)
{
	if (c->pid) {
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
		while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
			;
		c->pid = 0;
	}
	child_listen(c);
}

void child_deinit(struct child *c)
{
	int *fds[] = { &c->pidfd,  &c->ram,	&c->shared_fd, &c->request, &c->answer, &c->console,
		       &c->errors, &c->monitor, &c->kernel,    &c->initrd,  &c->counts, &c->trace };

	child_end(c);
	for (unsigned int i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	for (unsigned int i = 0; i < c->ndisks; i++)
		nvdimm_close(&c->disk[i]);
	if (c->shared)
		munmap(c->shared, EXACT_SHARED_LEN);
	c->shared = NULL;
}
