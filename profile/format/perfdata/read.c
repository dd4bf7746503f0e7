/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/read.h"

#include "base/cleanup.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/private.h"
#include "profile/format/perfdata/read_chain.h"
#include "profile/format/perfdata/read_group.h"
#include "profile/format/perfdata/read_header.h"
#include "profile/format/perfdata/read_inflate.h"
#include "profile/format/perfdata/read_parts.h"
#include "profile/format/perfdata/read_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RELEASE_LEN (4u << 20) /* a multiple of any page size */
/*
 * After this many bytes, everything is released again, because the callers' kept chains may have
 * been read.
 */
#define RELEASE_ALL (256ull << 20)

void perfdata_mark_partial(struct perfdata *p, const char *fmt, ...)
{
	va_list ap;

	if (p->partial)
		return;
	p->partial = true;
	va_start(ap, fmt);
	vsnprintf(p->message, sizeof(p->message), fmt, ap);
	va_end(ap);
}

/* -- walking ----------------------------------------------------------------------- */

/*
 * A walk over a large file would end with all of it in memory. Releases the pages well before off;
 * a later access reads them from the page cache again. Only a mapping of a file may be treated so,
 * never borrowed or decompressed bytes.
 */
static void release_before(struct perfdata_private *v, uint64_t off)
{
	uint64_t end = off & ~(uint64_t)(RELEASE_LEN - 1);

	if (!v->map.data || v->records.base != v->map.data || end <= v->released)
		return;
	if (end / RELEASE_ALL != v->released / RELEASE_ALL)
		v->released = 0;
	madvise((void *)(uintptr_t)(v->map.data + v->released), end - v->released, MADV_DONTNEED);
	v->released = end;
}

/*
 * Reads the record at off, its event and its end. Returns false if the record is not returned to
 * callers.
 */
static bool read_at(struct perfdata_private *v, uint64_t off, uint64_t *end,
		    struct perfdata_record *r, uint32_t *event)
{
	struct cursor c = perfdata_record_at(v, off);

	release_before(v, off);
	*end = off + c.len + perfdata_record_extra(v, c);
	if (perfdata_parse(v, &c, r, event) != PERFDATA_PARSED || r->kind == PERFDATA_DEFERRED)
		return false;
	if (r->kind == PERFDATA_MARKER && *event == v->chosen)
		r->kind = PERFDATA_SAMPLE;
	return r->kind != PERFDATA_SAMPLE || *event == v->chosen || v->groups;
}

/*
 * Makes a sample of the chosen event from a record that is a sample. Returns false if the record
 * has none.
 */
static bool make_sample(struct perfdata *p, struct perfdata_record *r, uint32_t event)
{
	struct perfdata_private *v = p->priv;
	struct perfdata_gain gain[PERFDATA_MAX_ATTRS];
	uint32_t n;

	if (r->kind != PERFDATA_SAMPLE)
		return true;
	if (v->groups && r->sample.values) {
		n = perfdata_group_gains(v, event, r, gain);
		for (event = UINT32_MAX; n-- && event != v->chosen;) {
			event = gain[n].event;
			r->sample.period = gain[n].period;
		}
	}
	if (event != v->chosen || (v->to_ns && (r->time_ns < v->from_ns || r->time_ns >= v->to_ns)))
		return false;
	perfdata_chains_complete(p, r);
	return true;
}

static bool next_of_file(struct perfdata *p, struct perfdata_record *r)
{
	struct perfdata_private *v = p->priv;
	uint32_t event;
	uint64_t end;

	while (v->order) {
		if (v->order_pos == v->norder)
			return false;
		if (read_at(v, v->order[v->order_pos++].off, &end, r, &event) &&
		    make_sample(p, r, event))
			return true;
	}
	/* perfdata_open() has checked every record up to data_end. */
	while (v->pos < v->data_end) {
		bool got = read_at(v, v->pos, &end, r, &event);

		v->pos = end;
		if (got && make_sample(p, r, event))
			return true;
	}
	return false;
}

