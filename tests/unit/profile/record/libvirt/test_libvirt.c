/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of the work with libvirt that needs no daemon: definitions of domains and machines made
 * of them, URIs, the meaning of events, the owner of a command line.
 */
#include "profile/record/libvirt/attach_domain.h"
#include "profile/record/libvirt/pid.h"
#include "profile/record/run/definition.h"

#include <errno.h>
#include <libvirt/libvirt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* -- definitions ----------------------------------------------------------------------- */

static int parse(const char *text, struct domain_xml *d, struct err *e)
{
	err_clear(e);
	return domain_xml_parse(text, strlen(text), d, e);
}

static bool is_left(const struct domain_xml *d, const char *what)
{
	const char *s = (const char *)d->left.data;

	for (unsigned int i = 0; i < d->nleft; i++, s += strlen(s) + 1)
		if (!strcmp(s, what))
			return true;
	return false;
}

static const char whole[] =
	"<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>"
	"<name>web &amp; co</name><uuid>x</uuid><description>no matter</description>"
	"<memory unit='MiB'>512</memory><currentMemory unit='MiB'>256</currentMemory>"
	"<vcpu current='2'>4</vcpu>"
	"<os><type arch='x86_64' machine='q35'>hvm</type><loader>/OVMF.fd</loader>"
	"<kernel> /boot/vmlinuz </kernel><initrd>/boot/initrd.img</initrd>"
	"<cmdline>root=/dev/vda1 quiet</cmdline><boot dev='hd'/></os>"
	"<features><acpi/></features><cpu mode='host-model'/>"
	"<on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot>"
	"<devices><disk type='file'><source file='/x.img'/><target dev='vdb' bus='virtio'/></disk>"
	"<disk type='block' device='disk'><driver name='qemu' type='raw'/><source dev='/dev/y'/>"
	"<target dev='sda' bus='sata'/><readonly/><serial>S1</serial></disk>"
	"<disk type='file'><driver type='dmg'/><source file='/z'/><target dev='vdc'/></disk>"
	"<disk type='network'><source name='pool/z'/><target dev='vdd'/></disk>"
	"<disk type='file' device='cdrom'><source file='/cd'/><target dev='hda'/></disk>"
	"<interface type='network'><source network='default'/></interface>"
	"<serial type='pty'><target port='0'/></serial><memballoon model='none'/>"
	"<serial type='pty'><target port='1'/></serial><controller type='usb'/></devices>"
	"<qemu:commandline/></domain>";

