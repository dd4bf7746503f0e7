/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a made-up profile of a boot, with names that try to break out of a document.
 *
 *   mkboot [-g|-k] OUT
 *     -g  as if start_kernel's work had grown: 300 samples instead of 100
 *     -k  instead of a boot, 20 samples in each of the modules, whatever they stand for
 *
 * One vCPU, 1 ms a sample: 10 of the entry code, 50 of the decompressor, 100 (300) of
 * start_kernel, 200 of initcalls, 40 in which pid 1 becomes a program, 100 of a second
 * process's system calls, whose functions have the hostile names.
 */
#include "base/cleanup.h"
#include "base/sample.h"
#include "profile/format/perfdata/sink.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT 0xffffffff81000000u
#define FUNC 0x90u
#define T0 5000000000u
#define STEP 1000000u

enum {
	STARTUP,
	START_KERNEL,
	MM_INIT,
	KERNEL_INIT,
	FREEABLE,
	INITCALL,
	DRIVER,
	EXECVE,
	ENTRY,
	HOSTILE,
	LONGEST = HOSTILE + 6,
	NFUNC
};

static char longest[4097];
static const char *name[NFUNC] = {
	"startup_64",
	"start_kernel",
	"mm_init",
	"kernel_init",
	"kernel_init_freeable",
	"do_one_initcall",
	"driver_init",
	"kernel_execve",
	"entry_SYSCALL_64",
	"</script><script>alert(1)</script>",
	"\"><img/src=x/onerror=alert(2)>",
	"]]></script><svg/onload=alert(3)>",
	"'+alert(4)+'\\\";alert(5)//",
	"\xe5\x90\x8d\xe5\x89\x8d_\xc3\xa4_\xff\xfe",
	"ctl\x01\x1b[31m&lt;${alert(6)}`",
};
static uint8_t text[NFUNC * FUNC];

static size_t read_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	if (va < TEXT || va - TEXT >= sizeof(text))
		return 0;
	if (len > sizeof(text) - (va - TEXT))
		len = sizeof(text) - (va - TEXT);
	memcpy(dst, text + (va - TEXT), len);
	return len;
}

/* Modules, each with one function. A negative number of a function is one of these. */
static const struct {
	const char *name, *func;
} modules[] = {
	{ "decompressor", "decompressor" }, { "ext4", "ext4_read" },   { "vmm", "[vmm] serial" },
	{ "host", "kvm_vcpu_run" },	    { "where", "[runnable]" }, { "task", "make" },
	{ "kvmprof", "on_kick" },	    { "exit", "[exit: hlt]" }, { "off-cpu", "[S]" },
};
#define MODULE(i) (0x1000000u + (unsigned int)(i)*0x100000u)

static struct sink *sink;
static uint64_t now = T0;

static int samples(unsigned int n, uint32_t pid, const int *func, unsigned int depth, struct err *e)
{
	static struct stack st;
	struct profile_sample s = { .pid = pid, .tid = pid, .period = STEP, .stack = &st };
	int ret = 0;

	memset(&st, 0, offsetof(struct stack, ip));
	st.end = STACK_END_ROOT;
	s.mode = SAMPLE_KERNEL;
	for (unsigned int i = 0; i < depth; i++) {
		st.exact[i] = i == 0;
		st.ip[i] = func[i] < 0 ? MODULE(-1 - func[i]) + 0x200
				       : TEXT + (unsigned int)func[i] * FUNC + 0x25;
		st.n = st.n_kernel = i + 1;
	}
	for (unsigned int i = 0; i < n && !ret; i++) {
		s.time_ns = now += STEP;
		ret = sink->ops->sample(sink, &s, e);
	}
	return ret;
}

