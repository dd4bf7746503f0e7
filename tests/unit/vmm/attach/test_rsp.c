/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The GDB remote protocol: packets and texts as such, and a stub of our own in a thread,
 * which behaves or misbehaves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "vmm/attach/attach.h"
#include "vmm/attach/gdb_link.h"
#include "vmm/attach/rsp_text.h"
#include "base/mmu.h"
#include "vmm/attach/attach_facts.h"
#include "vmm/attach/foreign.h"
#include "vmm/attach/gdb.h"
#include "vmm/quirks.h"
#include "vmm/vm.h"
#include "base/ring.h"
#include "vmm/end.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* -- packets --------------------------------------------------------------------------- */

static long parse(const char *bytes, const char *want)
{
	struct buf out;
	long n;

	buf_init(&out);
	n = rsp_parse(&out, (const uint8_t *)bytes, strlen(bytes));
	if (want) {
		assert_int_equal(out.len, strlen(want));
		assert_memory_equal(out.data ? (char *)out.data : "", want, out.len);
	}
	buf_deinit(&out);
	return n;
}

static void packets(void **state)
{
	(void)state;
	assert_int_equal(parse("$OK#9a", "OK"), 6);
	assert_int_equal(parse("$OK#9A+$more", "OK"), 6);
	assert_int_equal(parse("$#00", ""), 4);
	/* 0x7d escapes; "0* " is four zeros: the manual's own example. */
	assert_int_equal(parse("$a}\x03"
			       "b#43",
			       "a#b"),
			 8);
	assert_int_equal(parse("$0* #7a", "0000"), 7);
	/* Not whole yet. */
	assert_int_equal(parse("", NULL), 0);
	assert_int_equal(parse("$", NULL), 0);
	assert_int_equal(parse("$OK", NULL), 0);
	assert_int_equal(parse("$OK#9", NULL), 0);
	/* Wrong. */
	assert_int_equal(parse("OK#9a", NULL), -EPROTO);
	assert_int_equal(parse("$OK#9b", NULL), -EPROTO);
	assert_int_equal(parse("$OK#zz", NULL), -EPROTO);
	assert_int_equal(parse("$}#7d", NULL), -EPROTO);
	assert_int_equal(parse("$* #4a", NULL), -EPROTO);
	assert_int_equal(parse("$0*#5a", NULL), -EPROTO);
}

/* -- descriptions ------------------------------------------------------------------------- */

/* clang-format can't make up its mind about these. */
/* clang-format off */
#define R64(name) "<reg name='" name "' bitsize='64'/>"
#define GPRS \
	R64("rax") R64("rbx") R64("rcx") R64("rdx") R64("rsi") R64("rdi") R64("rbp") R64("rsp") \
	R64("r8") R64("r9") R64("r10") R64("r11") R64("r12") R64("r13") R64("r14") R64("r15") \
	R64("rip") "<reg name=\"eflags\" bitsize=\"32\" type='x'/>" \
	"<reg bitsize='32' name='cs'/><reg name='ss' bitsize='32'/>"
#define BASES "<!--" R64("cs_base") "-->" R64("fs_base") R64("gs_base") R64("k_gs_base")
#define CONTROL R64("cr0") R64("cr2") R64("cr3") R64("cr4") R64("cr8") R64("efer")
#define WHOLE "<target>" GPRS BASES CONTROL "</target>"
/* clang-format on */
enum { AT_RIP = 128, AT_CS = 140, AT_KGS = 164, AT_CR3 = 188, SIZE = 220 };

static int layout(const char *xml, struct rsp_layout *l, struct err *e)
{
	memset(e, 0, sizeof(*e));
	return rsp_layout_parse(l, xml, strlen(xml), e);
}