bool perfdata_next(struct perfdata *p, struct perfdata_record *r)
{
	struct perfdata *at = p->priv->reading ? p->priv->reading : p;

	if (next_of_file(at, r))
		return true;
	if (!at->next_epoch)
		return false;
	p->priv->reading = at->next_epoch;
	*r = (struct perfdata_record){ .kind = PERFDATA_EPOCH, .epoch = at->next_epoch };
	return true;
}

void perfdata_set_window(struct perfdata *p, uint64_t from_ns, uint64_t to_ns)
{
	for (; p; p = p->next_epoch) {
		p->priv->from_ns = from_ns;
		p->priv->to_ns = to_ns;
	}
}

void perfdata_walk_begin(struct perfdata_walk *w, const struct perfdata_record *r)
{
	memset(w, 0, sizeof(*w));
	w->at = r->sample.chain;
	w->left = r->sample.nr;
	w->kernel = w->ip_kernel = r->kernel;
	w->first = w->entered = true;
	w->owner = w->ip_owner = r->owner;
	w->ip = r->sample.ip;
}

/*
 * Enters the context that a mark inside a chain begins. The kernel does not distinguish guests in
 * the chain of a sample that hit one: KERNEL and USER mean the guest's there (and x86 adds no
 * frames after them).
 */
static void walk_enter(struct perfdata_walk *w, uint64_t context)
{
	bool guest = w->ip_owner == PERFDATA_GUEST_KERNEL || w->ip_owner == PERFDATA_GUEST_USER;

	w->skip = false;
	w->entered = true;
	w->kernel = context == PERFDATA_CONTEXT_KERNEL && w->ip_owner == PERFDATA_RECORDED;
	switch (context) {
	case PERFDATA_CONTEXT_KERNEL:
		w->owner = guest ? (uint8_t)PERFDATA_GUEST_KERNEL : w->ip_owner;
		break;
	case PERFDATA_CONTEXT_USER:
		w->owner = guest ? (uint8_t)PERFDATA_GUEST_USER : w->ip_owner;
		break;
	case PERFDATA_CONTEXT_GUEST_KERNEL:
		w->owner = PERFDATA_GUEST_KERNEL;
		break;
	case PERFDATA_CONTEXT_GUEST_USER:
		w->owner = PERFDATA_GUEST_USER;
		break;
	case PERFDATA_CONTEXT_HV:
		w->owner = PERFDATA_HYPERVISOR;
		break;
	default:
		w->skip = true;
	}
}

bool perfdata_walk_next(struct perfdata_walk *w, struct perfdata_frame *f)
{
	while (w->left) {
		uint64_t ip;

		memcpy(&ip, w->at, 8);
		w->at += 8;
		w->left--;
		if (ip >= PERFDATA_CONTEXT_MAX) {
			walk_enter(w, ip);
			continue;
		}
		if (w->skip)
			continue;
		*f = (struct perfdata_frame){ .ip = ip,
					      .kernel = w->kernel,
					      .innermost = w->first,
					      .interrupted = w->entered,
					      .owner = w->owner };
		w->first = w->entered = false;
		return true;
	}
	/*
	 * The chain is empty or has marks only: the kernel's unwinder can fail at its first frame.
	 */
	if (w->first) {
		*f = (struct perfdata_frame){ .ip = w->ip,
					      .kernel = w->ip_kernel,
					      .innermost = true,
					      .interrupted = true,
					      .owner = w->ip_owner };
		w->first = false;
		return true;
	}
	return false;
}

