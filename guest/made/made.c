// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /init whose kernel generates code at run time, and which runs that code: a BPF program at each
 * system call, functions traced by the two function tracers, probes of a function and its return.
 *
 * Each part is named by its task: m-plain, m-bpf, m-graph, m-function, m-kprobe, m-kretprobe. It
 * reads /dev/zero for made.seconds=N of the command line (2). The functions to trace are
 * made.traced=N,N.., by their numbers in available_filter_functions; the one to probe is
 * made.probe=0xADDRESS: the kernel would need minutes to look up names where it is interpreted.
 *
 * Console lines, which tests wait for:
 * 	made: start
 * 	made: PART ready, made: PART failed: WHY
 * 	made: program ADDRESS LENGTH bpf_prog_TAG_NAME	as /proc/kallsyms, which takes minutes to
 * 							read where the kernel is interpreted
 * 	made: done
 */
#include "../linux_init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRACING "/sys/kernel/tracing/"
#define ROUNDS 24

static int seconds = 2;
static char zeros[16384];

static char words[4096]; /* the kernel's command line */

static void get_word(const char *name, char *value, size_t size)
{
	const char *at = strstr(words, name);

	at = at ? at + strlen(name) : "";
	snprintf(value, size, "%.*s", (int)strcspn(at, " \n"), at);
}

static int put_text(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | flags);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
	int why = errno;

	if (fd >= 0)
		close(fd);
	errno = why;
	return n < 0 ? -1 : 0;
}

static int write_text(const char *path, const char *text)
{
	return put_text(path, text, O_TRUNC);
}

static int append_text(const char *path, const char *text)
{
	return put_text(path, text, O_APPEND);
}

/* -- generated code --------------------------------------------------------------------------- */

static struct bpf_insn insn(unsigned int code, int dst, int src, int off, int imm)
{
	return (struct bpf_insn){ .code = (__u8)code,
				  .dst_reg = (__u8)dst & 15,
				  .src_reg = (__u8)src & 15,
				  .off = (__s16)off,
				  .imm = imm };
}

static void tell_program(int fd)
{
	__u64 at = 0;
	__u32 len = 0;
	struct bpf_prog_info info = { .nr_jited_ksyms = 1,
				      .jited_ksyms = (__u64)(unsigned long)&at,
				      .nr_jited_func_lens = 1,
				      .jited_func_lens = (__u64)(unsigned long)&len };
	union bpf_attr ask = { .info = { .bpf_fd = (__u32)fd,
					 .info_len = sizeof(info),
					 .info = (__u64)(unsigned long)&info } };

	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &ask, sizeof(ask)) < 0)
		return;
	printf("made: program %llx %u bpf_prog_", at, len);
	for (unsigned int i = 0; i < sizeof(info.tag); i++)
		printf("%02x", info.tag[i]);
	printf("_%s\n", info.name);
}

/*
 * Attaches a program that counts up to ROUNDS and calls the kernel each time. Returns the
 * descriptor that keeps it attached.
 */
static int attach_bpf(void)
{
	const struct bpf_insn code[] = {
		insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_6, 0, 0, 0),
		insn(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ktime_get_ns),
		insn(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_7, BPF_REG_0, 0, 0),
		insn(BPF_ALU64 | BPF_MUL | BPF_K, BPF_REG_7, 0, 0, 31),
		insn(BPF_ALU64 | BPF_XOR | BPF_X, BPF_REG_7, BPF_REG_6, 0, 0),
		insn(BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_7, 0, 0, 3),
		insn(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_7, 0, 0, 7),
		insn(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_6, 0, 0, 1),
		insn(BPF_JMP | BPF_JLT | BPF_K, BPF_REG_6, 0, -8, ROUNDS),
		insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
				.insn_cnt = sizeof(code) / sizeof(code[0]),
				.insns = (__u64)(unsigned long)code,
				.license = (__u64)(unsigned long)"GPL",
				.prog_name = "count_up" };
	union bpf_attr attach = { .raw_tracepoint.name = (__u64)(unsigned long)"sys_enter" };
	long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));

	if (fd < 0)
		return -1;
	tell_program((int)fd);
	attach.raw_tracepoint.prog_fd = (__u32)fd;
	return (int)syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attach, sizeof(attach));
}

static int start_tracer(const char *name)
{
	char traced[256], *number = traced, *end;

	get_word("made.traced=", traced, sizeof(traced));
	if (write_text(TRACING "current_tracer", "nop") ||
	    write_text(TRACING "buffer_size_kb", "64") ||
	    write_text(TRACING "set_ftrace_filter", "\n"))
		return -1;
	for (; *number; number = end) {
		end = number + strcspn(number, ",");
		if (*end)
			*end++ = 0;
		if (append_text(TRACING "set_ftrace_filter", number))
			return -1;
	}
	return write_text(TRACING "current_tracer", name);
}

/* Starts a probe; kind: "p" at a function's start, "r" at its return. */
static int start_probe(const char *kind)
{
	char at[64], text[96];

	get_word("made.probe=", at, sizeof(at));
	/* Active probes cannot be removed. */
	(void)write_text(TRACING "events/kprobes/enable", "0");
	snprintf(text, sizeof(text), "%s:made %s\n", kind, at);
	if (write_text(TRACING "kprobe_events", text))
		return -1;
	return write_text(TRACING "events/kprobes/made/enable", "1");
}

/* -- parts ------------------------------------------------------------------------------ */

static void work(void)
{
	time_t end = time(NULL) + seconds;
	int fd = open("/dev/zero", O_RDONLY);

	while (fd >= 0 && time(NULL) < end)
		if (read(fd, zeros, sizeof(zeros)) < 0)
			break;
	close(fd);
}

static void part(const char *name, int ready)
{
	char comm[16];

	if (ready < 0) {
		printf("made: %s failed: %s\n", name, strerror(errno));
		return;
	}
	printf("made: %s ready\n", name);
	snprintf(comm, sizeof(comm), "m-%s", name);
	prctl(PR_SET_NAME, comm);
	work();
	prctl(PR_SET_NAME, "init");
}

int main(void)
{
	char given[16];
	FILE *f;
	int fd;

	init_begin();
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	f = fopen("/proc/cmdline", "r");
	if (f && fgets(words, sizeof(words), f)) {
		get_word("made.seconds=", given, sizeof(given));
		seconds = *given ? atoi(given) : seconds;
	}
	puts("made: start");
	part("plain", 0);
	fd = attach_bpf();
	part("bpf", fd);
	close(fd);
	part("graph", start_tracer("function_graph"));
	part("function", start_tracer("function"));
	write_text(TRACING "current_tracer", "nop");
	part("kprobe", start_probe("p"));
	part("kretprobe", start_probe("r"));
	puts("made: done");
	sync();
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}