static void descriptions(void **state)
{
	char name[RSP_MAX_INCLUDES][64];
	struct rsp_layout l;
	struct err e;
	static const char includes[] = "<target><xi:include href=\"a.xml\"/> <xi:include\n"
				       "href='b-2.xml'/><!-- <xi:include href='c'/> -->";

	(void)state;
	assert_int_equal(layout(WHOLE, &l, &e), 0);
	assert_int_equal(l.rip.off, AT_RIP);
	assert_int_equal(l.cs.off, AT_CS);
	assert_int_equal(l.cs.len, 4);
	assert_int_equal(l.kernel_gs.off, AT_KGS);
	assert_int_equal(l.cr3.off, AT_CR3);
	assert_int_equal(l.size, SIZE);
	assert_int_equal(layout("<reg name='eax' bitsize='32'/>", &l, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "no x86-64"));
	assert_int_equal(layout(GPRS, &l, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "control registers"));
	assert_int_equal(layout("<reg name='rax' bitsize='7'/>", &l, &e), -EPROTO);
	assert_int_equal(layout("<reg name='rax' bitsize='99999999999'/>", &l, &e), -EPROTO);
	assert_int_equal(layout("<reg bitsize='64'/>", &l, &e), -EPROTO);
	assert_int_equal(layout("<reg name='rax' bitsize='64", &l, &e), -ENOTSUP);
	assert_int_equal(layout("<!-- " WHOLE, &l, &e), -ENOTSUP);
	assert_int_equal(rsp_includes(includes, sizeof(includes) - 1, name), 2);
	assert_string_equal(name[0], "a.xml");
	assert_string_equal(name[1], "b-2.xml");
}

/* A register's value in a `g` reply. */
static void put(char *hex, unsigned int at, unsigned int len, uint64_t v)
{
	static const char digit[] = "0123456789abcdef";

	for (unsigned int i = 0; i < len; i++, v >>= 8) {
		hex[2 * (at + i)] = digit[v >> 4 & 15];
		hex[2 * (at + i) + 1] = digit[v & 15];
	}
}

static void registers(void **state)
{
	char hex[2 * SIZE + 1];
	struct sample_regs r;
	struct rsp_layout l;
	uint64_t kernel_gs;
	struct err e;

	(void)state;
	memset(hex, '0', sizeof(hex));
	layout(WHOLE, &l, &e);
	put(hex, AT_RIP, 8, 0xffffffff81000123);
	put(hex, AT_CS, 4, 0x33);
	put(hex, AT_KGS, 8, 0xffff888000001000);
	put(hex, AT_CR3, 8, 0x1234000);
	assert_int_equal(rsp_regs_parse(&l, hex, 2 * SIZE, &r, &kernel_gs), 0);
	assert_int_equal(r.rip, 0xffffffff81000123);
	assert_int_equal(r.cs, 0x33);
	assert_int_equal(r.cr3, 0x1234000);
	assert_int_equal(kernel_gs, 0xffff888000001000);
	/* Not known: fine where it can be done without. */
	memset(hex + 2 * AT_KGS, 'x', 16);
	assert_int_equal(rsp_regs_parse(&l, hex, 2 * SIZE, &r, &kernel_gs), 0);
	assert_int_equal(kernel_gs, 0);
	memset(hex + 2 * AT_CR3, 'x', 16);
	assert_int_equal(rsp_regs_parse(&l, hex, 2 * SIZE, &r, &kernel_gs), -EPROTO);
	put(hex, AT_CR3, 8, 0x1234000);
	assert_int_equal(rsp_regs_parse(&l, hex, 2 * SIZE - 1, &r, &kernel_gs), -EPROTO);
	assert_int_equal(rsp_regs_parse(&l, "E01", 3, &r, &kernel_gs), -EPROTO);
}

/* -- what QEMU's monitor prints -------------------------------------------------------------- */

