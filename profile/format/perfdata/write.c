/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/write.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/sample.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/window.h"
#include "profile/format/perfdata/write_feature.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_NAME 4000u /* longest map path or comm, limited by PATH_MAX and u16 sizes */

static bool equal_build_id(const void *a, const void *b, const void *ctx)
{
	const struct perfdata_build_id *x = a, *y = b;

	(void)ctx;
	return x->len == y->len && !memcmp(x->id, y->id, x->len) && !strcmp(x->name, y->name);
}

int perfdata_writer_open(struct perfdata_writer *w, const char *path, struct err *e)
{
	memset(w, 0, sizeof(*w));
	w->ids = TABLE_OF(struct perfdata_build_id, equal_build_id);
	w->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (w->fd < 0)
		return err_set(e, errno, "%s: cannot create: %s", path, strerror(errno));
	w->path = strdup(path);
	return w->path ? 0 : err_set(e, ENOMEM, "%s: out of memory", path);
}

void perfdata_writer_close(struct perfdata_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	buf_deinit(&w->out);
	buf_deinit(&w->held);
	buf_deinit(&w->spare);
	buf_deinit(&w->kept);
	for (size_t i = 0; i < w->ids.n; i++)
		free(((struct perfdata_build_id *)w->ids.item)[i].name);
	table_deinit(&w->ids);
	free(w->idx);
	free(w->path);
	w->idx = NULL;
	w->path = NULL;
	w->nidx = w->idx_cap = 0;
}

/* -- building blocks ---------------------------------------------------------- */

void perfdata_put_header(struct buf *b, const struct perfdata_writer *w, uint64_t data_end,
			 const uint64_t features[4])
{
	buf_add(b, PERFDATA_MAGIC, 8);
	buf_u64(b, PERFDATA_HEADER_SIZE);
	buf_u64(b, PERFDATA_ATTR_ENTRY);
	buf_u64(b, w->attr_off);
	buf_u64(b, w->nevents * PERFDATA_ATTR_ENTRY);
	buf_u64(b, w->data_off);
	buf_u64(b, data_end ? data_end - w->data_off : 0);
	buf_u64(b, 0);
	buf_u64(b, 0);
	for (unsigned int i = 0; i < 4; i++)
		buf_u64(b, features[i]);
}

/* Returns the size of the fields at the end of a record that is not a sample. */
static size_t sample_id_size(const struct perfdata_writer *w)
{
	return perfdata_has_identifier(w) ? 32 : 24;
}

static void put_sample_id(struct buf *b, const struct perfdata_writer *w, uint32_t pid,
			  uint32_t tid, uint64_t time_ns, uint32_t cpu)
{
	buf_u32(b, pid);
	buf_u32(b, tid);
	buf_u64(b, time_ns);
	buf_u32(b, cpu);
	buf_u32(b, 0);
	if (perfdata_has_identifier(w))
		buf_u64(b, PERFDATA_EVENT_ID);
}

static void put_record_header(struct buf *b, uint32_t type, uint16_t misc, size_t size)
{
	assert(size <= PERFDATA_RECORD_MAX);
	buf_u32(b, type);
	buf_u16(b, misc);
	buf_u16(b, (uint16_t)size);
}

static size_t name_len(const char *name)
{
	size_t len = strlen(name);

	return len < MAX_NAME ? len : MAX_NAME;
}

static size_t name_size(const char *name)
{
	return (name_len(name) + 1 + 7) & ~(size_t)7;
}

static void put_name(struct buf *b, const char *name)
{
	size_t len = name_len(name);

	buf_add(b, name, len);
	buf_add(b, NULL, name_size(name) - len);
}

/* -- begin -------------------------------------------------------------------- */