static int compare_places(const void *a, const void *b)
{
	const struct perfdata_place *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

/*
 * Fills v->order if a record is older than one before it. n is an upper bound of the number of
 * records.
 */
static int sort_records(struct perfdata_private *v, size_t n, struct err *e)
{
	struct perfdata_record r;
	size_t i = 0;
	uint64_t end;
	uint32_t event;

	v->order = calloc(n ? n : 1, sizeof(*v->order));
	if (!v->order)
		return err_set(e, ENOMEM, "out of memory for %zu records", n);
	for (uint64_t off = v->data_off; off < v->data_end && i < n; off = end)
		if (read_at(v, off, &end, &r, &event))
			v->order[i++] = (struct perfdata_place){ r.time_ns, off };
	v->norder = i;
	v->released = 0;
	qsort(v->order, v->norder, sizeof(*v->order), compare_places);
	return 0;
}

/* -- checking ---------------------------------------------------------------------- */

/* Results of reading every record once at open. */
struct read_scan {
	uint64_t last;
	bool sorted, compressed, inflated, no_memory;
	size_t n; /* number of records that are returned to callers */
	uint64_t first_ns[PERFDATA_MAX_ATTRS], last_ns[PERFDATA_MAX_ATTRS];
};

static void count_record(struct perfdata *p, struct read_scan *s, const struct perfdata_record *r,
			 uint32_t event, uint16_t misc)
{
	s->n++;
	s->sorted &= r->time_ns >= s->last;
	s->last = r->time_ns;
	if (r->kind == PERFDATA_MAP && r->kernel && r->map.build_id && !p->kernel_id_len &&
	    !strncmp(r->map.path, PERFDATA_KERNEL_DSO, strlen(PERFDATA_KERNEL_DSO))) {
		p->kernel_id_len = r->map.build_id_len;
		memcpy(p->kernel_id, r->map.build_id, r->map.build_id_len);
	}
	if (r->kind == PERFDATA_LOST) {
		p->nlost += r->lost;
	} else if (r->kind == PERFDATA_SAMPLE || r->kind == PERFDATA_MARKER) {
		p->events[event].samples++;
		p->has_stacks |= r->sample.stack && r->sample.regs;
		p->priv->groups |= !p->ours && r->sample.values;
		p->has_idle |=
			p->ours && r->kind == PERFDATA_SAMPLE && (misc & PERFDATA_MISC_EXACT_IP);
		if (!s->first_ns[event] || r->time_ns < s->first_ns[event])
			s->first_ns[event] = r->time_ns;
		if (r->time_ns > s->last_ns[event])
			s->last_ns[event] = r->time_ns;
	}
}

/*
 * Checks every record once, finds the end of the readable part, and whether the records are sorted.
 */
static void scan_records(struct perfdata *p, struct read_scan *s)
{
	struct perfdata_private *v = p->priv;
	uint64_t off = v->data_off;

	perfdata_chains_reset(v);
	while (off < v->data_end) {
		struct cursor c = perfdata_record_at(v, off);
		uint64_t extra = perfdata_record_extra(v, c);
		struct cursor h = c;
		struct perfdata_record r;
		enum perfdata_parsed got;
		uint32_t event, type;
		size_t len = c.len;

		release_before(v, off);
		if (c.bad || len > v->data_end - off || extra > v->data_end - off - len) {
			perfdata_mark_partial(p,
					      "damaged or cut at byte %" PRIu64 " of %" PRIu64
					      ": what comes before is shown",
					      off, v->data_end);
			break;
		}
		type = cursor_u32(&h);
		if (perfdata_is_compressed(type) && s->inflated) {
			perfdata_mark_partial(p,
					      "compressed twice at byte %" PRIu64
					      ": what comes before is shown",
					      off);
			break;
		}
		if (perfdata_is_compressed(type)) {
			s->compressed = true;
			return;
		}
		/*
		 * An unfinished file of kvmprof without a directory: perf does not write such long
		 * rounds.
		 */
		if (p->partial && !p->version[0] && len > PERFDATA_RECORD_HEADER &&
		    type == PERFDATA_RECORD_FINISHED_ROUND)
			p->ours = true;
		got = perfdata_parse(v, &c, &r, &event);
		if (got == PERFDATA_PARSED_BAD) {
			perfdata_mark_partial(p,
					      "bad record at byte %" PRIu64
					      ": what comes before is shown",
					      off);
			break;
		}
		off += len + extra;
		if (type >= PERFDATA_RECORD_USER_TYPE_START ? type >= PERFDATA_RECORD_USER_UNKNOWN
							    : type >= PERFDATA_RECORD_UNKNOWN) {
			if (!v->unknown++)
				v->unknown_type = type;
		}
		if (got == PERFDATA_PARSED && r.kind == PERFDATA_DEFERRED)
			s->no_memory |= perfdata_chains_add(v, &r) < 0;
		else if (got == PERFDATA_PARSED)
			count_record(p, s, &r, event, cursor_u16(&h));
	}
	v->data_end = off;
	v->released = 0;
}

/* Reads the attributes and features of a pipe, which may be anywhere in it; damage ends them. */
static int scan_pipe(struct perfdata *p, const char *name, struct err *e)
{
	struct perfdata_private *v = p->priv;
	uint64_t off = v->data_off;

	while (off < v->data_end) {
		struct cursor c = perfdata_record_at(v, off);
		uint64_t extra = perfdata_record_extra(v, c);
		int ret;

		if (c.bad || extra > v->data_end - off - c.len)
			return 0;
		ret = perfdata_pipe_record(p, name, c, e);
		if (ret)
			return ret;
		off += c.len + extra;
	}
	return 0;
}

/* -- choosing an event ------------------------------------------------------------- */

static int no_such_event(const struct perfdata *p, const char *name, const char *event,
			 struct err *e)
{
	char list[256] = "";

	for (uint32_t i = 0, at = 0; i < p->nevents && at < sizeof(list); i++)
		at += (uint32_t)snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "",
					 p->events[i].name);
	return err_set(e, ENOENT, "%s: has no event '%s': there is %s", name, event,
		       list[0] ? list : "one without a name");
}

