// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /init: sets the system up, runs the phases, ends the machine.
 *
 * Console lines, which tests wait for:
 *   kvmprof-init: start
 *   kvmprof-init: phase NAME            before each phase
 *   kvmprof-init: failures: N           after it, if operations failed
 *   kvmprof-init: done
 *
 * work=N (an argument, or in the environment, where the kernel puts unknown parameters) or
 * kvmprof.work=N on the kernel command line multiplies the amounts.
 */
#include "init.h"

#include "../reboot.h"

#define MAX_WORK 100000ul

void init_main(const ulong_t *stack);

/* The kernel's first words: argc, argv..., NULL, envp..., NULL (x86-64 psABI
 * 3.4.1). A zero return address ends frame-pointer walks at init_main. */
__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	xorl %ebp, %ebp\n"
	"	movq %rsp, %rdi\n"
	"	andq $-16, %rsp\n"
	"	pushq $0\n"
	"	jmp init_main\n"
	".size _start, . - _start\n");

static void say(const char *a, const char *b)
{
	char line[160];
	ulong_t n = 0;

	/* One write per line keeps lines of the kernel out of it. */
	for (; *a && n < sizeof(line) - 1; a++)
		line[n++] = *a;
	for (; *b && n < sizeof(line) - 1; b++)
		line[n++] = *b;
	line[n++] = '\n';
	syscall3(NR_WRITE, 1, line, n);
}

static const char *decimal(ulong_t value)
{
	static char digits[24];
	char *p = digits + sizeof(digits) - 1;

	*p = 0;
	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	return p;
}

/* Stores the number in *value if text starts with name. */
static void parse_number(const char *text, const char *name, ulong_t *value)
{
	ulong_t n = 0;

	for (; *name; name++, text++) {
		if (*text != *name)
			return;
	}
	if (*text < '0' || *text > '9')
		return;
	for (; *text >= '0' && *text <= '9' && n < MAX_WORK; text++)
		n = n * 10 + (ulong_t)(*text - '0');
	*value = n < MAX_WORK ? n : MAX_WORK;
}

static ulong_t find_work(const ulong_t *stack)
{
	static char line[4096];
	const char *const *argv = (const char *const *)(stack + 1);
	ulong_t work = 1;
	long fd, got;

	for (ulong_t argc = stack[0]; argc > 0; argc--, argv++)
		parse_number(*argv, "work=", &work);
	for (argv++; *argv; argv++)
		parse_number(*argv, "work=", &work);

	fd = syscall3(NR_OPEN, "/proc/cmdline", O_RDONLY, 0);
	if (fd < 0)
		return work;
	got = syscall3(NR_READ, fd, line, sizeof(line) - 1);
	syscall1(NR_CLOSE, fd);
	for (long i = 0; i < got; i++) {
		if (i == 0 || line[i - 1] == ' ')
			parse_number(line + i, "kvmprof.work=", &work);
	}
	return work;
}

static void mount_at(const char *type, const char *where)
{
	syscall2(NR_MKDIR, where, 0755);
	syscall6(NR_MOUNT, (long)type, (long)where, (long)type, 0, 0, 0);
}

static void open_console(void)
{
	long fd = syscall3(NR_OPEN, "/dev/console", O_RDWR, 0);

	if (fd < 0)
		return; /* the descriptors that the kernel has opened have to do */
	for (long i = 0; i < 3; i++) {
		if (fd != i)
			syscall2(NR_DUP2, fd, i);
	}
	if (fd > 2)
		syscall1(NR_CLOSE, fd);
}

__attribute__((noinline)) void init_main(const ulong_t *stack)
{
	ulong_t work;

	mount_at("proc", "/proc");
	mount_at("sysfs", "/sys");
	mount_at("devtmpfs", "/dev");
	open_console();
	work = find_work(stack);

	say("kvmprof-init: start", "");
	for (unsigned int i = 0; i < nr_phases; i++) {
		ulong_t failed;

		say("kvmprof-init: phase ", phases[i].name);
		failed = phases[i].run(work);
		if (failed)
			say("kvmprof-init: failures: ", decimal(failed));
	}
	say("kvmprof-init: done", "");
	syscall0(NR_SYNC);
	end_machine();
}