int perfdata_write_begin(struct perfdata_writer *w, const struct profile_info *info, struct err *e)
{
	static const uint64_t none[4];

	assert(info->nevents && info->nevents <= PROFILE_MAX_EVENTS);
	w->nevents = info->nevents + info->markers;
	w->marker_event = info->nevents;
	w->mem = info->mem;
	for (unsigned int i = 0; i < info->nevents; i++)
		w->exits |= (uint32_t)info->event[i].exits << i;
	w->ids_off = PERFDATA_HEADER_SIZE;
	w->attr_off = w->ids_off + 8 * (uint64_t)w->nevents;
	w->data_off = w->attr_off + (uint64_t)w->nevents * PERFDATA_ATTR_ENTRY;
	perfdata_put_header(&w->out, w, 0, none);
	for (unsigned int i = 0; i < w->nevents; i++)
		buf_u64(&w->out, PERFDATA_EVENT_ID + i);
	for (unsigned int i = 0; i < w->nevents; i++) {
		perfdata_put_attr(&w->out, info, i);
		buf_u64(&w->out, w->ids_off + 8 * (uint64_t)i);
		buf_u64(&w->out, 8);
	}
	assert(w->out.failed || w->out.len == w->data_off);

	w->pos = w->out.len;
	return perfdata_push(w, e);
}

static size_t kernel_map_size(const struct perfdata_writer *w, const char *name)
{
	return PERFDATA_RECORD_HEADER + 32 + name_size(name) + sample_id_size(w);
}

static size_t module_map_size(const struct perfdata_writer *w, const char *name)
{
	return kernel_map_size(w, name) + 32;
}

/* Appends pid, tid and range of a map of kernel code. */
static void put_kernel_range(struct buf *b, const struct profile_map *m)
{
	buf_u32(b, UINT32_MAX);
	buf_u32(b, 0);
	buf_u64(b, m->addr);
	buf_u64(b, m->len);
	buf_u64(b, m->pgoff);
}

/* Appends a map of kernel code; path is the name that perf shows. */
static void put_kernel_map(struct buf *b, const struct perfdata_writer *w,
			   const struct profile_map *m)
{
	put_record_header(b, PERFDATA_RECORD_MMAP, PERFDATA_MISC_KERNEL,
			  kernel_map_size(w, m->path));
	put_kernel_range(b, m);
	put_name(b, m->path);
	put_sample_id(b, w, UINT32_MAX, 0, m->time_ns, 0);
}

/*
 * Appends a map of a module, whose path is the name that perf shows. It is an MMAP2 record,
 * although a module has no device and inode: perf inject --buildid-all crashes at the second MMAP
 * record of one name (dso_id__empty(NULL), perf 6.17 to 7.3).
 */
static void put_module_map(struct buf *b, const struct perfdata_writer *w,
			   const struct profile_map *m)
{
	put_record_header(b, PERFDATA_RECORD_MMAP2, PERFDATA_MISC_KERNEL,
			  module_map_size(w, m->path));
	put_kernel_range(b, m);
	buf_add(b, NULL, 24); /* device, inode, generation */
	buf_u32(b, PROT_READ | PROT_EXEC);
	buf_u32(b, MAP_PRIVATE);
	put_name(b, m->path);
	put_sample_id(b, w, UINT32_MAX, 0, m->time_ns, 0);
}

static size_t keep_size(const struct perfdata_writer *w)
{
	return PERFDATA_RECORD_HEADER + 16 + sample_id_size(w);
}

/*
 * Appends a record that the BPF program PERFDATA_KEPT_ID was loaded: perf marks the preceding maps
 * as its own.
 */
static void put_keep(struct buf *b, const struct perfdata_writer *w)
{
	put_record_header(b, PERFDATA_RECORD_BPF_EVENT, PERFDATA_MISC_KERNEL, keep_size(w));
	buf_u16(b, 1); /* PERF_BPF_EVENT_PROG_LOAD */
	buf_u16(b, 0);
	buf_u32(b, PERFDATA_KEPT_ID);
	buf_u64(b, 0); /* tag */
	put_sample_id(b, w, UINT32_MAX, 0, 0, 0);
}