static int choose_event(struct perfdata *p, const char *name, const char *event,
			const struct read_scan *s, struct err *e)
{
	struct perfdata_private *v = p->priv;
	uint32_t i = 0;

	if (event)
		while (i < p->nevents && strcmp(p->events[i].name, event) != 0)
			i++;
	else
		/* Choose the markers' event only if the caller names it. */
		while (i < p->nevents && (!p->events[i].samples || v->layout[i].marker))
			i++;
	if (i == p->nevents && event)
		return no_such_event(p, name, event, e);
	if (i == p->nevents)
		i = 0;
	p->chosen = v->chosen = i;
	memcpy(p->event, p->events[i].name, sizeof(p->event));
	p->nsamples = p->events[i].samples;
	p->first_ns = s->first_ns[i];
	p->last_ns = s->last_ns[i];
	p->has_cpu = v->layout[i].sample_type & PERFDATA_SAMPLE_CPU;
	p->has_code_page = v->layout[i].sample_type & PERFDATA_SAMPLE_CODE_PAGE_SIZE;
	p->has_raw = v->layout[i].sample_type & PERFDATA_SAMPLE_RAW;
	p->has_data_page = v->layout[i].sample_type & PERFDATA_SAMPLE_DATA_PAGE_SIZE;
	return 0;
}

/*
 * Counts the samples of each event again if they are made of values of counters. The records are in
 * the order in which they will be read. Returns 0, or -EINVAL with the reason.
 */
static int count_groups(struct perfdata *p, const char *name, const char *event,
			struct read_scan *s, struct err *e)
{
	struct perfdata_private *v = p->priv;
	struct perfdata_gain gain[PERFDATA_MAX_ATTRS];
	struct perfdata_record r;
	uint64_t off = v->data_off, end;
	uint32_t of;

	for (uint32_t i = 0; i < p->nevents; i++)
		p->events[i].samples = s->first_ns[i] = s->last_ns[i] = 0;
	perfdata_group_reset(v);
	for (size_t k = 0; v->order ? k < v->norder : off < v->data_end; k++, off = end) {
		uint32_t n = 1;

		if (!read_at(v, v->order ? v->order[k].off : off, &end, &r, &of) ||
		    r.kind != PERFDATA_SAMPLE)
			continue;
		gain[0].event = of;
		if (r.sample.values)
			n = perfdata_group_gains(v, of, &r, gain);
		for (uint32_t i = 0; i < n; i++) {
			of = gain[i].event;
			p->events[of].samples++;
			if (!s->first_ns[of])
				s->first_ns[of] = r.time_ns;
			s->last_ns[of] = r.time_ns;
		}
	}
	perfdata_group_reset(v);
	v->released = 0;
	return choose_event(p, name, event, s, e);
}