static void definition_is_read(void **state)
{
	static const char *const left[] = {
		"currentMemory (256)",
		"vcpu (4 that may be plugged in)",
		"os loader (/OVMF.fd)",
		"feature acpi",
		"cpu (host-model)",
		"on_reboot (restart)",
		"disk sda (bus sata: it is a virtio disk here)",
		"disk vdc (dmg /z: an unknown format)",
		"disk vdd (network pool/z)",
		"disk hda (file /cd)",
		"interface (network default)",
		"serial (pty)",
		"controller (usb)",
		"qemu:commandline",
	};
	struct domain_xml d;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(parse(whole, &d, &e), 0);
	assert_string_equal(d.name, "web & co");
	assert_string_equal(d.kernel, "/boot/vmlinuz");
	assert_string_equal(d.initrd, "/boot/initrd.img");
	assert_string_equal(d.cmdline, "root=/dev/vda1 quiet");
	assert_int_equal(d.memory, 512u << 20);
	assert_int_equal(d.vcpus, 2);
	assert_int_equal(d.ndisks, 2);
	assert_string_equal(d.disk[0].path, "/dev/y");
	assert_string_equal(d.disk[0].serial, "S1");
	assert_true(d.disk[0].readonly);
	assert_string_equal(d.disk[1].target, "vdb");
	assert_string_equal(d.disk[1].path, "/x.img");
	assert_false(d.disk[1].readonly || d.disk[1].serial);
	for (unsigned int i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		if (!is_left(&d, left[i]))
			fail_msg("not listed: %s", left[i]);
	/* Nothing else: neither what is honoured nor words. */
	assert_int_equal(d.nleft, sizeof(left) / sizeof(left[0]));
	domain_xml_deinit(&d);
}

static void memory_has_units(void **state)
{
	static const struct {
		const char *xml;
		uint64_t bytes; /* 0: refused */
	} t[] = {
		{ "<memory>131072</memory>", 128u << 20 },
		{ "<memory unit='KB'>1000</memory>", 1000000 },
		{ "<memory unit='k'>1</memory>", 1024 },
		{ "<memory unit='bytes'>4096</memory>", 4096 },
		{ "<memory unit='GiB'>2</memory>", UINT64_C(2) << 30 },
		{ "<memory unit='TiB'>16777216</memory>", 0 },
		{ "<memory unit='x'>1</memory>", 0 },
		{ "<memory>-1</memory>", 0 },
		{ "<memory>0</memory>", 0 },
		{ "<memory/>", 0 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct domain_xml d;
		struct err e = { 0 };
		char xml[200];

		snprintf(xml, sizeof(xml), "<domain>%s</domain>", t[i].xml);
		assert_int_equal(parse(xml, &d, &e), t[i].bytes ? 0 : -EINVAL);
		if (t[i].bytes)
			assert_int_equal(d.memory, t[i].bytes);
		domain_xml_deinit(&d);
	}
}

static void other_things_are_refused(void **state)
{
	static const struct {
		const char *xml, *text;
		int ret;
	} t[] = {
		{ "", "not XML", -EINVAL },
		{ "<domain>", "not XML, line 1", -EINVAL },
		{ "<network/>", "<network>", -EINVAL },
		{ "<!DOCTYPE d [<!ENTITY a 'b'>]><domain/>", "DOCTYPE", -EINVAL },
		{ "<domain><name>&x;</name></domain>", "not XML, line 1", -EINVAL },
		{ "<domain><os><type>exe</type></os></domain>", "only hvm", -ENOTSUP },
		{ "<domain><os><type arch='aarch64'>hvm</type></os></domain>", "aarch64",
		  -ENOTSUP },
		{ "<domain><vcpu>some</vcpu></domain>", "<vcpu> some", -EINVAL },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct domain_xml d;
		struct err e = { 0 };

		assert_int_equal(parse(t[i].xml, &d, &e), t[i].ret);
		if (!strstr(e.text, t[i].text))
			fail_msg("%s: %s", t[i].xml, e.text);
		domain_xml_deinit(&d);
	}
}

/* A file with this text; unlinked by the caller. */
static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* With a kernel all disks come before those of the command line; without, the first one boots. */
static void disks_of_a_definition(const char *path)
{
	static const char disks[] = "<disk type='file'><source file='/b'/><target dev='vdb'/>"
				    "<readonly/></disk>"
				    "<disk type='file'><source file='/a,1'/><target dev='vda'/>"
				    "<serial>S</serial></disk>";
	struct run_options o;
	struct domain_xml d;
	struct err e = { 0 };
	char text[1024];

	for (int kernel = 0; kernel < 2; kernel++) {
		snprintf(text, sizeof(text),
			 "<domain><name>d</name><memory>1048576</memory><os>%s</os>"
			 "<devices>%s</devices></domain>",
			 kernel ? "<kernel>/k</kernel>" : "", disks);
		write_file(path, text);
		run_options_default(&o);
		o.domain = path;
		o.disk.text[o.disk.n++] = "/mine";
		o.disk.writable = kernel;
		assert_int_equal(run_definition_apply(&d, &o, &e), 0);
		assert_string_equal(o.image, kernel ? "/k" : "/a,1");
		assert_true(o.mem_given);
		assert_int_equal(o.disk.n, kernel ? 3 : 2);
		if (kernel)
			assert_string_equal(o.disk.text[0], "/a,,1,writable,serial=S,format=raw");
		assert_string_equal(o.disk.text[o.disk.n - 2], "/b,readonly,format=raw");
		assert_string_equal(o.disk.text[o.disk.n - 1], "/mine");
		assert_false(o.disk.writable);
		/* Writing, and the serial number of an image that boots. */
		assert_int_equal(d.nleft, kernel ? 0 : 2);
		domain_xml_deinit(&d);
	}
	unlink(path);
}

static void command_line_goes_first(void **state)
{
	char path[64];
	struct run_options o;
	struct domain_xml d;
	struct err e = { 0 };
	struct buf b;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/kvmprof-test-%d.xml", (int)getpid());
	write_file(path, whole);
	run_options_default(&o);
	o.domain = path;
	assert_int_equal(run_definition_apply(&d, &o, &e), 0);
	assert_string_equal(o.image, "/boot/vmlinuz");
	assert_string_equal(o.initrd, "/boot/initrd.img");
	assert_string_equal(o.cmdline, "root=/dev/vda1 quiet");
	assert_int_equal(o.mem_size, 512u << 20);
	assert_int_equal(o.vcpus, 2);
	buf_init(&b);
	run_definition_unused(&d, "> ", 60, &b);
	for (char *line = strtok((char *)b.data, "\n"); line; line = strtok(NULL, "\n")) {
		assert_true(!strncmp(line, "> ", 2));
		assert_in_range(strlen(line), 3, 61);
	}
	buf_deinit(&b);
	domain_xml_deinit(&d);

	run_options_default(&o);
	o.domain = path;
	o.mem_size = 64 << 20;
	o.vcpus = 1;
	o.mem_given = o.vcpus_given = true;
	o.cmdline = "mine";
	assert_int_equal(run_definition_apply(&d, &o, &e), 0);
	assert_int_equal(o.mem_size, 64u << 20);
	assert_int_equal(o.vcpus, 1);
	assert_string_equal(o.cmdline, "mine");
	domain_xml_deinit(&d);

	/* With an image of one's own the kernel's belongings stay away, too. */
	run_options_default(&o);
	o.domain = path;
	o.image = "other";
	assert_int_equal(run_definition_apply(&d, &o, &e), 0);
	assert_string_equal(o.image, "other");
	assert_null(o.initrd);
	assert_null(o.cmdline);
	domain_xml_deinit(&d);

	write_file(path, "<domain><name>d</name><memory>1024</memory><vcpu>99</vcpu></domain>");
	run_options_default(&o);
	o.domain = path;
	assert_int_equal(run_definition_apply(&d, &o, &e), -ENOENT);
	assert_non_null(strstr(e.text, "domain d has neither a <kernel> nor a disk"));
	domain_xml_deinit(&d);
	o.image = "k";
	err_clear(&e);
	assert_int_equal(run_definition_apply(&d, &o, &e), 0);
	assert_int_equal(o.mem_size, RUN_MEM_MIN);
	assert_int_equal(o.vcpus, VM_MAX_VCPUS);
	assert_int_equal(d.nleft, 2);
	domain_xml_deinit(&d);
	unlink(path);
	disks_of_a_definition(path);
	assert_true(run_definition_is_file("x.xml"));
	assert_true(run_definition_is_file("./demo"));
	assert_false(run_definition_is_file("demo"));
	assert_false(run_definition_is_file(".xml"));
}

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

/* As it would have been told by an event. */
static void states_have_a_cause(void **state)
{
	struct libvirt_end end = { 0 };
	int event = 0, detail = 0;

	(void)state;
	assert_false(libvirt_state_is_end(VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_BOOTED, &event,
					  &detail));
	assert_false(libvirt_state_is_end(VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_UNKNOWN, &event,
					  &detail));
	assert_false(libvirt_state_is_end(VIR_DOMAIN_SHUTOFF, 99, &event, &detail));
	assert_true(libvirt_state_is_end(VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_SHUTDOWN, &event,
					 &detail));
	assert_true(libvirt_event_is_end(event, detail, &end));
	assert_string_equal(end.event, "shutdown");
	/* A VMM that was killed: whoever asks hears the same as who was told. */
	assert_true(libvirt_state_is_end(VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_CRASHED, &event,
					 &detail));
	assert_int_equal(event, VIR_DOMAIN_EVENT_STOPPED);
	assert_int_equal(detail, VIR_DOMAIN_EVENT_STOPPED_FAILED);
	assert_true(libvirt_state_is_end(VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_FAILED, &event,
					 &detail));
	assert_true(libvirt_event_is_end(event, detail, &end));
	assert_string_equal(end.event, "failed");
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
	assert_int_equal(attach_domain_find(&r, &pid, &d, &e), -EINVAL);
	r.what = "4711";
	assert_int_equal(attach_domain_find(&r, &pid, &d, &e), 0);
	assert_int_equal(pid, 4711);
	assert_null(d);
	r = (struct attach_request){ .what = "x", .uri = "qemu+ssh://h/system" };
	assert_int_equal(attach_domain_find(&r, &pid, &d, &e), -EREMOTE);
	assert_null(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(definition_is_read),
		cmocka_unit_test(memory_has_units),
		cmocka_unit_test(other_things_are_refused),
		cmocka_unit_test(command_line_goes_first),
		cmocka_unit_test(remote_uris_are_known),
		cmocka_unit_test(events_have_a_meaning),
		cmocka_unit_test(states_have_a_cause),
		cmocka_unit_test(command_lines_are_told_apart),
		cmocka_unit_test(processes_are_requested_by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
