/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of attaching, on real processes: memory of another process, the place of guest RAM in
 * it (a guest's tables are in our own memory, which process_vm_readv() reads like any other),
 * threads that are stopped and resumed.
 */
#include "vmm/attach/machines.h"
#include "vmm/attach/process.h"
#include "vmm/attach/slots.h"
#include "vmm/attach/tracer.h"
#include "base/gmem_remote.h"
#include "base/mmu.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/skip.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* -- memory of another process --------------------------------------------------------- */

static void remote_reads_what_is_there(void **state)
{
	static struct gmem_remote r;
	uint8_t *page =
		mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t word = 0, at = (uintptr_t)page;

	(void)state;
	munmap(page + 2 * 4096, 4096);
	gmem_remote_init(&r, getpid());
	memset(page, 0x11, 2 * 4096);
	assert_int_equal(gmem_remote_read(&r, at + 8, &word, 8), 0);
	assert_int_equal(word, 0x1111111111111111);
	/* Memory that is cached for a sample stays unchanged, and no longer. */
	memset(page, 0x22, 4096);
	gmem_remote_read(&r, at + 8, &word, 8);
	assert_int_equal(word, 0x1111111111111111);
	gmem_remote_invalidate(&r);
	gmem_remote_read(&r, at + 8, &word, 8);
	assert_int_equal(word, 0x2222222222222222);
	/* Over the end of a page, and of what is mapped. */
	assert_int_equal(gmem_remote_read(&r, at + 4092, &word, 8), 0);
	assert_int_equal(word, 0x1111111122222222);
	assert_int_equal(gmem_remote_read(&r, at + 2 * 4096 - 4, &word, 8), -EFAULT);
	assert_int_equal(gmem_remote_read(&r, at + 2 * 4096, &word, 8), -EFAULT);
	munmap(page, 2 * 4096);
	gmem_remote_init(&r, 0x7ffffff0);
	assert_int_equal(gmem_remote_read(&r, at, &word, 8), -ESRCH);
}

static void remote_expects_what_was_used(void **state)
{
	static struct gmem_remote r;
	static struct gmem_remote_expected x;
	uint8_t *page =
		mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t copy[6 * 4096];
	uint64_t word, at = (uintptr_t)page, calls;

	(void)state;
	for (unsigned int i = 0; i < 8 * 4096; i++)
		page[i] = (uint8_t)(i * 7 + i / 4096);
	gmem_remote_init(&r, getpid());
	gmem_remote_prefetch(&r, &x);
	assert_int_equal(r.calls, 0);
	/* A word, and a stack from the middle of a page to the middle of another. */
	assert_int_equal(gmem_remote_read(&r, at + 16, &word, 8), 0);
	assert_int_equal(gmem_remote_read(&r, at + 5000, copy, 9000), 0);
	assert_memory_equal(copy, page + 5000, 9000);
	assert_int_equal(r.calls, 2);
	/* The next sample has all of it by one call, as it is now; a little more needs another. */
	page[6000] ^= 0xff;
	gmem_remote_prefetch(&r, &x);
	assert_int_equal(r.calls, 3);
	page[4096] ^= 0xff;
	assert_int_equal(gmem_remote_read(&r, at + 16, &word, 8), 0);
	assert_int_equal(gmem_remote_read(&r, at + 5000, copy, 9000), 0);
	assert_memory_equal(copy, page + 5000, 9000);
	assert_int_equal(r.calls, 3);
	assert_int_equal(gmem_remote_read(&r, at + 5000, copy, sizeof(copy) - 3000), 0);
	assert_memory_equal(copy, page + 5000, sizeof(copy) - 3000);
	assert_int_equal(r.calls, 4);
	/* A page that has gone is no obstacle for the others, and no excuse. */
	munmap(page + 2 * 4096, 4096);
	gmem_remote_prefetch(&r, &x);
	assert_int_equal(gmem_remote_read(&r, at + 16, &word, 8), 0);
	assert_int_equal(gmem_remote_read(&r, at + 5000, copy, 9000), -EFAULT);
	/* Pages that are not used any more are not read forever. */
	for (unsigned int i = 0; i < 8; i++)
		gmem_remote_prefetch(&r, &x);
	assert_int_equal(x.n, 0);
	calls = r.calls;
	gmem_remote_prefetch(&r, &x);
	assert_int_equal(r.calls, calls);
	munmap(page, 8 * 4096);
}

/* -- where guest RAM lies ---------------------------------------------------------------- */

#define KERNEL UINT64_C(0xffffffff81000000)
#define TABLES UINT64_C(0xfffffe0000000000)

struct ram {
	uint8_t *host;
	uint64_t size, split; /* bytes below the hole */
};

static struct gmem_remote remote;
static struct process process;
static struct slots_witness witness;

static uint8_t *byte_at(const struct ram *r, uint64_t gpa)
{
	return r->host + (gpa >= 4 * GIB ? r->split + (gpa - 4 * GIB) : gpa);
}

static void put(const struct ram *r, uint64_t gpa, uint64_t word)
{
	memcpy(byte_at(r, gpa), &word, sizeof(word));
}

/* One path of tables from `at` (three pages) to a page. */
static void map(const struct ram *r, uint64_t cr3, uint64_t at, uint64_t va, uint64_t gpa)
{
	uint64_t table = cr3;

	for (int shift = 39; shift > 12; shift -= 9, at += 4096) {
		put(r, table + (va >> shift & 511) * 8, at | 3);
		table = at;
	}
	put(r, table + (va >> 12 & 511) * 8, gpa | 3);
}

/* A kernel of three pages (text, stack, IDT and GDT), its tables from `base` on. */
static void lay_out(const struct ram *r, uint64_t base)
{
	uint64_t cr3 = base, text = base + 0x10000, stack = base + 0x11000, idt = base + 0x12000;

	map(r, cr3, base + 0x1000, KERNEL, text);
	map(r, cr3, base + 0x4000, UINT64_C(0xffffc90000003000), stack);
	map(r, cr3, base + 0x7000, TABLES, idt);
	for (unsigned int i = 0; i < 32; i++) {
		uint64_t handler = KERNEL + 16 * i;

		put(r, idt + i * 16,
		    (handler & 0xffff) | (handler & 0xffff0000) << 32 | UINT64_C(0x8e00) << 32);
		put(r, idt + i * 16 + 8, handler >> 32);
	}
	put(r, idt + 0x800 + 0x10, UINT64_C(0x00af9b000000ffff));
	memset(&witness, 0, sizeof(witness));
	witness.regs.cr0 = 0x80000001;
	witness.regs.cr4 = 0x20;
	witness.regs.efer = 0x500;
	witness.regs.cr3 = cr3;
	witness.regs.cs = 0x10;
	witness.regs.rip = KERNEL + 0x123;
	witness.regs.gpr[GPR_RSP] = UINT64_C(0xffffc90000003e00);
	witness.idt_base = TABLES;
	witness.idt_limit = 0xfff;
	witness.gdt_base = TABLES + 0x800;
}

static struct ram ram_of(uint64_t size, uint64_t split)
{
	struct ram r = { .size = size, .split = split };

	r.host = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(r.host, MAP_FAILED);
	return r;
}

static void add(const struct ram *r)
{
	process.mapping[process.nmappings++] =
		(struct process_mapping){ (uintptr_t)r->host, r->size, false };
}

static int setup(void **state)
{
	(void)state;
	memset(&process, 0, sizeof(process));
	process.pid = getpid();
	gmem_remote_init(&remote, getpid());
	return 0;
}

static void ram_is_found_among_others(void **state)
{
	struct ram other = ram_of(256 * MIB, UINT64_MAX), r = ram_of(128 * MIB, UINT64_MAX);
	struct gmem m = { .remote = &remote };
	struct slots_proof proof;
	struct err e = { 0 };

	(void)state;
	lay_out(&r, 16 * MIB);
	add(&other);
	add(&r);
	assert_int_equal(slots_find(&m, &process, &witness, &proof, &e), 0);
	assert_int_equal(m.n, 1);
	assert_ptr_equal(m.region[0].host, r.host);
	assert_int_equal(m.region[0].gpa, 0);
	assert_int_equal(m.region[0].size, 128 * MIB);
	assert_true(proof.text && proof.stack && proof.idt && proof.gdt && proof.handlers);
	assert_false(proof.partial);
	/* Tables that lead nowhere: nothing is better than something. */
	put(&r, witness.regs.cr3 + 511 * 8, 0);
	assert_int_equal(slots_find(&m, &process, &witness, &proof, &e), -ENOENT);
	assert_non_null(strstr(e.text, "2 large mappings"));
	munmap(r.host, r.size);
	munmap(other.host, other.size);
}

static void a_copy_makes_it_unsure(void **state)
{
	struct ram a = ram_of(64 * MIB, UINT64_MAX), b = ram_of(64 * MIB, UINT64_MAX);
	struct gmem m = { .remote = &remote };
	struct slots_proof proof;
	struct err e = { 0 };

	(void)state;
	lay_out(&a, 16 * MIB);
	lay_out(&b, 16 * MIB);
	add(&a);
	add(&b);
	assert_int_equal(slots_find(&m, &process, &witness, &proof, &e), -ENOTUNIQ);
	munmap(a.host, a.size);
	munmap(b.host, b.size);
}

static void the_hole_is_told_by_tables_above_it(void **state)
{
	static const uint64_t splits[] = { 2 * GIB, 3 * GIB, UINT64_C(0xe0000000) };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct ram r = ram_of(6 * GIB, splits[i]);
		struct gmem m = { .remote = &remote };
		struct slots_proof proof;
		struct err e = { 0 };

		process.nmappings = 0;
		gmem_remote_invalidate(&remote);
		/* As Linux does, its tables lie high. */
		lay_out(&r, 4 * GIB + 256 * MIB);
		add(&r);
		assert_int_equal(slots_find(&m, &process, &witness, &proof, &e), 0);
		assert_int_equal(m.n, 2);
		assert_int_equal(m.region[0].size, splits[i]);
		assert_int_equal(m.region[1].gpa, 4 * GIB);
		assert_ptr_equal(m.region[1].host, r.host + splits[i]);
		assert_false(proof.partial);
		munmap(r.host, r.size);
	}
}