/* Appends a FINISHED_ROUND record of any size, which perf skips. */
static void put_filler(struct buf *b, size_t size)
{
	put_record_header(b, PERFDATA_RECORD_FINISHED_ROUND, 0, size);
	buf_add(b, NULL, size - PERFDATA_RECORD_HEADER);
}

int perfdata_write_kernel(struct perfdata_writer *w, const struct profile_kernel *k, struct err *e)
{
	size_t start = w->out.len;

	if (w->failed)
		return perfdata_fail(w, -w->failed, e);
	/* perf computes the kernel's slide from the name and pgoff together. */
	if (k->end > k->text)
		put_kernel_map(&w->out, w,
			       &(struct profile_map){ .addr = k->text,
						      .len = k->end - k->text,
						      .pgoff = k->text,
						      .path = PERFDATA_KERNEL_MAP_NAME });
	w->early_off = w->pos + (w->out.len - start);
	put_filler(&w->out, PERFDATA_EARLY);
	w->pos += w->out.len - start;
	return perfdata_push(w, e);
}

/* -- records ------------------------------------------------------------------- */

/* Appends a FORK or EXIT record; `by` is the task that caused it. */
static int write_task(struct perfdata_writer *w, uint32_t type, const struct profile_fork *f,
		      const uint32_t by[2], struct err *e)
{
	size_t start = w->held.len;

	if (w->failed)
		return perfdata_fail(w, -w->failed, e);
	put_record_header(&w->held, type, 0, PERFDATA_RECORD_HEADER + 24 + sample_id_size(w));
	buf_u32(&w->held, f->pid);
	buf_u32(&w->held, f->ppid);
	buf_u32(&w->held, f->tid);
	buf_u32(&w->held, f->ptid);
	buf_u64(&w->held, f->time_ns);
	put_sample_id(&w->held, w, by[0], by[1], f->time_ns, 0);
	return perfdata_hold(w, start, f->time_ns, e);
}

int perfdata_write_fork(struct perfdata_writer *w, const struct profile_fork *f, struct err *e)
{
	return write_task(w, PERFDATA_RECORD_FORK, f, (uint32_t[]){ f->ppid, f->ptid }, e);
}

int perfdata_write_exit(struct perfdata_writer *w, uint32_t pid, uint32_t tid, uint64_t time_ns,
			struct err *e)
{
	const struct profile_fork end = { .pid = pid, .tid = tid, .time_ns = time_ns };

	return write_task(w, PERFDATA_RECORD_EXIT, &end, (uint32_t[]){ pid, tid }, e);
}

int perfdata_write_comm(struct perfdata_writer *w, const struct profile_comm *c, struct err *e)
{
	size_t start = w->held.len;

	if (w->failed)
		return perfdata_fail(w, -w->failed, e);
	put_record_header(&w->held, PERFDATA_RECORD_COMM, c->exec ? PERFDATA_MISC_COMM_EXEC : 0,
			  PERFDATA_RECORD_HEADER + 8 + name_size(c->name) + sample_id_size(w));
	buf_u32(&w->held, c->pid);
	buf_u32(&w->held, c->tid);
	put_name(&w->held, c->name);
	put_sample_id(&w->held, w, c->pid, c->tid, c->time_ns, 0);
	return perfdata_hold(w, start, c->time_ns, e);
}

static void module_map_name(char name[PROFILE_MODULE_NAME + 2], const struct profile_module *m)
{
	snprintf(name, PROFILE_MODULE_NAME + 2, "[%.*s]", (int)PROFILE_MODULE_NAME - 1, m->name);
}

