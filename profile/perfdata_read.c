/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/perfdata_read.h"

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/file.h"
#include "profile/perfdata_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define RELEASE_LEN (4u << 20) /* a multiple of any page size */

/* Where a record is, with its time, when the file is not sorted as it stands. */
struct place {
	uint64_t time_ns;
	uint64_t off;
};

struct perfdata_private {
	struct file_map map;
	struct cursor file;
	uint64_t data_off, data_end; /* of the readable records */
	uint64_t sample_type, read_format, period;
	bool sample_id_all;
	bool has_idle; /* as in struct perfdata */
	struct perfdata_build_id_entry *build_ids;
	uint64_t pos;	     /* next record, unsorted walk */
	struct place *order; /* NULL: the file is sorted */
	size_t norder, order_pos;
	uint64_t released; /* of the mapped file: what comes before was let go */
};

static void __attribute__((format(printf, 2, 3)))
mark_partial(struct perfdata *p, const char *fmt, ...)
{
	va_list ap;

	if (p->partial)
		return;
	p->partial = true;
	va_start(ap, fmt);
	vsnprintf(p->message, sizeof(p->message), fmt, ap);
	va_end(ap);
}

/* -- one record ------------------------------------------------------------------- */

static void skip_read_format(struct cursor *c, uint64_t format)
{
	unsigned int times = !!(format & PERFDATA_FORMAT_TOTAL_TIME_ENABLED) +
			     !!(format & PERFDATA_FORMAT_TOTAL_TIME_RUNNING);
	unsigned int each = 1 + !!(format & PERFDATA_FORMAT_ID) + !!(format & PERFDATA_FORMAT_LOST);

	if (format & PERFDATA_FORMAT_GROUP) {
		uint64_t nr = cursor_u64(c);

		/* A count that cannot fit a record fails the skip below; no overflow up to here. */
		if (nr > PERFDATA_RECORD_MAX)
			nr = PERFDATA_RECORD_MAX;
		cursor_skip(c, 8 * (times + nr * each));
	} else {
		cursor_skip(c, 8u * (times + each));
	}
}

static bool parse_sample(const struct perfdata_private *v, struct cursor *c,
			 struct perfdata_record *r)
{
	uint64_t type = v->sample_type;

	r->kind = PERFDATA_SAMPLE;
	r->sample.period = v->period;
	if (type & PERFDATA_SAMPLE_IDENTIFIER)
		cursor_skip(c, 8);
	if (type & PERFDATA_SAMPLE_IP)
		r->sample.ip = cursor_u64(c);
	if (type & PERFDATA_SAMPLE_TID) {
		r->pid = cursor_u32(c);
		r->tid = cursor_u32(c);
	}
	if (type & PERFDATA_SAMPLE_TIME)
		r->time_ns = cursor_u64(c);
	if (type & PERFDATA_SAMPLE_ADDR)
		cursor_skip(c, 8);
	if (type & PERFDATA_SAMPLE_ID)
		cursor_skip(c, 8);
	if (type & PERFDATA_SAMPLE_STREAM_ID)
		cursor_skip(c, 8);
	if (type & PERFDATA_SAMPLE_CPU) {
		r->cpu = cursor_u32(c);
		cursor_skip(c, 4);
	}
	if (type & PERFDATA_SAMPLE_PERIOD)
		r->sample.period = cursor_u64(c);
	if (type & PERFDATA_SAMPLE_READ)
		skip_read_format(c, v->read_format);
	if (type & PERFDATA_SAMPLE_CALLCHAIN) {
		uint64_t nr = cursor_u64(c);

		if (nr > cursor_left(c) / 8)
			return false;
		r->sample.nr = (uint32_t)nr;
		r->sample.chain = cursor_bytes(c, nr * 8);
	}
	return !c->bad;
}

/* The fields behind a record that is not a sample. `body` ends where they begin. */
static void parse_sample_id(const struct perfdata_private *v, struct cursor *body,
			    struct perfdata_record *r)
{
	uint64_t type = v->sample_type;
	size_t len = 0;
	struct cursor c;