static void what_no_table_tells_stays_unknown(void **state)
{
	struct ram r = ram_of(6 * GIB, 3 * GIB);
	struct gmem m = { .remote = &remote };
	struct slots_proof proof;
	struct err e = { 0 };

	(void)state;
	lay_out(&r, 16 * MIB); /* the same in all layouts */
	add(&r);
	assert_int_equal(slots_find(&m, &process, &witness, &proof, &e), 0);
	assert_true(proof.partial);
	assert_int_equal(m.n, 1);
	assert_int_equal(m.region[0].size, 2 * GIB);
	munmap(r.host, r.size);
}

static void high_memory_may_be_a_mapping_of_its_own(void **state)
{
	struct ram r = ram_of(3 * GIB, 1 * GIB);
	struct gmem m = { .remote = &remote };
	struct slots_proof proof;
	struct err e = { 0 };

	(void)state;
	lay_out(&r, 4 * GIB + 64 * MIB);
	process.mapping[0] = (struct process_mapping){ (uintptr_t)r.host + GIB, 2 * GIB, true };
	process.mapping[1] = (struct process_mapping){ (uintptr_t)r.host, GIB, true };
	process.nmappings = 2;
	/* Its first table is low, so that the one below 4 GiB is needed for a proof, too. */
	memcpy(r.host + 0x1000, byte_at(&r, witness.regs.cr3), 4096);
	witness.regs.cr3 = 0x1000;
	assert_int_equal(slots_find(&m, &process, &witness, &proof, &e), 0);
	assert_int_equal(m.n, 2);
	assert_ptr_equal(m.region[0].host, r.host);
	assert_ptr_equal(m.region[1].host, r.host + GIB);
	munmap(r.host, r.size);
}