/* Marks the file as partial if records of unknown types were skipped. */
static void mark_unread(struct perfdata *p)
{
	const struct perfdata_private *v = p->priv;

	if (v->split && !v->nparts)
		perfdata_mark_partial(p, "was made by perf record --threads: the samples of its "
					 "threads are in files data.0, data.1... beside it, which "
					 "are not there");
	if (v->unknown)
		perfdata_mark_partial(p,
				      "%" PRIu64 " records are of a kind that is not known "
				      "(the first is of type %" PRIu32 "): made by a newer perf?",
				      v->unknown, v->unknown_type);
}

/* -- open and close ----------------------------------------------------------------- */

static int open_bytes(struct perfdata *p, const char *name, const uint8_t *data, size_t len,
		      const char *event, struct err *e)
{
	struct perfdata_private *v = p->priv;
	struct read_scan s = { .sorted = true };
	int ret;

	cursor_init(&v->file, data, len);
	v->records = v->file;
	ret = perfdata_read_header(p, name, e);
	if (ret)
		return ret;
	if (v->pipe) {
		ret = scan_pipe(p, name, e);
		if (ret)
			return ret;
	}
	ret = perfdata_check_layouts(p, name, e);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < v->nlayouts && !p->ours; i++) {
		struct perfdata_layout *l = &v->layout[i];

		l->offcpu = l->marker && !strcmp(p->events[i].name, "offcpu-time");
		l->marker &= !l->offcpu;
	}
	/* An unfinished file of kvmprof has no features yet; its directory identifies it. */
	if (p->partial && !p->version[0] && p->dir)
		p->ours = true;
	if (!v->nparts)
		scan_records(p, &s);
	if (s.compressed || v->nparts) {
		s = (struct read_scan){ .sorted = true, .inflated = true };
		p->nlost = 0;
		v->unknown = 0;
		for (uint32_t i = 0; i < p->nevents; i++)
			p->events[i].samples = 0;
		ret = perfdata_inflate(p, name, e);
		if (!ret)
			scan_records(p, &s);
	}
	v->has_idle = p->has_idle;
	perfdata_find_kernel_id(p);
	/* Features of a pipe are among its records, and perf's files have no totals. */
	if (p->osrelease[0])
		snprintf(p->guest, sizeof(p->guest), "Linux %s", p->osrelease);
	mark_unread(p);
	ret = ret ? ret : choose_event(p, name, event, &s, e);
	if (!ret && s.no_memory)
		ret = err_set(e, ENOMEM, "%s: out of memory for its deferred call chains", name);
	if (!ret && !s.sorted)
		ret = sort_records(v, s.n, e);
	if (!ret && v->groups)
		ret = count_groups(p, name, event, &s, e);
	v->pos = v->data_off;
	return ret;
}

static struct perfdata *create(void)
{
	struct perfdata *p = calloc(1, sizeof(*p));

	if (p) {
		p->changed_s = INT64_MAX;
		p->priv = calloc(1, sizeof(*p->priv));
	}
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
	perfdata_close(p->next_epoch);
	file_map_close(&p->priv->map);
	perfdata_close_parts(p->priv);
	buf_deinit(&p->priv->stream);
	buf_deinit(&p->priv->flat);
	perfdata_chains_deinit(p->priv);
	table_deinit(&p->priv->counts);
	free(p->priv->order);
	free(p->priv->ids);
	free(p->priv->build_ids);
	free(p->priv);
	free(p->dir);
	free(p);
}

int perfdata_open_split(struct perfdata **out, const char *name, const struct cursor *data,
			const struct cursor *part, uint32_t nparts, struct err *e)
{
	struct perfdata *p = create();
	int ret;

	if (!p)
		return err_set(e, ENOMEM, "%s: out of memory", name);
	ret = perfdata_borrow_parts(p, part, nparts, e);
	ret = ret ? ret : open_bytes(p, name, data->base, data->len, NULL, e);
	if (ret)
		perfdata_close(p);
	else
		*out = p;
	return ret;
}

