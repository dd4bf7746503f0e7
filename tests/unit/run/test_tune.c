/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/run/tune.h"

#include "profile/console/console.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct quirks none;
static struct quirks slow = { .interpreted = true };
static struct buf line, tuned;

static const char *cmdline(const struct tune_request *r, const struct quirks *q)
{
	buf_deinit(&line);
	buf_deinit(&tuned);
	tune_cmdline(r, q, &line, &tuned);
	assert_false(line.failed || tuned.failed);
	assert_int_equal(line.data[line.len - 1], 0);
	assert_int_equal(tuned.data[tuned.len - 1], 0);
	assert_int_equal(strlen((char *)line.data), line.len - 1); /* one terminator, at the end */
	assert_int_equal(strlen((char *)tuned.data), tuned.len - 1);
	assert_null(strstr((char *)line.data, "  "));
	return (char *)line.data;
}

static const char *tuned_part(void)
{
	return (const char *)tuned.data;
}

static int teardown(void **state)
{
	(void)state;
	buf_deinit(&line);
	buf_deinit(&tuned);
	return 0;
}

/* Is it there as a word of its own? */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p++)
		if ((p == text || p[-1] == ' ') && (!p[n] || p[n] == ' '))
			return true;
	return false;
}

static void linux_on_a_plain_host(void **state)
{
	struct tune_request r = { .is_linux = true, .tune = true, .vcpus = 1, .tsc_khz = 2000000 };

	(void)state;
	assert_string_equal(cmdline(&r, &none), "console=ttyS0 reboot=k panic=-1");
	assert_string_equal(tuned_part(), "");
	r.append = "quiet foo=1";
	assert_string_equal(cmdline(&r, &none), "console=ttyS0 reboot=k panic=-1 quiet foo=1");
	r.cmdline = "root=/dev/x";
	assert_string_equal(cmdline(&r, &none), "root=/dev/x quiet foo=1");
	r.cmdline = "";
	assert_string_equal(cmdline(&r, &none), "quiet foo=1");
	r.append = "";
	assert_string_equal(cmdline(&r, &none), "");
	/* the other quirks change nothing here */
	r.cmdline = NULL;
	assert_string_equal(cmdline(&r, &(struct quirks){ .syscall_keeps_cpl = true,
							  .refuses_insns = true,
							  .hypercalls_hang = true }),
			    "console=ttyS0 reboot=k panic=-1");
}

static void linux_on_a_slow_host(void **state)
{
	struct tune_request r = { .is_linux = true, .tune = true, .vcpus = 1, .append = "last=1" };
	const char *text = cmdline(&r, &slow);
	size_t n = strlen(text);

	(void)state;
	assert_int_equal(strncmp(text, "console=ttyS0 reboot=k panic=-1 ", 32), 0);
	assert_true(has_word(text, "nolapic"));
	assert_true(has_word(text, "mitigations=off"));
	assert_true(strlen(tuned_part()) > 0);
	assert_non_null(strstr(text, tuned_part()));
	assert_string_equal(text + n - 7, " last=1"); /* the user's words win */
	assert_true(n < 2048);			      /* COMMAND_LINE_SIZE of x86 */

	r.vcpus = 2; /* without local APICs there would be one CPU only */
	text = cmdline(&r, &slow);
	assert_false(has_word(text, "nolapic"));
	assert_true(has_word(text, "mitigations=off"));
	assert_false(has_word(tuned_part(), "nolapic"));

	/* Devices' interrupts need APICs, and a bus must be scanned to be found. */
	r.virtio = true;
	text = cmdline(&r, &slow);
	assert_false(has_word(text, "nolapic_timer"));
	r.vcpus = 1;
	text = cmdline(&r, &slow);
	assert_false(has_word(text, "nolapic"));
	assert_true(has_word(text, "nolapic_timer"));
	assert_true(has_word(text, "pci=off"));
	r.pci = r.virtio_console = true;
	text = cmdline(&r, &slow);
	assert_false(has_word(text, "pci=off"));
	assert_int_equal(strncmp(text, "earlyprintk=ttyS0 console=hvc0 ", 31), 0);
	assert_null(strstr(cmdline(&r, &slow), "rootdelay="));
	r.disk_initrd = true;
	assert_true(has_word(cmdline(&r, &slow), "rootdelay=60"));
	slow.ring0_ps_per_insn = 1300000;
	assert_true(has_word(cmdline(&r, &slow), "rootdelay=600"));
	slow.ring0_ps_per_insn = UINT64_MAX;
	assert_true(has_word(cmdline(&r, &slow), "rootdelay=900"));
	slow.ring0_ps_per_insn = 0;
	assert_null(strstr(cmdline(&r, &none), "rootdelay="));
	assert_false(has_word(cmdline(&r, &slow), "clocksource=kvm-clock"));
	r.saved = true;
	assert_true(has_word(cmdline(&r, &slow), "clocksource=kvm-clock"));
	r.virtio = r.pci = r.virtio_console = r.disk_initrd = r.saved = false;

	r.cmdline = "mine"; /* replaces the defaults, not what the host needs */
	text = cmdline(&r, &slow);
	assert_int_equal(strncmp(text, "mine ", 5), 0);
	assert_null(strstr(text, "reboot=k"));
	assert_true(has_word(text, "mitigations=off"));

	r.tune = false;
	assert_string_equal(cmdline(&r, &slow), "mine last=1");
	assert_string_equal(tuned_part(), "");
}