static void real_mode_is_not_yet(void **state)
{
	struct gmem m = { .remote = &remote };
	struct slots_proof proof;
	struct err e = { 0 };

	(void)state;
	memset(&witness, 0, sizeof(witness));
	witness.regs.cr0 = 0x10;
	assert_int_equal(slots_find(&m, &process, &witness, &proof, &e), -EAGAIN);
}

/* -- processes --------------------------------------------------------------------------- */

static void processes_without_machines_are_refused(void **state)
{
	static struct process p;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(process_look(&p, getpid(), &e), -ENODEV);
	assert_non_null(strstr(e.text, "runs no virtual machine"));
	err_clear(&e);
	assert_int_equal(process_look(&p, 0x7ffffff0, &e), -ESRCH);
}

static void copies_of_a_descriptor_are_one_vcpu(void **state)
{
	static struct process p;
	struct err e = { 0 };
	int fd[4];

	(void)state;
	memset(&p, 0, sizeof(p));
	p.pid = getpid();
	for (unsigned int i = 0; i < 4; i++)
		assert_true((fd[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
	close(fd[3]);
	assert_int_equal(dup2(fd[1], fd[3]), fd[3]);
	/* 0 and 2 are of two machines; 3 is a copy of 1. */
	process_add_vcpu(&p, 7, fd[0]);
	process_add_vcpu(&p, 1, fd[1]);
	process_add_vcpu(&p, 7, fd[2]);
	process_add_vcpu(&p, 1, fd[3]);
	assert_int_equal(process_check_vcpus(&p, &e), 0);
	assert_int_equal(p.nvcpus, 3);
	assert_int_equal(p.vcpu[0].id, 1);
	assert_ptr_equal(process_vcpu_of(&p, fd[3]), process_vcpu_of(&p, fd[1]));
	assert_int_equal(process_vcpu_of(&p, fd[3])->fd, fd[1]);
	assert_int_equal(process_vcpu_of(&p, fd[2])->fd, fd[2]);
	assert_null(process_vcpu_of(&p, -1));
	for (unsigned int i = 0; i < 4; i++)
		close(fd[i]);
}

static void one_of_several_machines_is_kept(void **state)
{
	static struct process p;
	struct err e = { 0 };

	(void)state;
	memset(&p, 0, sizeof(p));
	p.pid = getpid();
	for (unsigned int i = 0; i < 3; i++)
		process_add_vcpu(&p, i, 20000 + (int)i);
	assert_int_equal(process_check_vcpus(&p, &e), 0);
	assert_false(process_has_several(&p));
	process_add_vcpu(&p, 1, 20010);
	process_add_vcpu(&p, 0, 20011);
	assert_int_equal(process_check_vcpus(&p, &e), 0);
	assert_true(process_has_several(&p));
	for (unsigned int i = 0; i < p.nvcpus; i++)
		p.vcpu[i].machine = p.vcpu[i].fd < 20010 ? 1 : 2;
	process_keep_machine(&p, 2);
	assert_int_equal(p.nvcpus, 2);
	assert_int_equal(p.vcpu[0].fd, 20011);
	assert_int_equal(p.vcpu[1].fd, 20010);
	assert_null(process_vcpu_of(&p, 20000));
	assert_false(process_has_several(&p));
}

/* As many as there are pieces of room, one more, and far more: the number is said. */
static void too_many_vcpus_are_refused_with_their_number(void **state)
{
	static const unsigned int many[] = { ATTACH_MAX_VCPUS, ATTACH_MAX_VCPUS + 1, 2000 };
	static struct process p;

	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		struct err e = { 0 };
		char number[32];

		memset(&p, 0, sizeof(p));
		p.pid = getpid();
		for (unsigned int i = 0; i < many[k]; i++)
			process_add_vcpu(&p, i, 10000 + (int)i);
		snprintf(number, sizeof(number), "has %u vCPUs", many[k]);
		assert_int_equal(process_check_vcpus(&p, &e), k ? -E2BIG : 0);
		assert_true(!k || strstr(e.text, number));
	}
}

/* Command lines as VMMs have them; "|" stands for the NUL behind an argument. */
static void machines_have_the_names_of_their_command_lines(void **state)
{
	static const struct {
		const char *command, *name;
	} line[] = {
		{ "firecracker|--id|vm-7|--api-sock|/run/a.sock|", "vm-7" },
		{ "firecracker|--api-sock=/run/a.sock|--id=vm-8|", "vm-8" },
		{ "qemu-system-x86_64|-m|64|-name|guest=web,debug-threads=on|-S|", "web" },
		{ "qemu-system-x86_64|-name|debug-threads=on,guest=web2|", "web2" },
		{ "qemu-system-x86_64|-name|db,process=x|", "db" },
		{ "qemu-system-x86_64|-name|a,,b,debug-threads=on|", "a,b" },
		{ "lkvm|run|--name|kt|", "kt" },
		{ "crosvm|run|--name=cr|", "cr" },
		{ "cloud-hypervisor|--api-socket|path=/run/ch/one.sock|", "one" },
		{ "cloud-hypervisor|--api-socket|two|", "two" },
		{ "qemu-system-x86_64|-m|64|", "" },
		{ "firecracker|--id|", "" },
		{ "firecracker|--id|cut", "" },
		{ "firecracker|--id|a\033[1mb|", "a?[1mb" },
		{ "firecracker|--ident|x|", "" },
		{ "x|-name||", "" },
		{ "||||", "" },
		{ "", "" },
	};
	char out[8], text[128], wide[MACHINES_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
		const size_t n = strlen(line[i].command);

		for (size_t k = 0; k < n; k++)
			text[k] = line[i].command[k] == '|' ? '\0' : line[i].command[k];
		machines_name(wide, sizeof(wide), text, n);
		assert_string_equal(wide, line[i].name);
		/* A name without an end, and one that is too long, stay within their room. */
		machines_name(out, sizeof(out), text, n);
		assert_true(strlen(out) < sizeof(out));
	}
}

static void drop_ptrace(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &head, data))
		_exit(2);
	data[0].effective &= ~(1u << CAP_SYS_PTRACE);
	data[0].permitted &= ~(1u << CAP_SYS_PTRACE);
	if (syscall(SYS_capset, &head, data))
		_exit(2);
}

