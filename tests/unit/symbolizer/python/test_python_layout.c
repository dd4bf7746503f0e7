/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Python's structures in the Pythons of this machine, stopped in a function that is known; and in
 * memory that is none.
 */
#include "symbolizer/python/python_code.h"

#include "base/file.h"
#include "symbolizer/program/userelf.h"
#include "tests/memory_bytes.h"
#include "tests/unit/skip.h"

#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* It stops itself in line 3. */
static const char script[] =
	"def outer():\n def inn\303\251r():\n  os.kill(os.getpid(), 19)\n inn\303\251r()\n"
	"import os\nouter()\n";

struct process {
	pid_t pid;
	uint64_t fs_base, runtime;
};

static size_t read_process(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	const struct process *p = ctx;
	struct iovec to = { dst, len }, from = { (void *)(uintptr_t)va, len };
	ssize_t n = process_vm_readv(p->pid, &to, 1, &from, 1, 0);

	(void)space;
	return n < 0 ? 0 : (size_t)n;
}

/* Where a mapped file has it; 0: it has none. */
static uint64_t runtime_of(const char *path, uint64_t start, uint64_t off)
{
	struct file_map map;
	struct file_bytes bytes;
	struct file_source src;
	struct userelf u;
	struct err e = { 0 };
	uint64_t va, code, at = 0;

	if (file_map_open(&map, path, 1u << 30, &e) < 0)
		return 0;
	bytes = (struct file_bytes){ map.data, map.len };
	src = filepiece_source_of_bytes(&bytes);
	if (userelf_open(&u, path, &src, &e) == 0 && userelf_object(&u, "_PyRuntime", &va) == 0 &&
	    userelf_va_of(&u, off, &code))
		at = start - code + va;
	file_map_close(&map);
	return at;
}

static void find_runtime(struct process *p)
{
	char path[64], line[1024], perms[5], name[512];
	unsigned long start, off;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", p->pid);
	f = fopen(path, "re");
	while (f && !p->runtime && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%*x %4s %lx %*s %*s %511s", &start, perms, &off, name) == 4 &&
		    perms[2] == 'x' && name[0] == '/')
			p->runtime = runtime_of(name, start, off);
	if (f)
		fclose(f);
}

static bool start(struct process *p, const char *python)
{
	struct user_regs_struct r;
	int status;

	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(python, python, "-E", "-S", "-c", script, NULL);
		_exit(127);
	}
	while (waitpid(p->pid, &status, 0) == p->pid && WIFSTOPPED(status) &&
	       WSTOPSIG(status) != SIGSTOP)
		ptrace(PTRACE_CONT, p->pid, NULL, NULL);
	if (!WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, p->pid, NULL, &r) < 0)
		return false;
	p->fs_base = r.fs_base;
	find_runtime(p);
	return true;
}

static uint64_t word(const struct python_program *p, uint64_t va)
{
	uint64_t v = 0;

	assert_true(memory_read(p->memory, p->space, va, &v, 8));
	return v;
}

static uint32_t line_of(const struct python_code *c, const struct python_program *p, uint64_t instr)
{
	static uint8_t table[PYTHON_MAX_LINES];
	uint32_t n = python_code_lines(c, p, table, sizeof(table));

	return python_line_at(table, n, c->first, (instr - c->start) / 2);
}

static void check_frames(const struct python_layout *l, const struct python_program *p, uint64_t t)
{
	static const char *const name[] = { "outer.<locals>.inn\303\251r", "outer", "<module>" };
	static const unsigned int line[] = { 3, 4, 6 };
	uint64_t frame = word(p, t + l->thread_current);
	struct python_code c;
	unsigned int n = 0;

	if (l->cframe)
		frame = word(p, frame + l->cframe_current);
	for (; frame; frame = word(p, frame + l->frame_previous)) {
		uint8_t owner;

		assert_true(memory_read(p->memory, p->space, frame + l->frame_owner, &owner, 1));
		if (l->owner_c && owner == l->owner_c)
			continue;
		assert_true(n < 3);
		assert_true(python_code_read(&c, l, p, word(p, frame + l->frame_code)));
		assert_string_equal(c.name, name[n]);
		assert_string_equal(c.file, "<string>");
		assert_int_equal(line_of(&c, p, word(p, frame + l->frame_instr)), line[n]);
		n++;
	}
	assert_int_equal(n, 3);
}

/* false: it is of a form that is not known, as one before 3.11. */
static bool look_at(const char *python)
{
	struct process p = { 0 };
	const struct memory memory = { read_process, &p };
	struct python_program program = { .memory = &memory, .space = 1 };
	struct python_layout l;
	bool known;
	uint64_t t;

	if (!start(&p, python))
		return false;
	program.runtime = p.runtime;
	known = p.runtime && python_layout_find(&l, &program, p.fs_base) == PYTHON_FOUND;
	if (known) {
		t = python_thread(&l, &program, p.fs_base);
		assert_true(t != 0);
		assert_int_equal(python_thread(&l, &program, p.fs_base + 64), 0);
		check_frames(&l, &program, t);
		print_message("%s: as %s\n", python, l.name);
	}
	kill(p.pid, SIGKILL);
	waitpid(p.pid, NULL, 0);
	return known;
}

static void pythons_of_this_machine(void **state)
{
	static const char *const places[] = {
		"/usr/bin/python3.1[1-3]", "/usr/local/bin/python3.1[1-3]",
		"/root/.pyenv/versions/3.1[1-3].*/bin/python3.1[1-3]"
	};
	unsigned int known = 0, n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		glob_t g;

		if (glob(places[i], 0, NULL, &g) != 0)
			continue;
		for (size_t k = 0; k < g.gl_pathc; k++, n++)
			known += look_at(g.gl_pathv[k]);
		globfree(&g);
	}
	if (!n)
		SKIP("no CPython 3.11 to 3.13 here");
	assert_int_equal(known, n);
}

/* -- what is no Python --------------------------------------------------------------- */

static void no_python(void **state)
{
	static uint8_t b[8192];
	struct memory_bytes bytes = { 0x10000, b, sizeof(b) };
	const struct memory memory = { memory_bytes_read, &bytes };
	const struct python_program p = { &memory, 1, 0x10000 };
	struct python_layout l;
	struct python_code c;

	(void)state;
	assert_int_equal(python_layout_find(&l, &p, 0x1234), PYTHON_UNKNOWN);
	/* Each pointer is its own place: lists that do not end. */
	for (size_t i = 0; i + 8 <= sizeof(b); i += 8)
		memcpy(b + i, &(uint64_t){ 0x10000 }, 8);
	assert_int_equal(python_layout_find(&l, &p, 0x1234), PYTHON_UNKNOWN);
	memcpy(b, "xdebugpy", 8);
	assert_int_equal(python_layout_find(&l, &p, 0x1234), PYTHON_UNKNOWN);
	memset(b + 8, 0xff, sizeof(b) - 8); /* offsets beyond any structure */
	assert_int_equal(python_layout_find(&l, &p, 0x1234), PYTHON_UNKNOWN);
	memset(&l, 0, sizeof(l));
	assert_false(python_code_read(&c, &l, &p, 0x10000));
	assert_int_equal(python_layout_find(&l, &(struct python_program){ &memory, 1, 64 }, 1),
			 PYTHON_NOT_YET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pythons_of_this_machine),
		cmocka_unit_test(no_python),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