int perfdata_write_module(struct perfdata_writer *w, const struct profile_module *m, struct err *e)
{
	char name[PROFILE_MODULE_NAME + 2];
	size_t start = w->held.len;
	int ret = 0;

	if (w->failed)
		return perfdata_fail(w, -w->failed, e);
	module_map_name(name, m);
	if (m->build_id && m->build_id_len)
		ret = perfdata_write_build_id(w, PERFDATA_MISC_KERNEL, m->build_id, m->build_id_len,
					      name, e);
	if (ret)
		return ret;
	put_module_map(
		&w->held, w,
		&(struct profile_map){
			.addr = m->addr, .len = m->len, .path = name, .time_ns = m->time_ns });
	return perfdata_hold(w, start, m->time_ns, e);
}

int perfdata_write_early(struct perfdata_writer *w, const struct profile_module *const *m, size_t n,
			 enum perfdata_maps how, size_t *left, struct err *e)
{
	const size_t end = PERFDATA_EARLY - PERFDATA_RECORD_HEADER - keep_size(w);
	struct buf b;
	size_t i;
	int ret = 0;

	*left = n;
	/* Works also on a full disk: these bytes are in the file already. */
	if (!w->early_off || w->early_off + PERFDATA_EARLY > w->on_disk)
		return 0;
	buf_init(&b);
	w->kept.len = 0;
	for (i = 0; i < n; i++) {
		char name[PROFILE_MODULE_NAME + 2];

		module_map_name(name, m[i]);
		if (b.len + module_map_size(w, name) > end)
			break;
		put_module_map(&b, w,
			       &(struct profile_map){
				       .addr = m[i]->addr, .len = m[i]->len, .path = name });
	}
	if (how == PERFDATA_MAPS_KEPT && i) {
		put_keep(&b, w);
		perfdata_put_kept(&w->kept, m, i);
	}
	put_filler(&b, PERFDATA_EARLY - b.len);
	if (b.failed || w->kept.failed)
		ret = perfdata_no_memory(w, e);
	else if (lseek(w->fd, (off_t)w->early_off, SEEK_SET) < 0)
		ret = perfdata_fail(w, errno, e);
	else if ((ret = file_write_all(w->fd, b.data, b.len)) != 0)
		ret = perfdata_fail(w, -ret, e);
	else if (lseek(w->fd, 0, SEEK_END) < 0)
		ret = perfdata_fail(w, errno, e);
	buf_deinit(&b);
	*left = n - i;
	return ret;
}

int perfdata_write_map(struct perfdata_writer *w, const struct profile_map *map, struct err *e)
{
	size_t start = w->held.len;
	int ret;

	if (w->failed)
		return perfdata_fail(w, -w->failed, e);
	ret = perfdata_write_build_id(w, PERFDATA_MISC_USER, map->build_id, PERFDATA_BUILD_ID_SIZE,
				      map->path, e);
	if (ret)
		return ret;
	put_record_header(&w->held, PERFDATA_RECORD_MMAP2,
			  PERFDATA_MISC_USER | PERFDATA_MISC_MMAP_BUILD_ID,
			  PERFDATA_RECORD_HEADER + 64 + name_size(map->path) + sample_id_size(w));
	buf_u32(&w->held, map->pid);
	buf_u32(&w->held, map->tid);
	buf_u64(&w->held, map->addr);
	buf_u64(&w->held, map->len);
	buf_u64(&w->held, map->pgoff);
	buf_u8(&w->held, PERFDATA_BUILD_ID_SIZE);
	buf_add(&w->held, NULL, 3);
	buf_add(&w->held, map->build_id, PERFDATA_BUILD_ID_SIZE);
	buf_u32(&w->held, map->prot ? map->prot : PROT_READ | PROT_EXEC);
	buf_u32(&w->held, 2); /* MAP_PRIVATE */
	put_name(&w->held, map->path);
	put_sample_id(&w->held, w, map->pid, map->tid, map->time_ns, 0);
	return perfdata_hold(w, start, map->time_ns, e);
}

void perfdata_put_lost(struct buf *b, const struct perfdata_writer *w, uint32_t cpu, uint64_t count,
		       uint64_t time_ns)
{
	put_record_header(b, PERFDATA_RECORD_LOST_SAMPLES, 0,
			  PERFDATA_RECORD_HEADER + 8 + sample_id_size(w));
	buf_u64(b, count);
	put_sample_id(b, w, 0, 0, time_ns, cpu);
}

