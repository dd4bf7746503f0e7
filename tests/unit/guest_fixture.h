/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sink that records its calls, and tasks in the generated guest of linux_mm_fixture.h, for tests
 * of the facts about a guest.
 *
 * The log has one line for each call, without its time, which is stored beside it; a test compares
 * and empties it. Borrowed symbols are read at the end, as a sink's end() does.
 */
#ifndef KVMPROF_TESTS_UNIT_GUEST_FIXTURE_H
#define KVMPROF_TESTS_UNIT_GUEST_FIXTURE_H

#include "base/buf.h"
#include "profile/record/guest/tasks.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/linux/module.h"
#include "symbolizer/program/elfsynth.h"
#include "tests/unit/linux_mm_fixture.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>

#define GF_MAX_BORROWED 64u

struct gf_sink {
	struct sink sink;
	struct buf log;
	unsigned int calls;
	unsigned int fail_at; /* number of the call that fails, from 1; 0: none */
	uint64_t last_ns;     /* time of the last call */
	struct profile_kernel kernel;
	struct {
		uint8_t id[20];
		size_t elf_len;
		uint8_t *elf; /* copy */
	} map;		      /* arguments of the last call of map() */
	const struct symtab *borrowed[GF_MAX_BORROWED];
	unsigned int nborrowed;
};

__attribute__((format(printf, 4, 5))) static inline int gf_say(struct sink *sink, uint64_t time_ns,
							       struct err *e, const char *fmt, ...)
{
	struct gf_sink *s = (struct gf_sink *)sink;
	char line[LINUX_PATH_MAX + 256];
	va_list ap;
	int n;

	s->calls++;
	if (s->calls == s->fail_at)
		return err_set(e, ENOSPC, "the disk is full");
	s->last_ns = time_ns;
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_add(&s->log, line, (size_t)n);
	return 0;
}

static inline int gf_kernel(struct sink *s, const struct profile_kernel *k, struct err *e)
{
	((struct gf_sink *)s)->kernel = *k;
	return gf_say(s, 0, e, "kernel %llx %llx%s\n", (unsigned long long)k->text,
		      (unsigned long long)k->end, k->symbols ? " named" : "");
}

static inline int gf_fork(struct sink *s, const struct profile_fork *f, struct err *e)
{
	return gf_say(s, f->time_ns, e, "fork %u/%u of %u/%u\n", f->pid, f->tid, f->ppid, f->ptid);
}

static inline int gf_exit(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns,
			  struct err *e)
{
	return gf_say(s, time_ns, e, "exit %u/%u\n", pid, tid);
}

static inline int gf_comm(struct sink *s, const struct profile_comm *c, struct err *e)
{
	return gf_say(s, c->time_ns, e, "comm %d/%d %s%s\n", (int)c->pid, (int)c->tid, c->name,
		      c->exec ? " exec" : "");
}

static inline int gf_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	struct gf_sink *f = (struct gf_sink *)s;

	if (m->symbols && f->nborrowed < GF_MAX_BORROWED)
		f->borrowed[f->nborrowed++] = m->symbols;
	return gf_say(s, m->time_ns, e, "module %s %llx+%llx %zu%s\n", m->name,
		      (unsigned long long)m->addr, (unsigned long long)m->len,
		      m->symbols ? symtab_count(m->symbols) : 0, m->build_id ? " id" : "");
}

static inline int gf_map(struct sink *s, const struct profile_map *m, struct err *e)
{
	struct gf_sink *f = (struct gf_sink *)s;
	int ret = gf_say(s, m->time_ns, e, "map %u %llx+%llx @%llx %s%s\n", m->pid,
			 (unsigned long long)m->addr, (unsigned long long)m->len,
			 (unsigned long long)m->pgoff, m->path, m->elf ? " elf" : "");

	memcpy(f->map.id, m->build_id, 20);
	free(f->map.elf);
	f->map.elf = malloc(m->elf_len + 1);
	f->map.elf_len = m->elf_len;
	if (m->elf)
		memcpy(f->map.elf, m->elf, m->elf_len);
	return ret;
}

static inline int gf_dso(struct sink *s, const struct profile_dso *d, struct err *e)
{
	return gf_say(s, 0, e, "dso %s\n", d->path);
}

static inline void gf_sink_init(struct gf_sink *s)
{
	static const struct sink_ops ops = {
		.kernel = gf_kernel,
		.fork = gf_fork,
		.exit = gf_exit,
		.comm = gf_comm,
		.module = gf_module,
		.map = gf_map,
		.dso = gf_dso,
	};

	memset(s, 0, sizeof(*s));
	s->sink.ops = &ops;
}

/*
 * Reads the borrowed symbols as end() does, and returns their sum, so that the reads are not
 * optimised away.
 */
static inline size_t gf_read_borrowed(const struct gf_sink *s)
{
	size_t sum = 0;

	for (unsigned int i = 0; i < s->nborrowed; i++)
		for (size_t k = 0; k < symtab_count(s->borrowed[i]); k++)
			sum += strlen(symtab_at(s->borrowed[i], k)->name);
	return sum;
}