/* Root without CAP_SYS_PTRACE lists the descriptors of a process with more rights, and may read none of their links. */
static void a_missing_capability_is_called_by_its_name(void **state)
{
	static struct process p;
	const pid_t target = getpid();
	pid_t child;
	int status;

	(void)state;
	if (geteuid() != 0 || !process_may_trace())
		SKIP("root with CAP_SYS_PTRACE is needed, and this is not root");
	child = fork();
	if (!child) {
		struct err e = { 0 };

		drop_ptrace();
		if (process_may_trace())
			_exit(3);
		if (process_look(&p, target, &e) != -EACCES)
			_exit(4);
		_exit(strstr(e.text, "CAP_SYS_PTRACE is needed") ? 0 : 5);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* -- threads ----------------------------------------------------------------------------- */

/* A child that counts, and answers SIGUSR1 with a byte. */
struct child {
	pid_t pid;
	int answers;
	volatile uint64_t *count;
};

static int answer_fd;
static long
	timer_ns; /* a child that starts is sent the signal so often, by its own timer; 0: never */

static void answer(int signo)
{
	(void)signo;
	(void)!write(answer_fd, "!", 1);
}

static void set_timer(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec every = { { 0, timer_ns }, { 0, timer_ns } };
	timer_t id;

	if (timer_ns && !timer_create(CLOCK_MONOTONIC, &ev, &id))
		timer_settime(id, 0, &every, NULL);
}

static struct child start_child(void)
{
	struct child c;
	int fds[2];

	c.count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(pipe(fds), 0);
	c.answers = fds[0];
	answer_fd = fds[1];
	c.pid = fork();
	if (c.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGUSR1, answer);
		fcntl(answer_fd, F_SETFL, O_NONBLOCK); /* nobody may read them */
		set_timer();
		for (;;)
			++*c.count;
	}
	close(fds[1]);
	while (!*c.count)
		usleep(1000);
	return c;
}

static void end_child(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->answers);
	munmap((void *)c->count, 4096);
}