int perfdata_write_lost(struct perfdata_writer *w, uint32_t cpu, uint64_t count, uint64_t time_ns,
			struct err *e)
{
	size_t start = w->held.len;

	if (w->failed)
		return perfdata_fail(w, -w->failed, e);
	perfdata_put_lost(&w->held, w, cpu, count, time_ns);
	return perfdata_hold(w, start, time_ns, e);
}

/* Returns the address by which perf looks a frame up (see the top of the header). */
static uint64_t frame_address(const struct stack *st, unsigned int i)
{
	return i == 0 || st->exact[i] || st->ip[i] == 0 ? st->ip[i] : st->ip[i] - 1;
}

static uint64_t page_bytes(uint8_t shift)
{
	return shift ? UINT64_C(1) << shift : 0;
}

/* Fields of a sample's memory if the caller does not know them. */
static const struct mem_refs no_mem = { .why = MEMOP_NO_BYTES };

static size_t raw_size(const struct perfdata_writer *w, const struct profile_sample *s,
		       const struct mem_refs *m)
{
	size_t exit = w->exits >> s->event & 1 ? EXITTIME_SIZE : 0;

	return w->mem ? memref_raw_size(m) + exit : exit;
}

/* Appends RAW: the memory references of `mem`, if any, then the duration of the exit. */
static void put_raw(struct buf *b, const struct perfdata_writer *w, const struct profile_sample *s,
		    const struct mem_refs *m)
{
	size_t size = raw_size(w, s, m);

	if (size)
		buf_u32(b, (uint32_t)size - 4);
	if (w->mem)
		memref_put(b, m);
	if (w->exits >> s->event & 1)
		exittime_put(b, s->exit_ns, w->mem ? EXITTIME_BEHIND : EXITTIME_ALONE);
}

/*
 * Appends the fields after RAW of PERFDATA_MEM_SAMPLE_TYPE. perf's fields describe the first
 * operand; they are 0 if there is none or it is unknown.
 */
static void put_mem(struct buf *b, const struct mem_refs *m)
{
	const struct mem_ref *r = m->n ? &m->ref[0] : NULL;

	buf_u64(b, memref_data_src(m));
	buf_u64(b, r ? r->gpa : 0);
	buf_u64(b, r ? page_bytes(r->guest_shift) : 0);
	buf_u64(b, page_bytes(m->code.guest_shift));
}

/* Words of a sample without its header and the fields of markers and memory. */
#define SAMPLE_WORDS (8 + STACK_MAX_FRAMES + 2)

/* Stores the fields that all events have; returns the end in v. */
static uint64_t *sample_fields(const struct perfdata_writer *w, const struct profile_sample *s,
			       uint64_t *p)
{
	const struct stack *st = s->stack;
	unsigned int n = st->n < STACK_MAX_FRAMES ? st->n : STACK_MAX_FRAMES;
	unsigned int nk = st->n_kernel < n ? st->n_kernel : n;

	if (perfdata_has_identifier(w))
		*p++ = PERFDATA_EVENT_ID + s->event;
	*p++ = n ? st->ip[0] : 0;
	*p++ = s->pid | (uint64_t)s->tid << 32;
	*p++ = s->time_ns;
	if (w->mem && s->event != w->marker_event)
		*p++ = s->mem && s->mem->n ? s->mem->ref[0].va : 0;
	*p++ = s->cpu;
	*p++ = s->period;
	*p++ = n + (nk > 0) + (n > nk);
	if (nk)
		*p++ = PERFDATA_CONTEXT_KERNEL;
	for (unsigned int i = 0; i < nk; i++)
		*p++ = frame_address(st, i);
	if (n > nk)
		*p++ = PERFDATA_CONTEXT_USER;
	for (unsigned int i = nk; i < n; i++)
		*p++ = frame_address(st, i);
	return p;
}