static inline void gf_sink_deinit(struct gf_sink *s)
{
	buf_deinit(&s->log);
	free(s->map.elf);
	s->map.elf = NULL;
}

static inline const char *gf_log(struct gf_sink *s)
{
	buf_add(&s->log, "", 1);
	s->log.len--;
	return (const char *)s->log.data;
}

/* Checks that the log has this text, and empties it. */
#define gf_expect(s, text)                                                     \
	do {                                                                   \
		if (strcmp(gf_log(s), text) != 0)                              \
			fail_msg("log is:\n%sexpected:\n%s", gf_log(s), text); \
		(s)->log.len = 0;                                              \
	} while (0)

/* -- lists and modules ------------------------------------------------------------------ */

enum {
	GF_M_LIST = 0,
	GF_M_NAME = 16,
	GF_M_STATE = 72,
	GF_M_TEXT = 80,
	GF_M_TEXT_SIZE = 88,
	GF_M_INIT = 96,
	GF_M_INIT_SIZE = 104,
	GF_M_KALLSYMS = 112,
	GF_M_BUILD_ID = 120,
	GF_M_NORCS = 140,
	GF_M_ORC_IP = 144,
	GF_M_ORC = 152,
	GF_M_SIZE = 160
};

/* Makes a list of the kernel: its head, and `off` in each piece. */
static inline void gf_set_list(struct lm *g, uint64_t head, uint32_t off, const uint64_t *piece,
			       size_t n)
{
	uint64_t last = head;

	for (size_t i = 0; i < n; i++) {
		lm_put64(g, last, piece[i] + off);
		lm_put64(g, piece[i] + off + 8, last);
		last = piece[i] + off;
	}
	lm_put64(g, last, head);
	lm_put64(g, head + 8, last);
}

static inline void gf_put_name(struct lm *g, uint64_t va, size_t size, const char *name)
{
	memset(lm_ptr(g, va, size), 0, size);
	memcpy(lm_ptr(g, va, size), name, strlen(name));
}

/*
 * Returns the layout of modules with a name and text, in a list that begins at `modules`; the rest
 * is unknown.
 */
static inline struct linux_module_layout gf_module_layout(uint64_t modules)
{
	return (struct linux_module_layout){
		.modules = modules,
		.list = GF_M_LIST,
		.name = GF_M_NAME,
		.name_size = 56,
		.state = GF_M_STATE,
		.text_base = GF_M_TEXT,
		.text_size = GF_M_TEXT_SIZE,
		.init_base = GF_M_INIT,
		.init_size = GF_M_INIT_SIZE,
		.kallsyms = LINUX_MODULE_NONE,
		.build_id = LINUX_MODULE_NONE,
		.num_orcs = LINUX_MODULE_NONE,
		.notes_attrs = LINUX_MODULE_NONE,
	};
}

static inline uint64_t gf_new_module(struct lm *g, const char *name, uint64_t text)
{
	uint64_t m = lm_alloc(g, GF_M_SIZE, 16);

	gf_put_name(g, m + GF_M_NAME, 56, name);
	lm_put64(g, m + GF_M_TEXT, text);
	lm_put32(g, m + GF_M_TEXT_SIZE, 0x1000);
	return m;
}

/* -- tasks ---------------------------------------------------------------------------- */

enum {
	GF_PID = 0,
	GF_COMM = 8,
	GF_MM = 24,
	GF_PARENT = 32,
	GF_LEADER = 40,
	GF_START = 48,
	GF_EXEC = 56
};
#define GF_TASK_SIZE 64u
#define GF_INIT_TASK UINT64_C(0xffffffff82000000)

static inline struct linux_task_layout gf_task_layout(void)
{
	return (struct linux_task_layout){
		.init_task = GF_INIT_TASK,
		.pid = GF_PID,
		.tgid = GF_PID + 4,
		.comm = GF_COMM,
		.mm = GF_MM,
		.real_parent = GF_PARENT,
		.group_leader = GF_LEADER,
		.start_time = GF_START,
		.exec_id = GF_EXEC,
		.flags = LINUX_TASK_NONE,
		.stack = LINUX_TASK_NONE,
		.tasks = LINUX_TASK_NONE,
		.thread_node = LINUX_TASK_NONE,
		.thread_group = LINUX_TASK_NONE,
		.signal = LINUX_TASK_NONE,
		.thread_head = LINUX_TASK_NONE,
	};
}

static inline void gf_rename(struct lm *g, uint64_t task, const char *comm)
{
	char raw[SAMPLE_COMM] = { 0 };

	for (size_t i = 0; i < sizeof(raw) && comm[i]; i++)
		raw[i] = comm[i];
	memcpy(lm_ptr(g, task + GF_COMM, sizeof(raw)), raw, sizeof(raw));
}

/* Stores a task at this place; leader 0: a process. */
static inline void gf_put_task(struct lm *g, uint64_t at, uint32_t tid, uint32_t pid,
			       const char *comm, uint64_t mm, uint64_t start, uint64_t leader)
{
	lm_put32(g, at + GF_PID, tid);
	lm_put32(g, at + GF_PID + 4, pid);
	gf_rename(g, at, comm);
	lm_put64(g, at + GF_MM, mm);
	lm_put64(g, at + GF_PARENT, 0);
	lm_put64(g, at + GF_LEADER, leader ? leader : at);
	lm_put64(g, at + GF_START, start);
	lm_put32(g, at + GF_EXEC, 0); /* unknown */
}