	if (!v->sample_id_all)
		return;
	len += 8 * (!!(type & PERFDATA_SAMPLE_TID) + !!(type & PERFDATA_SAMPLE_TIME) +
		    !!(type & PERFDATA_SAMPLE_ID) + !!(type & PERFDATA_SAMPLE_STREAM_ID) +
		    !!(type & PERFDATA_SAMPLE_CPU) + !!(type & PERFDATA_SAMPLE_IDENTIFIER));
	if (len > body->len - body->pos)
		return;
	c = cursor_window(body, body->len - len, len);
	body->len -= len;
	if (type & PERFDATA_SAMPLE_TID) {
		r->pid = cursor_u32(&c);
		r->tid = cursor_u32(&c);
	}
	if (type & PERFDATA_SAMPLE_TIME)
		r->time_ns = cursor_u64(&c);
	if (type & PERFDATA_SAMPLE_ID)
		cursor_skip(&c, 8);
	if (type & PERFDATA_SAMPLE_STREAM_ID)
		cursor_skip(&c, 8);
	if (type & PERFDATA_SAMPLE_CPU)
		r->cpu = cursor_u32(&c);
	/* perf writes ~0 for "no time". */
	if (r->time_ns == UINT64_MAX)
		r->time_ns = 0;
}

static bool parse_map(struct cursor *c, bool mmap2, uint16_t misc, struct perfdata_record *r)
{
	const uint8_t *id = NULL;
	uint8_t id_len;

	r->kind = PERFDATA_MAP;
	r->pid = cursor_u32(c);
	r->tid = cursor_u32(c);
	r->map.addr = cursor_u64(c);
	r->map.len = cursor_u64(c);
	r->map.pgoff = cursor_u64(c);
	if (mmap2) {
		if (misc & PERFDATA_MISC_MMAP_BUILD_ID) {
			id_len = cursor_u8(c);
			cursor_skip(c, 3);
			id = cursor_bytes(c, 20);
			/* Shorter ones are zero-padded; longer ones do not exist. */
			if (id_len == 0 || id_len > 20)
				id = NULL;
		} else {
			cursor_skip(c, 24);
		}
		cursor_skip(c, 8);
	}
	r->map.build_id = id;
	r->map.path = c->bad ? NULL : cursor_str_at(c, c->pos);
	return r->map.path != NULL;
}

enum parsed { PARSED_RECORD, PARSED_OTHER, PARSED_BAD };

/* c is one whole record; off is for nothing but its type's payload. */
static enum parsed parse_record(const struct perfdata_private *v, struct cursor *c,
				struct perfdata_record *r)
{
	uint32_t type = cursor_u32(c);
	uint16_t misc = cursor_u16(c);
	unsigned int mode = misc & PERFDATA_MISC_CPUMODE_MASK;
	bool ok = true;

	cursor_u16(c);
	memset(r, 0, sizeof(*r));
	r->kernel = mode == PERFDATA_MISC_KERNEL;
	switch (type) {
	case PERFDATA_RECORD_SAMPLE:
		ok = parse_sample(v, c, r);
		r->idle = v->has_idle ? !(misc & PERFDATA_MISC_EXACT_IP) : r->pid == 0;
		break;
	case PERFDATA_RECORD_COMM:
		parse_sample_id(v, c, r);
		r->kind = PERFDATA_COMM;
		r->exec = misc & PERFDATA_MISC_COMM_EXEC;
		r->pid = cursor_u32(c);
		r->tid = cursor_u32(c);
		r->comm = c->bad ? NULL : cursor_str_at(c, c->pos);
		ok = r->comm != NULL;
		break;
	case PERFDATA_RECORD_MMAP:
	case PERFDATA_RECORD_MMAP2:
		parse_sample_id(v, c, r);
		ok = parse_map(c, type == PERFDATA_RECORD_MMAP2, misc, r);
		break;
	case PERFDATA_RECORD_FORK:
	case PERFDATA_RECORD_EXIT:
		parse_sample_id(v, c, r);
		r->kind = type == PERFDATA_RECORD_FORK ? PERFDATA_FORK : PERFDATA_EXIT;
		r->pid = cursor_u32(c);
		r->fork.ppid = cursor_u32(c);
		r->tid = cursor_u32(c);
		r->fork.ptid = cursor_u32(c);
		break;
	case PERFDATA_RECORD_LOST:
	case PERFDATA_RECORD_LOST_SAMPLES:
		parse_sample_id(v, c, r);
		r->kind = PERFDATA_LOST;
		if (type == PERFDATA_RECORD_LOST)
			cursor_skip(c, 8); /* event id */
		r->lost = cursor_u64(c);
		break;
	default:
		return PARSED_OTHER;
	}
	return ok && !c->bad ? PARSED_RECORD : PARSED_BAD;
}