int perfdata_write_marker(struct perfdata_writer *w, const struct profile_marker *m, struct err *e)
{
	static const struct stack none;
	const struct profile_sample s = {
		.pid = m->pid,
		.tid = m->tid,
		.cpu = m->cpu,
		.time_ns = m->time_ns,
		.period = 1,
		.event = (uint8_t)w->marker_event,
		.stack = m->stack ? m->stack : &none,
	};
	uint64_t v[SAMPLE_WORDS];
	size_t start = w->held.len, fields = (size_t)(sample_fields(w, &s, v) - v) * sizeof(*v);
	char text[MARKER_NAME + 32] = "";
	size_t len = (size_t)snprintf(text, sizeof(text), "%s: %s", markers_kind_name(m->kind),
				      m->name) +
		     1;
	/* The u32 size before it counts, too. */
	size_t raw = ((4 + len + 7) & ~(size_t)7) - 4;

	if (w->failed)
		return perfdata_fail(w, -w->failed, e);
	put_record_header(&w->held, PERFDATA_RECORD_SAMPLE,
			  s.stack->n > s.stack->n_kernel && !s.stack->n_kernel
				  ? PERFDATA_MISC_USER | PERFDATA_MISC_EXACT_IP
				  : PERFDATA_MISC_KERNEL | PERFDATA_MISC_EXACT_IP,
			  PERFDATA_RECORD_HEADER + fields + 4 + raw);
	buf_add(&w->held, v, fields);
	buf_u32(&w->held, (uint32_t)raw);
	buf_add(&w->held, text, len);
	buf_add(&w->held, NULL, raw - len);
	return perfdata_hold(w, start, m->time_ns, e);
}

int perfdata_write_sample(struct perfdata_writer *w, const struct profile_sample *s, struct err *e)
{
	const struct mem_refs *mem = s->mem ? s->mem : &no_mem;
	uint64_t v[SAMPLE_WORDS];
	size_t start = w->held.len, fields;

	if (w->failed)
		return perfdata_fail(w, -w->failed, e);
	assert(s->stack->n > 0 && s->event < w->nevents);
	fields = (size_t)(sample_fields(w, s, v) - v) * sizeof(*v);
	/* perf 6.1 reads the second bit in `perf top` only. */
	put_record_header(&w->held, PERFDATA_RECORD_SAMPLE,
			  (s->stack->n_kernel ? PERFDATA_MISC_KERNEL : PERFDATA_MISC_USER) |
				  (s->mode == SAMPLE_IDLE ? 0 : PERFDATA_MISC_EXACT_IP),
			  PERFDATA_RECORD_HEADER + fields + raw_size(w, s, mem) +
				  (w->mem ? 32 : 0));
	buf_add(&w->held, v, fields);
	put_raw(&w->held, w, s, mem);
	if (w->mem)
		put_mem(&w->held, mem);

	w->samples++;
	if (!w->first_ns || s->time_ns < w->first_ns)
		w->first_ns = s->time_ns;
	if (s->time_ns > w->last_ns)
		w->last_ns = s->time_ns;
	return perfdata_hold(w, start, s->time_ns, e);
}

int perfdata_write_build_id(struct perfdata_writer *w, uint16_t whose, const uint8_t *id,
			    unsigned int len, const char *name, struct err *e)
{
	struct perfdata_build_id b = { .kernel = whose == PERFDATA_MISC_KERNEL, .len = len };
	char cut[MAX_NAME + 1];
	uint64_t hash;
	uint32_t index;
	bool fresh;

	assert(len && len <= PERFDATA_BUILD_ID_SIZE);
	memcpy(b.id, id, len);
	b.name = cut;
	snprintf(cut, sizeof(cut), "%s", name);
	hash = hash_text(hash_bytes(HASH_START, id, len), cut);
	if (table_find(&w->ids, hash, &b, &index))
		return 0;
	/* A guest may invent any number of mappings; the maps stay, the table is only a summary. */
	if (w->ids.n >= PERFDATA_WRITE_MAX_IDS) {
		w->ids_left_out++;
		return 0;
	}
	b.name = strdup(cut);
	if (!b.name || table_add(&w->ids, hash, &b, &index, &fresh)) {
		free(b.name);
		return perfdata_no_memory(w, e);
	}
	return 0;
}