static int open_stream(struct perfdata *p, const char *path, const char *event, struct err *e)
{
	struct buf *b = &p->priv->stream;
	const char *name = strcmp(path, "-") ? path : "standard input";
	cleanup_close int fd =
		strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
	struct stat st;
	int ret;

	if (fd < 0)
		return err_set(e, errno, "%s: cannot open: %s", name, strerror(errno));
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		p->changed_s = st.st_mtime;
	ret = file_read_rest(b, fd, PERFDATA_MAX_STREAM, name, e);
	if (!ret && !b->len)
		ret = err_set(e, EINVAL, "%s: no data was received", name);
	return ret ? ret : open_bytes(p, name, b->data, b->len, event, e);
}

/* Returns the directory of "DIR/data", or NULL if the file is not part of a directory. */
static char *dir_of_data(const char *path)
{
	cleanup_free char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL, other[PATH_MAX];

	if (!slash || slash == dir || strcmp(slash, "/data") != 0)
		return NULL;
	*slash = 0;
	if (snprintf(other, sizeof(other), "%s/kcore_dir", dir) >= (int)sizeof(other) ||
	    access(other, F_OK) != 0)
		return NULL;
	return take_ptr(dir);
}

/* Opens the files data.N beside DIR/data, if the directory is one of perf record --threads. */
static int open_parts_of(struct perfdata *p, const char *file, struct err *e)
{
	const struct file_map *m = &p->priv->map;
	cleanup_free char *dir = strdup(file);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	unsigned int bit = PERFDATA_FEAT_DIR_FORMAT;

	if (!dir)
		return err_set(e, ENOMEM, "%s: out of memory", file);
	if (strcmp(slash ? slash + 1 : dir, "data") != 0)
		return 0;
	/*
	 * Without the feature bit, which is written last, the user must have named the directory
	 * itself.
	 */
	if (!p->dir && (m->len < PERFDATA_HEADER_SIZE ||
			!(m->data[PERFDATA_HDR_FEATURES + bit / 8] >> (bit % 8) & 1)))
		return 0;
	if (slash)
		*slash = '\0';
	return perfdata_open_parts(p, slash ? slash > dir ? dir : "/" : ".", e);
}

static int open_path(struct perfdata *p, const char *path, const char *event, struct err *e)
{
	cleanup_free char *data = NULL;
	const char *file = path;
	struct stat st;
	int ret;

	if (stat(path, &st) < 0 && errno == ENOENT && strcmp(path, "-") != 0)
		return err_set(e, ENOENT,
			       "%s: there is no profile; `kvmprof run` records one, -i FILE "
			       "selects another",
			       path);
	if (!strcmp(path, "-"))
		return open_stream(p, path, event, e);
	if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode))
		return open_stream(p, path, event, e);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		p->dir = strdup(path);
		if (!p->dir || asprintf(&data, "%s/data", path) < 0) {
			data = NULL;
			return err_set(e, ENOMEM, "%s: out of memory", path);
		}
		file = data;
		if (access(file, F_OK) < 0 && errno == ENOENT)
			return err_set(e, ENOENT,
				       "%s: this directory is not a profile: it has no file `data`",
				       path);
	} else {
		p->dir = dir_of_data(path);
	}
	if (stat(file, &st) == 0)
		p->changed_s = st.st_mtime;
	ret = file_map_open(&p->priv->map, file, PERFDATA_MAX_FILE, e);
	if (!ret)
		ret = open_parts_of(p, file, e);
	return ret ? ret : open_bytes(p, path, p->priv->map.data, p->priv->map.len, event, e);
}