static void monitor_texts(void **state)
{
	static const char regs[] = "RIP=0000000000401a02 RFL=00000297\r\n"
				   "GDT=     ffffffff81002000 0000004f\r\n"
				   "IDT=     fffffe0000000000 00000fff\r\nCR0=80050033 CR2=0\r\n";
	static const char tree[] =
		"FlatView #0\r\n AS \"I/O\", root: io\r\n"
		"  0000000000000000-0000000000000fff (prio 0, ram): not this\r\n"
		"FlatView #1\r\n AS \"memory\", root: system\r\n Root memory region: system\r\n"
		"  0000000000000000-000000000009ffff (prio 0, ram): pc.ram KVM\r\n"
		"  00000000000a0000-00000000000bffff (prio 1, i/o): vga-lowmem\r\n"
		"  00000000000c0000-00000000000c3fff (prio 0, rom): pc.ram @c0000 KVM\r\n"
		"  0000000000100000-0000000001ffffff (prio 0, ram): pc.ram\r\n"
		"  0000000002000000-0000000007ffffff (prio 0, ram): pc.ram\r\n"
		"  0000000007000000-0000000008ffffff (prio 0, ram): overlaps\r\n"
		"  00000000fed00000-00000000fed00003 (prio 0, ram): less than a page\r\n"
		"  0000000000000000-ffffffffffffffff (prio 0, ram): too large\r\n"
		"FlatView #2\r\n AS \"other\"\r\n"
		"  0000000100000000-00000001ffffffff (prio 0, ram): not this\r\n";
	struct rsp_range r[4];
	uint64_t idt = 0, gdt = 0;

	(void)state;
	assert_true(rsp_text_tables(regs, sizeof(regs) - 1, &idt, &gdt));
	assert_int_equal(idt, 0xfffffe0000000000);
	assert_int_equal(gdt, 0xffffffff81002000);
	assert_false(rsp_text_tables("IDT=     12", 11, &idt, &gdt));
	assert_false(rsp_text_tables("IDT=zz\nGDT=1", 12, &idt, &gdt));
	assert_int_equal(rsp_text_ram(tree, sizeof(tree) - 1, r, 4), 2);
	assert_int_equal(r[0].start, 0);
	assert_int_equal(r[0].len, 0xa0000);
	assert_int_equal(r[1].start, 0x100000);
	assert_int_equal(r[1].len, 0x7f00000);
	assert_int_equal(rsp_text_ram(tree, sizeof(tree) - 1, r, 1), 1);
	assert_int_equal(rsp_text_ram("nothing", 7, r, 4), 0);
}

/* -- a stub ------------------------------------------------------------------------------------ */

enum mood {
	GOOD,
	QEMU,	   /* physical memory, and a monitor */
	SILENT,	   /* hears, and says nothing */
	CLOSES,	   /* at once */
	GARBAGE,   /* no packets */
	HALF,	   /* half a packet, and closes */
	WRONG_SUM, /* each packet has a wrong sum */
	ONLY_STOPS,
	ENDLESS_XML,
	HOSTILE_INCLUDE,
	SHORT_REGS,
	NO_THREADS,
	DIES_RUNNING, /* when told to continue */
	STOPS_RUNNING /* by itself, when told to continue */
};

static struct stub {
	enum mood mood;
	int listen_fd, fd;
	char where[32];
	pthread_t thread;
	atomic_uint breaks, continues, reads, detached;
	char regs[2 * SIZE + 1];
} stub;

#define USER_CR3 UINT64_C(0x1000)
#define STACK UINT64_C(0x7ffd1000)
#define TEXT UINT64_C(0x401000)

static void say_as(const char *data, unsigned int more)
{
	char out[40000];
	uint8_t sum = 0;

	for (const char *c = data; *c; c++)
		sum = (uint8_t)(sum + (uint8_t)*c);
	snprintf(out, sizeof(out), "+$%s#%02x", data, (uint8_t)(sum + more));
	(void)!send(stub.fd, out, strlen(out), MSG_NOSIGNAL);
}

static void say(const char *data)
{
	say_as(data, stub.mood == WRONG_SUM);
}

/* The byte at an address is a sum of the address's; elsewhere is nothing. */
static uint8_t byte_at(uint64_t at)
{
	return (uint8_t)(at ^ at >> 8);
}