/* The record at off as a cursor; empty when there is none. */
static struct cursor record_at(const struct perfdata_private *v, uint64_t off)
{
	struct cursor c = cursor_window(&v->file, off, PERFDATA_RECORD_HEADER);
	uint16_t size;

	cursor_skip(&c, 6);
	size = cursor_u16(&c);
	return cursor_window(&v->file, off, size);
}

/*
 * Whoever walks a large file would hold all of it in memory at the end. What lies well
 * before off is let go; looked at again, it comes out of the page cache again. Only a
 * mapping of a file may be treated so, never borrowed bytes.
 */
static void release_before(struct perfdata_private *v, uint64_t off)
{
	uint64_t end = off & ~(uint64_t)(RELEASE_LEN - 1);

	if (!v->map.data || end <= v->released)
		return;
	madvise((void *)(uintptr_t)(v->map.data + v->released), end - v->released, MADV_DONTNEED);
	v->released = end;
}

/* -- walking ----------------------------------------------------------------------- */

bool perfdata_next(struct perfdata *p, struct perfdata_record *r)
{
	struct perfdata_private *v = p->priv;

	if (v->order) {
		if (v->order_pos == v->norder)
			return false;
		uint64_t off = v->order[v->order_pos++].off;
		struct cursor c = record_at(v, off);

		release_before(v, off);
		return parse_record(v, &c, r) == PARSED_RECORD;
	}
	/* open has checked every record up to data_end. */
	while (v->pos < v->data_end) {
		struct cursor c = record_at(v, v->pos);

		release_before(v, v->pos);
		v->pos += c.len;
		if (parse_record(v, &c, r) == PARSED_RECORD)
			return true;
	}
	return false;
}

void perfdata_rewind(struct perfdata *p)
{
	p->priv->pos = p->priv->data_off;
	p->priv->order_pos = 0;
	p->priv->released = 0;
}

void perfdata_walk_begin(struct perfdata_walk *w, const struct perfdata_record *r)
{
	memset(w, 0, sizeof(*w));
	w->at = r->sample.chain;
	w->left = r->sample.nr;
	w->kernel = r->kernel;
	w->first = true;
	w->ip = r->sample.ip;
}