/* -- a copy of an unfinished file and its writer ---------------------------------------------- */

#define CHUNK (1u << 20)

/* Copies between file systems that the kernel cannot copy between. */
static int copy_by_hand(int to, int from, uint64_t off, uint64_t end)
{
	cleanup_free uint8_t *chunk = malloc(CHUNK);

	if (!chunk)
		return -ENOMEM;
	while (off < end) {
		size_t want = end - off < CHUNK ? (size_t)(end - off) : CHUNK;
		ssize_t n = pread(from, chunk, want, (off_t)off);
		int ret;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		ret = file_write_all(to, chunk, (size_t)n);
		if (ret)
			return ret;
		off += (uint64_t)n;
	}
	return 0;
}

/* Copies the first len bytes. `from` is written at its file position, which is not changed. */
static int copy_bytes(int to, int from, uint64_t len)
{
	off_t in = 0;

	while ((uint64_t)in < len) {
		ssize_t n = copy_file_range(from, &in, to, NULL, len - (uint64_t)in, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return copy_by_hand(to, from, (uint64_t)in, len);
	}
	return 0;
}

static void copy_buf(struct buf *to, const struct buf *from)
{
	buf_init(to);
	if (from->len)
		buf_add(to, from->data, from->len);
	to->failed |= from->failed;
}

static bool copy_tables(struct perfdata_writer *out, const struct perfdata_writer *w)
{
	copy_buf(&out->out, &w->out);
	copy_buf(&out->held, &w->held);
	copy_buf(&out->kept, &w->kept);
	if (w->nidx) {
		out->idx = malloc(w->idx_cap * sizeof(*w->idx));
		if (!out->idx)
			return false;
		memcpy(out->idx, w->idx, w->nidx * sizeof(*w->idx));
		out->nidx = w->nidx;
		out->idx_cap = w->idx_cap;
	}
	for (size_t i = 0; i < w->ids.n; i++) {
		const struct perfdata_build_id *id =
			(const struct perfdata_build_id *)w->ids.item + i;

		if (perfdata_write_build_id(out,
					    id->kernel ? PERFDATA_MISC_KERNEL : PERFDATA_MISC_USER,
					    id->id, id->len, id->name, NULL))
			return false;
	}
	return !out->out.failed && !out->held.failed && !out->kept.failed;
}

int perfdata_writer_copy(struct perfdata_writer *out, const struct perfdata_writer *w,
			 const char *path, struct err *e)
{
	struct perfdata_writer fresh;
	int ret;

	*out = (struct perfdata_writer){ .fd = -1 };
	if (w->failed)
		return err_set(e, -w->failed, "%s: cannot be copied, as writing it has failed: %s",
			       w->path, strerror(-w->failed));
	ret = perfdata_writer_open(&fresh, path, e);
	/* Copy all members except owned ones, which copy_tables() fills in. */
	*out = *w;
	out->fd = fresh.fd;
	out->path = fresh.path;
	out->idx = NULL;
	out->ids = TABLE_OF(struct perfdata_build_id, w->ids.equal);
	out->nidx = out->idx_cap = 0;
	buf_init(&out->out);
	buf_init(&out->held);
	buf_init(&out->spare);
	buf_init(&out->kept);
	if (ret)
		return ret;
	ret = copy_bytes(out->fd, w->fd, w->on_disk);
	if (ret)
		return err_set(e, -ret, "%s: cannot write: %s", path, strerror(-ret));
	return copy_tables(out, w) ? 0 : err_set(e, ENOMEM, "%s: out of memory", path);
}