static int open_one(struct perfdata **out, const char *path, const char *event, struct err *e)
{
	struct perfdata *p = create();
	int ret;

	if (!p)
		return err_set(e, ENOMEM, "%s: out of memory", path);
	ret = open_path(p, path, event, e);
	if (ret) {
		perfdata_close(p);
		return ret;
	}
	p->own.samples = p->nsamples;
	p->own.first_ns = p->first_ns;
	p->own.last_ns = p->last_ns;
	*out = p;
	return 0;
}

/* -- the profiles of later kernels ---------------------------------------------------------- */

/* Adds the counts of a later kernel's profile to those of the first one. */
static void add_figures(struct perfdata *p, const struct perfdata *later)
{
	p->nsamples += later->nsamples;
	p->nlost += later->nlost;
	for (uint32_t i = 0; i < p->nevents; i++)
		for (uint32_t k = 0; k < later->nevents; k++)
			if (!strcmp(p->events[i].name, later->events[k].name))
				p->events[i].samples += later->events[k].samples;
	if (later->last_ns > p->last_ns)
		p->last_ns = later->last_ns;
	if (later->first_ns && (!p->first_ns || later->first_ns < p->first_ns))
		p->first_ns = later->first_ns;
	p->has_idle |= later->has_idle;
	if (later->partial)
		perfdata_mark_partial(p, "kernel %u: %s", later->epoch, later->message);
}

char *perfdata_epoch_path(const char *dir, uint32_t epoch)
{
	char *path;

	return asprintf(&path, "%s/" PERFDATA_EPOCH_DIR "%u", dir, epoch) < 0 ? NULL : path;
}

/* Opens the profiles of all later kernels. If one cannot be read, the whole profile is partial. */
static int open_later(struct perfdata *p, struct err *e)
{
	struct perfdata *last = p;

	for (uint32_t epoch = 2; p->dir && epoch <= PERFDATA_MAX_EPOCHS; epoch++) {
		cleanup_free char *path = perfdata_epoch_path(p->dir, epoch);
		struct err why = { 0 };
		int ret;

		if (!path)
			return err_nomem(e);
		if (access(path, F_OK) < 0 && errno == ENOENT)
			return 0;
		ret = open_one(&last->next_epoch, path, p->event[0] ? p->event : NULL, &why);
		if (ret == -ENOMEM)
			return err_set(e, ENOMEM, "%s", why.text);
		if (ret) {
			perfdata_mark_partial(p, "kernel %u: %s", epoch, why.text);
			return 0;
		}
		last = last->next_epoch;
		last->epoch = epoch;
		add_figures(p, last);
	}
	return 0;
}

/* Opens the profile of one later kernel. */
static int open_epoch(struct perfdata **out, const char *path, const char *event, uint32_t epoch,
		      struct err *e)
{
	cleanup_free char *dir = dir_of_data(path);
	cleanup_free char *at = perfdata_epoch_path(dir ? dir : path, epoch);
	cleanup_free char *second = perfdata_epoch_path(dir ? dir : path, 2);
	int ret;

	if (!at || !second)
		return err_nomem(e);
	if (access(at, F_OK) < 0)
		return err_set(
			e, ENOENT, "%s: the guest had no kernel %u: %s", path, epoch,
			access(second, F_OK) < 0
				? "the profile has one kernel, which is shown without --epoch"
				: "`kvmprof report` lists those that it had");
	ret = open_one(out, at, event, e);
	if (!ret)
		(*out)->epoch = epoch;
	return ret;
}

int perfdata_open_epoch(struct perfdata **out, const char *path, const char *event, uint32_t epoch,
			struct err *e)
{
	int ret;

	if (epoch > 1)
		return open_epoch(out, path, event, epoch, e);
	ret = open_one(out, path, event, e);
	if (ret)
		return ret;
	(*out)->epoch = 1;
	ret = epoch ? 0 : open_later(*out, e);
	if (ret)
		perfdata_close(*out);
	return ret;
}

int perfdata_open_event(struct perfdata **out, const char *path, const char *event, struct err *e)
{
	return perfdata_open_epoch(out, path, event, 0, e);
}

int perfdata_open(struct perfdata **out, const char *path, struct err *e)
{
	return perfdata_open_event(out, path, NULL, e);
}