bool perfdata_walk_next(struct perfdata_walk *w, struct perfdata_frame *f)
{
	while (w->left) {
		uint64_t ip;

		memcpy(&ip, w->at, 8);
		w->at += 8;
		w->left--;
		if (ip >= PERFDATA_CONTEXT_MAX) {
			w->kernel = ip == PERFDATA_CONTEXT_KERNEL;
			w->skip = !w->kernel && ip != PERFDATA_CONTEXT_USER;
			continue;
		}
		if (w->skip)
			continue;
		*f = (struct perfdata_frame){ .ip = ip,
					      .kernel = w->kernel,
					      .innermost = w->first };
		w->first = false;
		return true;
	}
	/* No chain, or one of markers only. */
	if (w->first) {
		*f = (struct perfdata_frame){ .ip = w->ip, .kernel = w->kernel, .innermost = true };
		w->first = false;
		return true;
	}
	return false;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* Fill v->order: only when a record is older than one before it. */
static int sort_records(struct perfdata_private *v, size_t n, struct err *e)
{
	size_t i = 0;

	v->order = calloc(n ? n : 1, sizeof(*v->order));
	if (!v->order)
		return err_set(e, ENOMEM, "out of memory for %zu records", n);
	for (uint64_t off = v->data_off; off < v->data_end && i < n;) {
		struct cursor c = record_at(v, off);
		struct perfdata_record r;
		size_t len = c.len;

		release_before(v, off);

		if (parse_record(v, &c, &r) == PARSED_RECORD)
			v->order[i++] = (struct place){ r.time_ns, off };
		off += len;
	}
	v->norder = i;
	v->released = 0;
	qsort(v->order, v->norder, sizeof(*v->order), compare_places);
	return 0;
}

/* Check every record once, find where the readable part ends, and whether it is sorted. */
static int scan_records(struct perfdata *p, struct err *e)
{
	struct perfdata_private *v = p->priv;
	uint64_t off = v->data_off, last = 0;
	bool sorted = true;
	size_t n = 0;

	while (off < v->data_end) {
		struct cursor c = record_at(v, off);
		struct cursor h = c;
		struct perfdata_record r;
		enum parsed got;
		size_t len = c.len;
		uint16_t misc;

		release_before(v, off);

		if (c.bad || len < PERFDATA_RECORD_HEADER || len > v->data_end - off) {
			mark_partial(p,
				     "damaged or cut at byte %" PRIu64 " of %" PRIu64
				     ": what comes before is shown",
				     off, v->data_end);
			break;
		}
		if (cursor_u32(&h) == PERFDATA_RECORD_COMPRESSED) {
			mark_partial(p, "has compressed records, which are not read: decompress it "
					"with `perf inject` first");
			break;
		}
		misc = cursor_u16(&h);
		got = parse_record(v, &c, &r);
		if (got == PARSED_BAD) {
			mark_partial(p,
				     "bad record at byte %" PRIu64 ": what comes before is shown",
				     off);
			break;
		}
		off += len;
		if (got != PARSED_RECORD)
			continue;
		n++;
		sorted &= r.time_ns >= last;
		last = r.time_ns;
		if (r.kind == PERFDATA_LOST) {
			p->nlost += r.lost;
		} else if (r.kind == PERFDATA_SAMPLE) {
			p->nsamples++;
			p->has_idle |= p->ours && (misc & PERFDATA_MISC_EXACT_IP);
			if (!p->first_ns || r.time_ns < p->first_ns)
				p->first_ns = r.time_ns;
			if (r.time_ns > p->last_ns)
				p->last_ns = r.time_ns;
		}
	}
	v->data_end = off;
	v->pos = v->data_off;
	v->released = 0;
	v->has_idle = p->has_idle;
	return sorted ? 0 : sort_records(v, n, e);
}

/* -- header and features ----------------------------------------------------------- */

static void copy_text(char *dst, size_t size, const uint8_t *src, size_t len)
{
	size_t n = 0;

	for (; n < len && n + 1 < size && src[n]; n++)
		dst[n] = src[n] < 0x20 || src[n] == 0x7f ? '?' : (char)src[n];
	dst[n] = '\0';
}

static void read_string(struct cursor *c, char *dst, size_t size)
{
	uint32_t len = cursor_u32(c);
	const uint8_t *s = cursor_bytes(c, len);

	if (s)
		copy_text(dst, size, s, len);
}

static void read_build_ids(struct perfdata *p, struct cursor *c)
{
	struct perfdata_private *v = p->priv;
	size_t cap = 0, n = 0;

	while (cursor_left(c) > 36 && n < PERFDATA_MAX_BUILD_IDS) {
		size_t start = c->pos;
		struct perfdata_build_id_entry b = { 0 };
		uint16_t misc, size;

		cursor_u32(c);
		misc = cursor_u16(c);
		size = cursor_u16(c);
		cursor_u32(c); /* pid */
		b.id = cursor_bytes(c, 20);
		b.len = cursor_u8(c);
		if (!(misc & PERFDATA_MISC_BUILD_ID_SIZE))
			b.len = 20; /* before Linux 5.10 */
		b.name = cursor_str_at(c, start + 36);
		if (c->bad || size < 37 || !b.name || b.len == 0 || b.len > 20)
			break;
		b.kernel = (misc & PERFDATA_MISC_CPUMODE_MASK) == PERFDATA_MISC_KERNEL;
		if (n == cap) {
			size_t want = cap ? cap * 2 : 16;
			void *grown = reallocarray(v->build_ids, want, sizeof(b));

			if (!grown)
				break;
			v->build_ids = grown;
			cap = want;
		}
		v->build_ids[n++] = b;
		cursor_seek(c, start + size);
	}
	p->build_ids = v->build_ids;
	p->nbuild_ids = n;
}

static void read_feature(struct perfdata *p, unsigned int feature, struct cursor c)
{
	uint32_t n, attr_size;

	switch (feature) {
	case PERFDATA_FEAT_BUILD_ID:
		read_build_ids(p, &c);
		break;
	case PERFDATA_FEAT_HOSTNAME:
		read_string(&c, p->hostname, sizeof(p->hostname));
		break;
	case PERFDATA_FEAT_OSRELEASE:
		read_string(&c, p->osrelease, sizeof(p->osrelease));
		break;
	case PERFDATA_FEAT_VERSION:
		read_string(&c, p->version, sizeof(p->version));
		p->ours = !strncmp(p->version, "kvmprof-", 8);
		break;
	case PERFDATA_FEAT_NRCPUS:
		p->ncpus = cursor_u32(&c);
		break;
	case PERFDATA_FEAT_EVENT_DESC:
		/* The first event names the profile. */
		n = cursor_u32(&c);
		attr_size = cursor_u32(&c);
		cursor_skip(&c, attr_size);
		cursor_u32(&c);
		if (n && !c.bad)
			read_string(&c, p->event, sizeof(p->event));
		break;
	case PERFDATA_FEAT_KVMPROF_JSON:
		p->json = (const char *)c.base;
		p->json_len = c.len;
		break;
	}
}

static void read_features(struct perfdata *p, struct cursor header, uint64_t index_off)
{
	struct cursor index;
	uint64_t bits[4];
	unsigned int n = 0;

	cursor_seek(&header, PERFDATA_HDR_FEATURES);
	for (unsigned int i = 0; i < 4; i++) {
		bits[i] = cursor_u64(&header);
		n += (unsigned int)__builtin_popcountll(bits[i]);
	}
	index = cursor_window(&p->priv->file, index_off, 16ull * n);
	if (index.bad) {
		mark_partial(p, "cut: the description behind the samples is missing");
		return;
	}
	for (unsigned int f = 0; f < PERFDATA_FEATURE_BITS; f++) {
		struct cursor c;

		if (!(bits[f / 64] >> (f % 64) & 1))
			continue;
		uint64_t off = cursor_u64(&index), len = cursor_u64(&index);

		c = cursor_window(&p->priv->file, off, len);
		if (c.bad)
			mark_partial(p, "cut: feature %u is missing", f);
		else
			read_feature(p, f, c);
	}
}

/* The layout of samples. All events must share it; more than that nobody needed yet. */
static int read_attrs(struct perfdata *p, const char *name, uint64_t off, uint64_t len,
		      uint64_t entry, struct err *e)
{
	struct perfdata_private *v = p->priv;
	uint64_t n = entry ? len / entry : 0;

	if (entry < PERFDATA_ATTR_MIN + 16 || entry > 4096 || n == 0 || n > PERFDATA_MAX_ATTRS)
		return err_set(e, EINVAL,
			       "%s: bad perf.data header: %" PRIu64
			       " bytes of attributes of %" PRIu64,
			       name, len, entry);
	for (uint64_t i = 0; i < n; i++) {
		struct cursor c = cursor_window(&v->file, off + i * entry, entry);
		uint64_t period, type, format, flags;

		cursor_skip(&c, 16);
		period = cursor_u64(&c);
		type = cursor_u64(&c);
		format = cursor_u64(&c);
		flags = cursor_u64(&c);
		if (c.bad)
			return err_set(e, EINVAL, "%s: cut inside the attributes", name);
		if (i && (type != v->sample_type || format != v->read_format))
			return err_set(e, ENOTSUP,
				       "%s: holds events with different sample layouts, which are "
				       "not read",
				       name);
		v->sample_type = type;
		p->has_cpu = type & PERFDATA_SAMPLE_CPU;
		v->read_format = format;
		v->period = flags & PERFDATA_ATTR_FREQ || !period ? 1 : period;
		v->sample_id_all = flags & PERFDATA_ATTR_SAMPLE_ID_ALL;
	}
	return 0;
}

static int read_header(struct perfdata *p, const char *name, struct err *e)
{
	struct perfdata_private *v = p->priv;
	struct cursor c = v->file;
	const uint8_t *magic = cursor_bytes(&c, 8);
	uint64_t size = cursor_u64(&c), entry, attrs_off, attrs_len, data_len;
	int ret;

	if (magic && !memcmp(magic, PERFDATA_MAGIC_SWAPPED, 8))
		return err_set(e, ENOTSUP,
			       "%s: a perf.data file of a big-endian machine, which is not read",
			       name);
	if (!magic || memcmp(magic, PERFDATA_MAGIC, 8))
		return err_set(e, EINVAL, "%s: not a perf.data file (no %s at its beginning)", name,
			       PERFDATA_MAGIC);
	if (size == PERFDATA_PIPE_HEADER_SIZE)
		return err_set(
			e, ENOTSUP,
			"%s: pipe-mode perf.data is not read: convert it with `perf inject -o`",
			name);
	entry = cursor_u64(&c);
	attrs_off = cursor_u64(&c);
	attrs_len = cursor_u64(&c);
	v->data_off = cursor_u64(&c);
	data_len = cursor_u64(&c);
	cursor_seek(&c, PERFDATA_HEADER_SIZE);
	if (c.bad || size != PERFDATA_HEADER_SIZE)
		return err_set(e, EINVAL,
			       "%s: bad perf.data header (size %" PRIu64 ", expected %u)", name,
			       size, PERFDATA_HEADER_SIZE);
	ret = read_attrs(p, name, attrs_off, attrs_len, entry, e);
	if (ret)
		return ret;
	if (v->data_off > v->file.len)
		return err_set(e, EINVAL, "%s: cut before the first record", name);
	v->data_end = v->file.len;
	if (data_len == 0)
		mark_partial(p,
			     "was not finished (the writer was killed?): what is there is shown");
	else if (data_len > v->file.len - v->data_off)
		mark_partial(p, "cut: %" PRIu64 " of %" PRIu64 " bytes of records are there",
			     (uint64_t)v->file.len - v->data_off, data_len);
	else
		v->data_end = v->data_off + data_len;
	if (!p->partial)
		read_features(p, v->file, v->data_end);
	return 0;
}

/* -- open and close ----------------------------------------------------------------- */

static int open_mapped(struct perfdata *p, const char *name, const uint8_t *data, size_t len,
		       struct err *e)
{
	int ret;

	cursor_init(&p->priv->file, data, len);
	ret = read_header(p, name, e);
	if (ret)
		return ret;
	/* An unfinished file of ours has no features yet; its directory says whose it is. */
	if (p->partial && !p->version[0] && p->dir)
		p->ours = true;
	return scan_records(p, e);
}

static struct perfdata *create(void)
{
	struct perfdata *p = calloc(1, sizeof(*p));

	if (p)
		p->priv = calloc(1, sizeof(*p->priv));
	if (!p || !p->priv) {
		free(p);
		return NULL;
	}
	return p;
}

void perfdata_close(struct perfdata *p)
{
	if (!p)
		return;
	file_map_close(&p->priv->map);
	free(p->priv->order);
	free(p->priv->build_ids);
	free(p->priv);
	free(p->dir);
	free(p);
}

int perfdata_open_bytes(struct perfdata **out, const char *name, const uint8_t *data, size_t len,
			struct err *e)
{
	struct perfdata *p = create();
	int ret;

	if (!p)
		return err_set(e, ENOMEM, "%s: out of memory", name);
	ret = open_mapped(p, name, data, len, e);
	if (ret)
		perfdata_close(p);
	else
		*out = p;
	return ret;
}

int perfdata_open(struct perfdata **out, const char *path, struct err *e)
{
	cleanup_free char *data = NULL;
	struct perfdata *p = create();
	const char *name = path;
	struct stat st;
	int ret = 0;

	if (!p)
		return err_set(e, ENOMEM, "%s: out of memory", path);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		p->dir = strdup(path);
		if (!p->dir || asprintf(&data, "%s/data", path) < 0) {
			data = NULL;
			ret = err_set(e, ENOMEM, "%s: out of memory", path);
		}
		name = data;
	}
	if (!ret)
		ret = file_map_open(&p->priv->map, name, PERFDATA_MAX_FILE, e);
	if (!ret)
		ret = open_mapped(p, path, p->priv->map.data, p->priv->map.len, e);
	if (ret)
		perfdata_close(p);
	else
		*out = p;
	return ret;
}