static void say_memory(const char *command)
{
	static char out[40000];
	unsigned long at, len;
	char *end;

	atomic_fetch_add(&stub.reads, 1);
	at = strtoul(command, &end, 16);
	len = strtoul(end + 1, NULL, 16);
	if (!((at >= TEXT && at + len <= TEXT + 0x1000) ||
	      (at >= STACK && at + len <= STACK + 0x1000)) ||
	    len > 0x1000) {
		say("E14");
		return;
	}
	for (unsigned long i = 0; i < len; i++)
		put(out, (unsigned int)i, 1, byte_at(at + i));
	out[2 * len] = '\0';
	say(out);
}

static void say_monitor(const char *hex)
{
	/* "info registers", in two parts */
	if (stub.mood != QEMU) {
		say("");
	} else if (!strncmp(hex, "696e666f2072", 12)) {
		say("O4744543d203130300a4944");
		say("O543d203230300a");
		say("OK");
	} else {
		say("OK");
	}
}

/* False: that was the last one. */
static bool answer(const char *c)
{
	if (!strncmp(c, "qSupported", 10))
		say("PacketSize=1000;qXfer:features:read+");
	else if (!strcmp(c, "vCont?"))
		say("vCont;c;C;s;S");
	else if (!strncmp(c, "Qqemu", 5))
		say(stub.mood == QEMU ? "OK" : "");
	else if (!strncmp(c, "qXfer:features:read:target.xml:0,", 33))
		say(stub.mood == ENDLESS_XML	   ? "m<target>"
		    : stub.mood == HOSTILE_INCLUDE ? "l<xi:include href='../a,b:c'/>"
						   : "l<xi:include href=\"x.xml\"/>");
	else if (!strncmp(c, "qXfer:features:read:target.xml", 30))
		say("m ");
	else if (!strncmp(c, "qXfer:features:read:x.xml:0,", 28))
		say("l" WHOLE);
	else if (!strcmp(c, "qfThreadInfo"))
		say(stub.mood == NO_THREADS ? "l" : "m01");
	else if (!strcmp(c, "qsThreadInfo"))
		say("l");
	else if (!strcmp(c, "Hg01"))
		say("OK");
	else if (!strcmp(c, "g"))
		say(stub.mood == SHORT_REGS ? "0011" : stub.regs);
	else if (!strncmp(c, "qRcmd,", 6))
		say_monitor(c + 6);
	else if (*c == 'm')
		say_memory(c + 1);
	else if (!strcmp(c, "vCont;c")) {
		atomic_fetch_add(&stub.continues, 1);
		if (stub.mood == STOPS_RUNNING)
			say("T02thread:01;");
		if (stub.mood == DIES_RUNNING)
			return false;
	} else if (!strcmp(c, "D")) {
		atomic_fetch_add(&stub.detached, 1);
		say("OK");
	} else
		say("");
	return true;
}

static bool misbehave(void)
{
	switch (stub.mood) {
	case SILENT:
		return true;
	case GARBAGE:
		(void)!send(stub.fd, "$\xff\xfe}#zz$$$#", 10, MSG_NOSIGNAL);
		return true;
	case HALF:
		(void)!send(stub.fd, "+$Packet", 8, MSG_NOSIGNAL);
		return false;
	case ONLY_STOPS:
		for (int i = 0; i < 20; i++)
			say("T05thread:01;");
		return true;
	default:
		return true;
	}
}

static void serve(void)
{
	char command[512];
	size_t n = 0;
	uint8_t c;
	bool in = false;

	while (recv(stub.fd, &c, 1, 0) == 1) {
		if (!in && c == 3) {
			atomic_fetch_add(&stub.breaks, 1);
			say("T02thread:01;");
		} else if (!in && c == '$') {
			in = true;
			n = 0;
		} else if (in && c == '#') {
			(void)!recv(stub.fd, command + n, 2, MSG_WAITALL);
			command[n] = '\0';
			in = false;
			if (stub.mood >= SILENT && stub.mood <= ONLY_STOPS &&
			    stub.mood != WRONG_SUM) {
				if (!misbehave())
					return;
			} else if (!answer(command)) {
				return;
			}
		} else if (in && n < sizeof(command) - 3) {
			command[n++] = (char)c;
		}
	}
}