static bool counts_on(const struct child *c)
{
	uint64_t before = *c->count;

	for (int i = 0; i < 5000 && *c->count == before; i++)
		usleep(1000);
	return *c->count != before;
}

static void threads_are_held_and_go_on(void **state)
{
	struct child c = start_child();
	struct tracee t;
	struct err e = { 0 };
	char byte;
	int fd;

	(void)state;
	assert_int_equal(tracer_seize(&t, c.pid, &e), 0);
	assert_true(counts_on(&c)); /* seizing does not stop */
	for (int i = 0; i < 300; i++) {
		uint64_t count;

		assert_int_equal(tracer_hold(&t, 10 * NSEC_PER_SEC), 0);
		count = *c.count;
		assert_int_equal(tracer_place_of(&t, &fd), TRACER_ELSEWHERE);
		if (i % 50 == 0) {
			usleep(2000);
			assert_int_equal(*c.count, count);
		}
		tracer_release(&t);
		/* Others' signals arrive, whenever they come. */
		if (i % 10 == 0) {
			kill(c.pid, SIGUSR1);
			for (int k = 0; k < 5000; k++) {
				if (tracer_has_stopped(&t))
					tracer_release(&t);
				usleep(100);
				if (t.passed_on == (uint64_t)i / 10 + 1)
					break;
			}
			assert_int_equal(read(c.answers, &byte, 1), 1);
		}
	}
	assert_int_equal(t.passed_on, 30);
	tracer_detach(&t);
	assert_true(counts_on(&c));
	kill(c.pid, SIGUSR1);
	assert_int_equal(read(c.answers, &byte, 1), 1);
	/* It is free for the next one. */
	assert_int_equal(tracer_seize(&t, c.pid, &e), 0);
	tracer_detach(&t);
	end_child(&c);
}