static inline uint64_t gf_task(struct lm *g, uint32_t tid, uint32_t pid, const char *comm,
			       uint64_t mm, uint64_t start, uint64_t leader)
{
	uint64_t at = lm_alloc(g, GF_TASK_SIZE, 64);

	gf_put_task(g, at, tid, pid, comm, mm, start, leader);
	return at;
}

/* Returns the sample that capture takes while this task runs; task 0 cannot be read. */
static inline struct sample gf_sample(struct lm *g, uint64_t task, uint64_t time_ns)
{
	struct sample s = { .version = SAMPLE_VERSION,
			    .reason = SAMPLE_TIMER,
			    .mode = SAMPLE_KERNEL,
			    .time_ns = time_ns };

	s.task.state = task ? SAMPLE_TASK_FOUND : SAMPLE_TASK_UNREADABLE;
	if (!task)
		return s;
	s.task.addr = task;
	memcpy(&s.task.tid, lm_ptr(g, task + GF_PID, 4), 4);
	memcpy(&s.task.pid, lm_ptr(g, task + GF_PID + 4, 4), 4);
	memcpy(s.task.comm, lm_ptr(g, task + GF_COMM, SAMPLE_COMM), SAMPLE_COMM);
	memcpy(&s.task.mm, lm_ptr(g, task + GF_MM, 8), 8);
	memcpy(&s.task.start, lm_ptr(g, task + GF_START, 8), 8);
	memcpy(&s.task.exec_id, lm_ptr(g, task + GF_EXEC, 4), 4);
	return s;
}

/* -- programs in the page cache ---------------------------------------------------------- */

#define GF_TEXT_VA UINT64_C(0x1000)
#define GF_FUNCTION 32u /* bytes */

/*
 * Makes a library of n functions of GF_FUNCTION bytes from GF_TEXT_VA on, named PREFIX0, PREFIX1,
 * ...; id is the first byte of the build id, 0: without one. More than 100 functions make more than
 * a page of symbols.
 */
static inline void gf_elf(struct buf *out, uint8_t id, const char *prefix, unsigned int n)
{
	const uint8_t build_id[20] = { id ? id : 1, 0xbb };
	struct userelf u = { .type = ET_DYN, .nseg = 1 };
	struct symtab *t = symtab_create();
	char name[64];
	int bad = !t;

	u.seg[0] = (struct userelf_segment){ .va = GF_TEXT_VA,
					     .file_off = GF_TEXT_VA,
					     .file_len = n * GF_FUNCTION,
					     .mem_len = n * GF_FUNCTION,
					     .align = 4096,
					     .flags = PF_R | PF_X };
	for (unsigned int i = 0; !bad && i < n; i++) {
		snprintf(name, sizeof(name), "%s%u", prefix, i);
		bad = symtab_add(t, GF_TEXT_VA + i * GF_FUNCTION, GF_FUNCTION, 'T', name);
	}
	buf_init(out);
	bad = bad || symtab_freeze(t, NULL) || elfsynth_write(out, &u, build_id, 20, t, NULL);
	assert(!bad);
	(void)bad;
	symtab_destroy(t);
	for (size_t i = 12; !id && i < 1024; i++)
		if (!memcmp(out->data + i, "GNU", 4))
			out->data[i - 4] = 99; /* another kind of note */
}

/* Returns a file with these bytes, all in the page cache except page `hole` (UINT_MAX: none). */
static inline uint64_t gf_file(struct lm *g, uint64_t mnt, uint64_t dentry, uint64_t ino,
			       const void *bytes, size_t len, unsigned int hole)
{
	uint64_t file = lm_file(g, mnt, dentry, lm_inode(g, ino, len)), as = lm_mapping(g, file);
	uint64_t node = lm_xa_node(g, 0);

	assert(len <= 64ul * 4096);
	lm_put64(g, as + 16, node + 2);
	for (unsigned int i = 0; i * 4096ul < len; i++) {
		uint64_t page, va;
		size_t part = len - i * 4096ul < 4096 ? len - i * 4096ul : 4096;

		if (i == hole)
			continue;
		page = lm_page(g, as, i, 0);
		va = LM_DIRECT + ((page - LM_VMEMMAP) / LM_PAGE_SIZE << 12);
		memcpy(lm_ptr(g, va, part), (const uint8_t *)bytes + i * 4096ul, part);
		lm_xa_slot(g, node, i, page);
	}
	return file;
}

static inline void gf_file_layout(struct linux_file_layout *l)
{
	struct lm_types all = { 0 };
	struct types t = lm_types(&all);
	struct symtab *none = symtab_create();
	int bad = !none || symtab_freeze(none, NULL) || linux_file_layout_init(l, &t, none, NULL);

	assert(!bad);
	(void)bad;
	symtab_destroy(none);
}

#endif