static void *stub_main(void *arg)
{
	(void)arg;
	stub.fd = accept(stub.listen_fd, NULL, NULL);
	if (stub.mood != CLOSES)
		serve();
	close(stub.fd);
	return NULL;
}

static void stub_start(enum mood mood)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);

	memset(&stub, 0, sizeof(stub));
	stub.mood = mood;
	memset(stub.regs, '0', 2 * SIZE);
	put(stub.regs, 7 * 8, 8, STACK + 0x800); /* rsp */
	put(stub.regs, AT_RIP, 8, TEXT + 0x123);
	put(stub.regs, AT_CS, 4, 0x33);
	put(stub.regs, 172, 8, UINT64_C(1) << 31 | 1); /* cr0 */
	put(stub.regs, AT_CR3, 8, USER_CR3);
	put(stub.regs, 196, 8, 1 << 5); /* cr4 */
	put(stub.regs, 212, 8, 0x500);	/* efer */
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	stub.listen_fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(stub.listen_fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(stub.listen_fd, 1), 0);
	getsockname(stub.listen_fd, (struct sockaddr *)&a, &len);
	snprintf(stub.where, sizeof(stub.where), "127.0.0.1:%u", ntohs(a.sin_port));
	assert_int_equal(pthread_create(&stub.thread, NULL, stub_main, NULL), 0);
}

static void stub_end(void)
{
	pthread_join(stub.thread, NULL);
	close(stub.listen_fd);
}

/* Opens fail in one line, at once (or after the time that answers have). */
static void bad_stubs_are_refused(void **state)
{
	static const struct {
		enum mood mood;
		int ret;
		const char *text;
	} bad[] = {
		{ CLOSES, -EPIPE, "" },
		{ GARBAGE, -EPROTO, "no packet" },
		{ HALF, -EPIPE, "closed" },
		{ WRONG_SUM, -EPROTO, "no packet" },
		{ ONLY_STOPS, -EPROTO, "nothing but stops" },
		{ ENDLESS_XML, -EPROTO, "" },
		{ HOSTILE_INCLUDE, -EPROTO, "includes no file" },
		{ NO_THREADS, -ENODEV, "no vCPU" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		static struct gdb_link l;
		struct err e = { 0 };
		int ret;

		stub_start(bad[i].mood);
		ret = gdb_link_open(&l, stub.where, &e);
		stub_end();
		assert_int_not_equal(ret, 0);
		/* A close may be seen as such, or as the reset that it becomes with bytes unread. */
		if (bad[i].ret != -EPIPE && bad[i].mood != ENDLESS_XML) {
			assert_int_equal(ret, bad[i].ret);
			assert_non_null(strstr(e.text, bad[i].text));
		}
		assert_int_equal(e.code, -ret);
		assert_null(strchr(e.text, '\n'));
	}
}

static void who_does_not_answer_is_not_waited_for(void **state)
{
	struct err e = { 0 };
	uint64_t t0;
	struct rsp r;

	(void)state;
	stub_start(SILENT);
	rsp_init(&r);
	r.timeout_ms = 100;
	assert_int_equal(rsp_connect(&r, stub.where, &e), 0);
	t0 = clock_mono_ns();
	assert_int_equal(rsp_request(&r, "g", &e), -ETIMEDOUT);
	assert_true(clock_mono_ns() - t0 >= 100000000);
	rsp_deinit(&r);
	stub_end();
}

static void addresses_of_nobody(void **state)
{
	static const char *const where[] = {
		"", "nowhere", ":", "a:", "127.0.0.1:notaport", "no.such.host.invalid:1"
	};
	struct rsp r;

	(void)state;
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		struct err e = { 0 };

		rsp_init(&r);
		assert_int_not_equal(rsp_connect(&r, where[i], &e), 0);
		assert_int_not_equal(e.code, 0);
		rsp_deinit(&r);
	}
}

/* -- a machine behind a stub ------------------------------------------------------------------- */