/*
 * A timer's signal comes first: the kernel gives its lock away for a moment to set the timer again, and
 * then forgets a stop that was asked for meanwhile (kernel/signal.c, dequeue_signal, ptrace_stop).
 */
static void signals_take_no_stop_back(void **state)
{
	struct child c;
	struct tracee t;
	struct err e = { 0 };

	(void)state;
	timer_ns = 20000;
	c = start_child();
	timer_ns = 0;
	assert_int_equal(tracer_seize(&t, c.pid, &e), 0);
	for (int i = 0; i < 20000; i++) {
		assert_int_equal(tracer_hold(&t, 10 * NSEC_PER_SEC), 0);
		tracer_release(&t);
	}
	assert_true(t.passed_on > 0);
	tracer_detach(&t);
	assert_true(counts_on(&c));
	end_child(&c);
}

static void a_tracer_that_is_killed_leaves_them_running(void **state)
{
	struct child c = start_child();

	(void)state;
	for (int i = 0; i < 20; i++) {
		pid_t tracer = fork();

		if (tracer == 0) {
			struct tracee t;
			struct err e = { 0 };

			if (tracer_seize(&t, c.pid, &e))
				_exit(1);
			for (;;) {
				tracer_hold(&t, NSEC_PER_SEC);
				tracer_release(&t);
			}
		}
		usleep((useconds_t)(rand() % 5000));
		kill(tracer, SIGKILL);
		waitpid(tracer, NULL, 0);
		assert_true(counts_on(&c));
	}
	end_child(&c);
}

static void threads_that_end_are_seen(void **state)
{
	struct child c = start_child();
	struct tracee t;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(tracer_seize(&t, c.pid, &e), 0);
	kill(c.pid, SIGKILL);
	for (int i = 0; i < 5000 && !t.gone; i++) {
		tracer_has_stopped(&t);
		usleep(1000);
	}
	assert_true(t.gone);
	assert_int_equal(tracer_hold(&t, NSEC_PER_SEC), -ESRCH);
	tracer_detach(&t);
	end_child(&c);
	assert_int_equal(tracer_seize(&t, c.pid, &e), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remote_reads_what_is_there),
		cmocka_unit_test(remote_expects_what_was_used),
		cmocka_unit_test_setup(ram_is_found_among_others, setup),
		cmocka_unit_test_setup(a_copy_makes_it_unsure, setup),
		cmocka_unit_test_setup(the_hole_is_told_by_tables_above_it, setup),
		cmocka_unit_test_setup(what_no_table_tells_stays_unknown, setup),
		cmocka_unit_test_setup(high_memory_may_be_a_mapping_of_its_own, setup),
		cmocka_unit_test_setup(real_mode_is_not_yet, setup),
		cmocka_unit_test(processes_without_machines_are_refused),
		cmocka_unit_test(copies_of_a_descriptor_are_one_vcpu),
		cmocka_unit_test(one_of_several_machines_is_kept),
		cmocka_unit_test(too_many_vcpus_are_refused_with_their_number),
		cmocka_unit_test(machines_have_the_names_of_their_command_lines),
		cmocka_unit_test(a_missing_capability_is_called_by_its_name),
		cmocka_unit_test(threads_are_held_and_go_on),
		cmocka_unit_test(signals_take_no_stop_back),
		cmocka_unit_test(a_tracer_that_is_killed_leaves_them_running),
		cmocka_unit_test(threads_that_end_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
