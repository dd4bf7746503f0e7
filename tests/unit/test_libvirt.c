/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What needs no daemon of the work with libvirt: URIs, what events mean, whose command line
 * it is.
 */
#include "profile/attach_domain.h"
#include "profile/libvirt_pid.h"

#include <errno.h>
#include <libvirt/libvirt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* -- libvirt --------------------------------------------------------------------------- */

static void remote_uris_are_known(void **state)
{
	(void)state;
	assert_false(libvirt_uri_is_remote(NULL));
	assert_false(libvirt_uri_is_remote("alias"));
	assert_false(libvirt_uri_is_remote("qemu:///system"));
	assert_false(libvirt_uri_is_remote("qemu+unix:///session?socket=/x"));
	assert_false(libvirt_uri_is_remote("test:///default"));
	assert_true(libvirt_uri_is_remote("qemu+ssh://root@host/system"));
	assert_true(libvirt_uri_is_remote("qemu+tcp:///system"));
	assert_true(libvirt_uri_is_remote("qemu://host/system"));
	assert_true(libvirt_uri_is_remote("qemu://localhost/system"));
	assert_true(libvirt_uri_is_remote("qemu+unixish://x/system"));
}

static void events_have_a_meaning(void **state)
{
	struct libvirt_end end = { 0 };

	(void)state;
	assert_false(libvirt_event_is_end(VIR_DOMAIN_EVENT_RESUMED, 0, &end));
	assert_false(libvirt_event_is_end(VIR_DOMAIN_EVENT_DEFINED, 0, &end));
	assert_false(libvirt_event_is_end(99, 0, &end));
	assert_true(libvirt_event_is_end(VIR_DOMAIN_EVENT_SUSPENDED,
					 VIR_DOMAIN_EVENT_SUSPENDED_PAUSED, &end));
	assert_string_equal(end.event, "paused");
	assert_true(libvirt_event_is_end(VIR_DOMAIN_EVENT_SUSPENDED,
					 VIR_DOMAIN_EVENT_SUSPENDED_MIGRATED, &end));
	assert_string_equal(end.event, "migrated");
	assert_true(libvirt_event_is_end(VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_SAVED,
					 &end));
	assert_string_equal(end.event, "saved");
	assert_true(libvirt_event_is_end(VIR_DOMAIN_EVENT_STOPPED,
					 VIR_DOMAIN_EVENT_STOPPED_DESTROYED, &end));
	assert_string_equal(end.event, "destroyed");
	assert_false(end.more);
	assert_true(libvirt_event_is_end(VIR_DOMAIN_EVENT_SHUTDOWN, 0, &end));
	assert_true(end.more);
	assert_true(libvirt_event_is_end(VIR_DOMAIN_EVENT_CRASHED, 0, &end));
	assert_string_equal(end.event, "crashed");
	assert_true(libvirt_event_is_end(VIR_DOMAIN_EVENT_STOPPED, 99, &end));
	assert_string_equal(end.event, "stopped");
}

#define UUID "e6729530-29b9-4dbb-bd96-ad873684b2c9"

static void command_lines_are_told_apart(void **state)
{
	static const char good[] = "qemu\0-name\0guest=a,,b,debug-threads=on\0-uuid\0" UUID;
	static const char old[] = "qemu\0-name\0guest=a,,b";
	static const char other[] =
		"qemu\0-name\0guest=a,,b\0-uuid\0e6729530-29b9-4dbb-bd96-ad873684b2c8";
	static const char cut[] = { 'q', '\0', '-', 'u', 'u', 'i', 'd', '\0', 'e', '6' };

	(void)state;
	assert_true(libvirt_pid_matches(good, sizeof(good), "a,b", UUID));
	assert_true(libvirt_pid_matches(good, sizeof(good), "renamed", UUID));
	assert_true(libvirt_pid_matches(old, sizeof(old), "a,b", UUID));
	assert_false(libvirt_pid_matches(old, sizeof(old), "a", UUID));
	assert_false(libvirt_pid_matches(old, sizeof(old), "a,,b", UUID));
	assert_false(libvirt_pid_matches(old, sizeof(old), "a,bc", UUID));
	assert_false(libvirt_pid_matches(other, sizeof(other), "a,b", UUID));
	assert_false(libvirt_pid_matches(cut, sizeof(cut), "a,b", "e6"));
	assert_false(libvirt_pid_matches("", 0, "a,b", UUID));
}

static void processes_are_requested_by_number(void **state)
{
	struct attach_request r = { .way = ATTACH_PID, .what = "x1" };
	struct attach_domain *d;
	struct err e = { 0 };
	pid_t pid;

	(void)state;
	assert_int_equal(attach_find(&r, &pid, &d, &e), -EINVAL);
	r.what = "4711";
	assert_int_equal(attach_find(&r, &pid, &d, &e), 0);
	assert_int_equal(pid, 4711);
	assert_null(d);
	r = (struct attach_request){ .what = "x", .uri = "qemu+ssh://h/system" };
	assert_int_equal(attach_find(&r, &pid, &d, &e), -EREMOTE);
	assert_null(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remote_uris_are_known),
		cmocka_unit_test(events_have_a_meaning),
		cmocka_unit_test(command_lines_are_told_apart),
		cmocka_unit_test(processes_are_requested_by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
