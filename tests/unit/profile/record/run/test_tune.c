/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

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
	assert_true(has_word(text, "nolapic_timer"));
	assert_true(has_word(text, "mitigations=off"));
	assert_false(has_word(tuned_part(), "nolapic"));

	/* Devices' interrupts need APICs, and a bus must be scanned to be found. */
	r.virtio = true;
	text = cmdline(&r, &slow);
	assert_true(has_word(text, "nolapic_timer"));
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

/* Is `name` in the list that the option's word has? */
static bool in_list(const char *text, const char *option, const char *name)
{
	const char *word = strstr(text, option);
	size_t n = strlen(name), end = word ? strcspn(word, " ") : 0;

	for (size_t i = strlen(option); word && i < end; i += strcspn(word + i, ", ") + 1)
		if (!strncmp(word + i, name, n) && strchr(", ", word[i + n]))
			return true;
	return false;
}

#define LEFT_OUT "initcall_blacklist="

/* Linux before 5.18 takes numbers only, from 5.8 on several of them. */
static void cpuid_bits_are_numbers(void **state)
{
	struct tune_request r = { .is_linux = true, .tune = true, .vcpus = 1 };
	const char *text = cmdline(&r, &slow);

	(void)state;
	text = strstr(text, "clearcpuid=");
	assert_non_null(text);
	text += strlen("clearcpuid=");
	assert_int_equal(strspn(text, "0123456789,"), strcspn(text, " "));
	assert_true(in_list(cmdline(&r, &slow), "clearcpuid=", "151"));	 /* 4 * 32 + 23: popcnt */
	assert_false(in_list(cmdline(&r, &slow), "clearcpuid=", "156")); /* 4 * 32 + 28: avx */
}

static void initcalls_by_the_names(void **state)
{
	struct tune_request r = { .is_linux = true, .tune = true, .vcpus = 1 };
	struct symtab *t = symtab_create();
	struct err e = { 0 };
	const char *text;

	(void)state;
	text = cmdline(&r, &slow); /* no names: what a module may need is left alone */
	assert_true(in_list(text, LEFT_OUT, "trace_eval_init"));
	assert_true(in_list(text, LEFT_OUT, "ptp_kvm_init"));
	assert_false(in_list(text, LEFT_OUT, "sha256_mod_init"));

	assert_int_equal(symtab_add(t, 0xffffffff81000000, 16, 't', "sha256_mod_init"), 0);
	assert_int_equal(symtab_add(t, 0xffffffff81000010, 16, 't', "sha256_mod_init_other"), 0);
	assert_int_equal(symtab_freeze(t, &e), 0);
	r.symbols = t;
	text = cmdline(&r, &slow);
	assert_true(in_list(text, LEFT_OUT, "sha256_mod_init"));
	assert_false(in_list(text, LEFT_OUT, "sha512_mod_init"));
	assert_false(in_list(text, LEFT_OUT, "trace_eval_init"));
	assert_true(in_list(text, LEFT_OUT, "ptp_kvm_init")); /* it belongs to a module */
	r.tune = false;
	assert_null(strstr(cmdline(&r, &slow), LEFT_OUT));
	symtab_destroy(t);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(linux_on_a_plain_host, teardown),
		cmocka_unit_test_teardown(linux_on_a_slow_host, teardown),
		cmocka_unit_test_teardown(cpuid_bits_are_numbers, teardown),
		cmocka_unit_test_teardown(initcalls_by_the_names, teardown),
		cmocka_unit_test_teardown(other_kernels, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