static struct vm *attach(struct err *e)
{
	static const struct quirks quirks;
	struct attach_config cfg = {
		.gdb = stub.where,
		.quirks = &quirks,
		.event = { .kind = VM_EVENT_WALL, .period = 2000000 },
		.plan = { .stack_max = 4096 },
		.ring_size = 1 << 20,
	};
	struct vm *vm = NULL;

	return gdb_open(&vm, &cfg, e) ? NULL : vm;
}

static void one_address_space_at_a_time(void **state)
{
	struct err e = { 0 };
	struct mmu_root root = {
		.cr0 = UINT64_C(1) << 31, .cr3 = USER_CR3, .cr4 = 1 << 5, .efer = 0x500
	};
	struct attach_facts facts;
	const struct sample *s;
	const struct gmem *mem;
	uint8_t bytes[64];
	struct vm *vm;
	size_t len;

	(void)state;
	stub_start(GOOD);
	vm = attach(&e);
	assert_non_null(vm);
	assert_int_equal(vm_vcpus(vm), 1);
	assert_int_equal(vm_start(vm, &e), 0);
	for (int i = 0; i < 500 && !ring_peek(vm_ring(vm, 0), &len); i++)
		usleep(10000);
	s = ring_peek(vm_ring(vm, 0), &len);
	assert_non_null(s);
	assert_int_equal(s->regs.rip, TEXT + 0x123);
	assert_int_equal(s->mode, SAMPLE_USER);
	/* Up to the end of what is mapped. */
	assert_int_equal(s->stack_end, SAMPLE_STACK_WHOLE);
	assert_int_equal(s->stack_len, 0x800);
	for (unsigned int i = 0; i < s->stack_len; i++)
		assert_int_equal(s->stack[i], byte_at(STACK + 0x800 + i));
	mem = vm_memory(vm);
	assert_int_equal(mmu_read(mem, &root, TEXT + 0x10, bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(bytes[0], byte_at(TEXT + 0x10));
	assert_int_equal(mmu_read(mem, &root, TEXT + 0x2000, bytes, sizeof(bytes)), 0);
	root.cr3 = USER_CR3 + 0x1000;
	assert_int_equal(mmu_read(mem, &root, TEXT + 0x10, bytes, sizeof(bytes)), 0);
	vm_end(vm, VM_END_INTERRUPTED);
	vm_join(vm);
	foreign_facts(vm, &facts);
	assert_true(facts.virtual_only);
	assert_true(facts.stops >= 2 && facts.memory_stops >= 1);
	vm_destroy(vm);
	stub_end();
	assert_int_equal(stub.detached, 1);
}

/* Stopped when the debugger came, and by each break since. */
static bool stub_runs(void)
{
	for (int i = 0; i < 2000; i++) {
		if (atomic_load(&stub.continues) == atomic_load(&stub.breaks) + 1)
			return true;
		usleep(1000);
	}
	return false;
}

/* While we are stopped (Ctrl-Z) the machine is not, whenever that comes. */
static void the_machine_runs_while_we_rest(void **state)
{
	struct err e = { 0 };
	struct mmu_root root = {
		.cr0 = UINT64_C(1) << 31, .cr3 = USER_CR3, .cr4 = 1 << 5, .efer = 0x500
	};
	struct vm *vm;

	(void)state;
	stub_start(GOOD);
	vm = attach(&e);
	assert_non_null(vm);
	for (unsigned int i = 0; i < 40; i++) {
		unsigned int breaks;

		if (i == 1)
			assert_int_equal(vm_start(vm, &e), 0);
		usleep((useconds_t)(rand() % 5000));
		/* It goes on standing for a moment after a read. */
		if (i % 2) {
			uint8_t byte;

			mmu_read(vm_memory(vm), &root, TEXT, &byte, 1);
		}
		foreign_suspend(vm);
		assert_true(stub_runs());
		breaks = atomic_load(&stub.breaks);
		usleep(5000);
		assert_int_equal(atomic_load(&stub.breaks), breaks);
		foreign_resume(vm);
		for (int k = 0; i && k < 5000 && atomic_load(&stub.breaks) == breaks; k++)
			usleep(1000);
		assert_true(!i || atomic_load(&stub.breaks) > breaks);
	}
	vm_end(vm, VM_END_INTERRUPTED);
	vm_join(vm);
	vm_destroy(vm);
	stub_end();
	assert_int_equal(stub.detached, 1);
}

static enum vm_end_reason end_of(enum mood mood, unsigned int *detached)
{
	enum vm_end_reason reason;
	struct err e = { 0 };
	struct vm *vm;

	stub_start(mood);
	vm = attach(&e);
	assert_non_null(vm);
	assert_int_equal(vm_start(vm, &e), 0);
	vm_join(vm);
	reason = vm_result(vm)->reason;
	vm_destroy(vm);
	stub_end();
	*detached = stub.detached;
	return reason;
}

static void a_machine_that_ends_or_is_stopped(void **state)
{
	unsigned int detached;

	(void)state;
	assert_int_equal(end_of(DIES_RUNNING, &detached), VM_END_GONE);
	/* Whoever stopped it wants it so. */
	assert_int_equal(end_of(STOPS_RUNNING, &detached), VM_END_STOPPED);
	assert_int_equal(detached, 0);
}

static void registers_that_are_none(void **state)
{
	struct err e = { 0 };

	(void)state;
	stub_start(SHORT_REGS);
	assert_null(attach(&e));
	assert_int_equal(e.code, EPROTO);
	stub_end();
}

static void qemu_tells_more(void **state)
{
	static struct gdb_link l;
	struct err e = { 0 };
	struct gmem m = { 0 };
	struct kvm_run run;
	uint8_t bytes[0x1000];
	uint64_t gs;

	(void)state;
	stub_start(QEMU);
	assert_int_equal(gdb_link_open(&l, stub.where, &e), 0);
	assert_int_equal(gdb_link_tables(&l, &e), 0);
	assert_int_equal(l.gdt, 0x100);
	assert_int_equal(l.idt, 0x200);
	assert_int_equal(gdb_link_regions(&l, &m, &e), 0);
	/* It says nothing of RAM: what is devices on a PC is left out. */
	assert_int_equal(m.n, 3);
	assert_int_equal(gdb_link_regs(&l, 0, &run, &gs, &e), 0);
	assert_int_equal(run.s.regs.sregs.idt.base, 0x200);
	assert_int_equal(run.s.regs.sregs.cs.dpl, 3);
	assert_int_equal(gdb_link_read(&l, TEXT, bytes, sizeof(bytes), &e), 0);
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], byte_at(TEXT + i));
	/* Nothing there, with some questions on the way: and all is well afterwards. */
	assert_int_equal(gdb_link_read(&l, TEXT + 0x800, bytes, sizeof(bytes), &e), -EFAULT);
	assert_int_equal(e.code, 0);
	assert_int_equal(gdb_link_read(&l, TEXT, bytes, 16, &e), 0);
	assert_int_equal(gdb_link_resume(&l, &e), 0);
	assert_int_equal(gdb_link_read(&l, TEXT, bytes, 16, &e), -EBUSY);
	gdb_link_close(&l);
	stub_end();
	assert_int_equal(stub.detached, 1);
	assert_int_equal(stub.breaks, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets),
		cmocka_unit_test(descriptions),
		cmocka_unit_test(registers),
		cmocka_unit_test(monitor_texts),
		cmocka_unit_test(bad_stubs_are_refused),
		cmocka_unit_test(who_does_not_answer_is_not_waited_for),
		cmocka_unit_test(addresses_of_nobody),
		cmocka_unit_test(one_address_space_at_a_time),
		cmocka_unit_test(the_machine_runs_while_we_rest),
		cmocka_unit_test(a_machine_that_ends_or_is_stopped),
		cmocka_unit_test(registers_that_are_none),
		cmocka_unit_test(qemu_tells_more),
	};

	return cmocka_run_group_tests_name("rsp", tests, NULL, NULL);
}