static int boot(unsigned int grown, struct err *e)
{
	int ret = samples(10, 0, (int[]){ STARTUP }, 1, e);

	ret = ret ? ret : samples(50, 0, (int[]){ -1 }, 1, e);
	ret = ret ? ret : samples(grown, 0, (int[]){ MM_INIT, START_KERNEL, STARTUP }, 3, e);
	ret = ret ? ret : samples(200, 1, (int[]){ DRIVER, INITCALL, FREEABLE, KERNEL_INIT }, 4, e);
	ret = ret ? ret
		  : sink->ops->comm(sink, &(struct profile_comm){ 1, 1, "init", true, now }, e);
	ret = ret ? ret : samples(40, 1, (int[]){ EXECVE, KERNEL_INIT }, 2, e);
	ret = ret ? ret
		  : sink->ops->comm(sink, &(struct profile_comm){ 7, 7, "<b>&\"x'", true, now }, e);
	for (int f = HOSTILE; f < NFUNC && !ret; f++)
		ret = samples(f == HOSTILE ? 40 : 10, 7, (int[]){ f, ENTRY }, 2, e);
	return ret;
}

static int kinds(struct err *e)
{
	int ret = 0;

	for (int i = 0; i < (int)ARRAY_SIZE(modules) && !ret; i++)
		ret = samples(20, 1, (int[]){ -1 - i, START_KERNEL, STARTUP }, 3, e);
	return ret;
}

/* As guest.c names the decompressor: a module that is all of the memory it is loaded to. */
static int tell_module(size_t i, struct symtab **out, struct err *e)
{
	struct profile_module m = {
		.name = modules[i].name, .time_ns = 1, .addr = MODULE(i), .len = 0x100000
	};
	struct symtab *syms = symtab_create();
	int ret = symtab_add(syms, m.addr, m.len, 'T', modules[i].func);

	ret = ret ? ret : symtab_freeze(syms, e);
	m.symbols = syms;
	*out = syms; /* borrowed until the end */
	return ret ? ret : sink->ops->module(sink, &m, e);
}

int main(int argc, char **argv)
{
	bool grown = argc > 1 && !strcmp(argv[1], "-g"), all = argc > 1 && !strcmp(argv[1], "-k");
	struct sink_perfdata_options opt = { .path = argv[argc - 1] };
	struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) },
				     .nevents = 1,
				     .vcpus = 1,
				     .hostname = "host",
				     .argc = argc,
				     .argv = argv };
	struct profile_kernel where = { .osrelease = "6.9.0-guest",
					.text = TEXT,
					.end = TEXT + 0x1000000,
					.read_text = read_text };
	struct profile_totals totals = { .json = "{\"made_up\":true}" };
	struct symtab *syms = symtab_create(), *of_module[ARRAY_SIZE(modules)] = { 0 };
	struct err e = { 0 };
	int ret;

	if (argc < 2)
		return 2;
	memset(text, 0x90, sizeof(text));
	memset(longest, 'n', sizeof(longest) - 1);
	name[LONGEST] = longest;
	symtab_add(syms, TEXT, 0, 'T', "_text");
	for (unsigned int f = 0; f < NFUNC; f++)
		symtab_add(syms, TEXT + f * FUNC, FUNC, 'T', name[f]);
	symtab_add(syms, TEXT + 0x1000000, 0, 'B', "_end");
	symtab_freeze(syms, NULL);
	where.symbols = syms;
	ret = perfdata_sink_create(&sink, &opt, &e);
	ret = ret ? ret : sink->ops->begin(sink, &info, &e);
	ret = ret ? ret : sink->ops->kernel(sink, &where, &e);
	for (size_t i = 0; i < (all ? ARRAY_SIZE(modules) : 1) && !ret; i++)
		ret = tell_module(i, &of_module[i], &e);
	ret = ret ? ret
		  : sink->ops->comm(sink, &(struct profile_comm){ 1, 1, "swapper/0", false, T0 },
				    &e);
	ret = ret ? ret : all ? kinds(&e) : boot(grown ? 300 : 100, &e);
	ret = ret ? ret : sink->ops->end(sink, &totals, &e);
	if (ret)
		fprintf(stderr, "mkboot: %s\n", e.text);
	if (sink)
		sink->ops->destroy(sink);
	symtab_destroy(syms);
	for (size_t i = 0; i < ARRAY_SIZE(modules); i++)
		symtab_destroy(of_module[i]);
	return ret ? 1 : 0;
}