static void other_kernels(void **state)
{
	struct tune_request r = { .tune = true, .vcpus = 1 };

	(void)state;
	assert_string_equal(cmdline(&r, &slow), "");
	assert_string_equal(tuned_part(), "");
	r.tsc_khz = 2100000;
	assert_string_equal(cmdline(&r, &slow), "tsc_khz=2100000");
	r.cmdline = "mode=2";
	r.append = "n=5";
	assert_string_equal(cmdline(&r, &none), "mode=2 tsc_khz=2100000 n=5");
}

/* -- console ---------------------------------------------------------------------- */

static void put(struct console *c, const char *text)
{
	for (; *text; text++)
		console_put(c, (uint8_t)*text);
}

static void console_writes_lines(void **state)
{
	struct console c;
	char got[4096];
	int fd[2];

	(void)state;
	assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
	console_init(&c, fd[1]);
	put(&c, "no end");
	assert_int_equal(read(fd[0], got, sizeof(got)), -1);
	assert_int_equal(errno, EAGAIN);
	put(&c, "\nlogin: ");
	assert_int_equal(read(fd[0], got, sizeof(got)), 7);
	assert_memory_equal(got, "no end\n", 7);
	console_flush(&c); /* a prompt */
	assert_int_equal(read(fd[0], got, sizeof(got)), 7);
	assert_memory_equal(got, "login: ", 7);
	console_flush(&c);
	assert_int_equal(read(fd[0], got, sizeof(got)), -1);

	for (int i = 0; i < 1500; i++) /* longer than the buffer: nothing is lost */
		console_put(&c, (uint8_t)('a' + i % 26));
	console_put(&c, 0); /* guests write any byte */
	console_deinit(&c);
	assert_int_equal(read(fd[0], got, sizeof(got)), 1501);
	for (int i = 0; i < 1500; i++)
		assert_int_equal(got[i], 'a' + i % 26);
	assert_int_equal(got[1500], 0);
	assert_int_equal(c.bytes, 7 + 7 + 1501);
	assert_false(c.broken);
	close(fd[0]);
	close(fd[1]);
}

static void console_survives_a_closed_pipe(void **state)
{
	struct console c;
	int fd[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fd), 0);
	close(fd[0]);
	console_init(&c, fd[1]);
	for (int i = 0; i < 5000; i++)
		put(&c, "x\n");
	assert_true(c.broken);
	assert_int_equal(c.bytes, 10000);
	console_deinit(&c);
	close(fd[1]);
	signal(SIGPIPE, SIG_DFL);

	console_init(&c, -1); /* --quiet */
	for (int i = 0; i < 5000; i++)
		put(&c, "x");
	assert_false(c.broken);
	assert_int_equal(c.bytes, 5000);
	console_deinit(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(linux_on_a_plain_host, teardown),
		cmocka_unit_test_teardown(linux_on_a_slow_host, teardown),
		cmocka_unit_test_teardown(other_kernels, teardown),
		cmocka_unit_test(console_writes_lines),
		cmocka_unit_test(console_survives_a_closed_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
