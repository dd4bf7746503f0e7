/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/read_record.h"

#include "profile/format/sink/markers.h"
#include "profile/format/perfdata/format.h"

/* -- samples ----------------------------------------------------------------------- */

static void skip_read_format(struct cursor *c, uint64_t format)
{
	unsigned int times = !!(format & PERFDATA_FORMAT_TOTAL_TIME_ENABLED) +
			     !!(format & PERFDATA_FORMAT_TOTAL_TIME_RUNNING);
	unsigned int each = 1 + !!(format & PERFDATA_FORMAT_ID) + !!(format & PERFDATA_FORMAT_LOST);

	if (format & PERFDATA_FORMAT_GROUP) {
		uint64_t nr = cursor_u64(c);

		/*
		 * A count that does not fit a record makes the skip below fail; this avoids an
		 * overflow.
		 */
		if (nr > PERFDATA_RECORD_MAX)
			nr = PERFDATA_RECORD_MAX;
		cursor_skip(c, 8 * (times + nr * each));
	} else {
		cursor_skip(c, 8u * (times + each));
	}
}

static void parse_branches(struct cursor *c, uint64_t branch_type, struct perfdata_record *r)
{
	uint64_t nr = cursor_u64(c);
	unsigned int each = 24;

	if (branch_type & PERFDATA_BRANCH_HW_INDEX)
		cursor_skip(c, 8);
	if (branch_type & PERFDATA_BRANCH_COUNTERS)
		each += 8;
	/* Avoid an overflow, as above. */
	nr = nr < PERFDATA_RECORD_MAX ? nr : PERFDATA_RECORD_MAX;
	if (branch_type & PERFDATA_BRANCH_CALL_STACK && cursor_left(c) >= nr * each) {
		r->sample.branches = c->base + c->pos;
		r->sample.nbranches = (uint32_t)nr;
	}
	cursor_skip(c, nr * each);
}

/* Returns the registers of a 64-bit program, or NULL; skips those of other programs. */
static const uint8_t *parse_regs(struct cursor *c, uint64_t mask)
{
	uint64_t abi = cursor_u64(c);
	const uint8_t *regs;

	if (!abi) /* none: a kernel thread */
		return NULL;
	regs = cursor_bytes(c, 8u * (size_t)__builtin_popcountll(mask));
	if (abi & PERFDATA_REGS_ABI_SIMD) {
		uint64_t vectors = cursor_u16(c), vector_words = cursor_u16(c);
		uint64_t masks = cursor_u16(c), mask_words = cursor_u16(c);

		cursor_skip(c, 8 * (vectors * vector_words + masks * mask_words));
	}
	return abi & PERFDATA_REGS_ABI_64 ? regs : NULL;
}

/* The copy has the requested size; after it comes the number of bytes that were filled. */
static void parse_stack(struct cursor *c, struct perfdata_record *r)
{
	uint64_t size = cursor_u64(c), filled;
	const uint8_t *stack = cursor_bytes(c, size);

	if (!size)
		return;
	filled = cursor_u64(c);
	if (!stack || c->bad || filled > size)
		return;
	r->sample.stack = stack;
	r->sample.stack_len = (uint32_t)filled;
}

/* The fields after the call chain that the reader uses. */
#define WITH_TAIL                                                                         \
	(PERFDATA_SAMPLE_RAW | PERFDATA_SAMPLE_BRANCH_STACK | PERFDATA_SAMPLE_REGS_USER | \
	 PERFDATA_SAMPLE_STACK_USER | PERFDATA_SAMPLE_DATA_PAGE_SIZE |                    \
	 PERFDATA_SAMPLE_CODE_PAGE_SIZE)

/* Parses the fields behind the call chain. */
static void parse_tail(const struct perfdata_layout *l, struct cursor *c, struct perfdata_record *r)
{
	uint64_t type = l->sample_type;

	if (type & PERFDATA_SAMPLE_RAW) {
		r->sample.raw_len = cursor_u32(c);
		r->sample.raw = cursor_bytes(c, r->sample.raw_len);
	}
	if (type & PERFDATA_SAMPLE_BRANCH_STACK)
		parse_branches(c, l->branch_type, r);
	if (type & PERFDATA_SAMPLE_REGS_USER) {
		r->sample.regs = parse_regs(c, l->regs_user);
		r->sample.regs_mask = l->regs_user;
	}
	if (type & PERFDATA_SAMPLE_STACK_USER)
		parse_stack(c, r);
	if (type & (PERFDATA_SAMPLE_WEIGHT | PERFDATA_SAMPLE_WEIGHT_STRUCT))
		cursor_skip(c, 8);
	if (type & PERFDATA_SAMPLE_DATA_SRC)
		cursor_skip(c, 8);
	if (type & PERFDATA_SAMPLE_TRANSACTION)
		cursor_skip(c, 8);
	if (type & PERFDATA_SAMPLE_REGS_INTR)
		(void)parse_regs(c, l->regs_intr);
	if (type & PERFDATA_SAMPLE_PHYS_ADDR)
		cursor_skip(c, 8);
	if (type & PERFDATA_SAMPLE_CGROUP)
		cursor_skip(c, 8);
	if (type & PERFDATA_SAMPLE_DATA_PAGE_SIZE)
		r->sample.data_page = cursor_u64(c);
	if (type & PERFDATA_SAMPLE_CODE_PAGE_SIZE)
		r->sample.code_page = cursor_u64(c);
}

/* Parses "KIND: NAME", terminated; a record that is not such a marker remains a sample. */
static void parse_marker(struct cursor c, struct perfdata_record *r)
{
	uint32_t size = cursor_u32(&c);
	struct cursor text = cursor_window(&c, c.pos, size);
	const char *s = text.bad ? NULL : cursor_str_at(&text, 0);
	const char *colon = s ? strstr(s, ": ") : NULL;
	enum marker_kind kind;

	if (!colon || !markers_kind_parse(s, (size_t)(colon - s), &kind))
		return;
	r->kind = PERFDATA_MARKER;
	r->marker_kind = (uint8_t)kind;
	r->marker_name = colon + 2;
}

/*
 * A sample of perf record --off-cpu (perf 6.15 and later) is the output of a BPF program, which has
 * the real sample in RAW: u32 pid, tid, u64 period, nr, chain, cgroup (tools/perf/util/evsel.c,
 * __set_offcpu_sample).
 */
static void parse_offcpu(struct perfdata_record *r)
{
	struct cursor c;
	uint32_t pid, tid;
	uint64_t period, nr, first;

	if (!r->sample.raw)
		return;
	cursor_init(&c, r->sample.raw, r->sample.raw_len);
	pid = cursor_u32(&c);
	tid = cursor_u32(&c);
	period = cursor_u64(&c);
	nr = cursor_u64(&c);
	if (c.bad || nr > cursor_left(&c) / 8)
		return;
	r->pid = pid;
	r->tid = tid;
	r->sample.period = period;
	r->sample.nr = (uint32_t)nr;
	r->sample.chain = c.base + c.pos;
	first = cursor_u64(&c);
	if (nr > 1)
		r->sample.ip = cursor_u64(&c);
	r->kernel = first == PERFDATA_CONTEXT_KERNEL;
}

static bool parse_sample(const struct perfdata_layout *l, struct cursor *c,
			 struct perfdata_record *r)
{
	uint64_t type = l->sample_type;

	r->kind = PERFDATA_SAMPLE;
	r->sample.period = l->period;
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
	if (type & PERFDATA_SAMPLE_READ) {
		size_t start = c->pos;

		skip_read_format(c, l->read_format);
		r->sample.values = c->bad ? NULL : c->base + start;
		r->sample.values_len = (uint32_t)(c->pos - start);
	}
	if (type & PERFDATA_SAMPLE_CALLCHAIN) {
		uint64_t nr = cursor_u64(c);

		if (nr > cursor_left(c) / 8)
			return false;
		r->sample.nr = (uint32_t)nr;
		r->sample.chain = cursor_bytes(c, nr * 8);
	}
	if (l->marker && !c->bad)
		parse_marker(*c, r);
	if (type & WITH_TAIL)
		parse_tail(l, c, r);
	if (l->offcpu && !c->bad)
		parse_offcpu(r);
	return !c->bad;
}

/* -- whose record ------------------------------------------------------------------ */

uint8_t perfdata_owner_of(uint16_t misc)
{
	static const uint8_t owner[PERFDATA_MISC_CPUMODE_MASK + 1] = {
		[0] = PERFDATA_NO_MODE,
		[PERFDATA_MISC_KERNEL] = PERFDATA_RECORDED,
		[PERFDATA_MISC_USER] = PERFDATA_RECORDED,
		[PERFDATA_MISC_HYPERVISOR] = PERFDATA_HYPERVISOR,
		[PERFDATA_MISC_GUEST_KERNEL] = PERFDATA_GUEST_KERNEL,
		[PERFDATA_MISC_GUEST_USER] = PERFDATA_GUEST_USER,
		[6] = PERFDATA_NO_MODE,
		[7] = PERFDATA_NO_MODE,
	};

	return owner[misc & PERFDATA_MISC_CPUMODE_MASK];
}

bool perfdata_event_of_id(const struct perfdata_private *v, uint64_t id, uint32_t *event)
{
	size_t lo = 0, hi = v->nids;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (v->ids[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == v->nids || v->ids[lo].id != id)
		return false;
	*event = v->ids[lo].event;
	return true;
}

static uint32_t event_of_id(struct perfdata_private *v, uint64_t id)
{
	/* perf's own records have id 0: their layout is the first event's. */
	if (!id)
		return 0;
	if (id == v->last_id)
		return v->last_event;
	if (!perfdata_event_of_id(v, id, &v->last_event))
		v->last_event = 0;
	v->last_id = id;
	return v->last_event;
}

/*
 * Returns the event of a record; c is after the record's header. All events have the id at the same
 * place, see perfdata_check_layouts().
 */
static uint32_t event_of(struct perfdata_private *v, const struct cursor *c, bool sample)
{
	uint64_t type = v->layout[0].sample_type, off;
	struct cursor at = *c;

	if (v->nlayouts < 2)
		return 0;
	if (type & PERFDATA_SAMPLE_IDENTIFIER) {
		off = sample ? c->pos : c->len - 8;
	} else if (type & PERFDATA_SAMPLE_ID) {
		unsigned int before =
			!!(type & PERFDATA_SAMPLE_TID) + !!(type & PERFDATA_SAMPLE_TIME);
		unsigned int behind =
			1 + !!(type & PERFDATA_SAMPLE_STREAM_ID) + !!(type & PERFDATA_SAMPLE_CPU);

		if (sample)
			off = c->pos + 8u * (before + !!(type & PERFDATA_SAMPLE_IP) +
					     !!(type & PERFDATA_SAMPLE_ADDR));
		else
			off = c->len - 8u * behind;
	} else {
		return 0;
	}
	/* If the record is too short, off wraps around, and the seek fails. */
	cursor_seek(&at, off);
	return event_of_id(v, cursor_u64(&at));
}

/* Parses the fields at the end of a record that is not a sample; `body` is cut where they begin. */
static void parse_sample_id(const struct perfdata_layout *l, struct cursor *body,
			    struct perfdata_record *r)
{
	uint64_t type = l->sample_type;
	size_t len = 0;
	struct cursor c;

	if (!l->sample_id_all)
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
	uint8_t id_len = 0;

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
			/* Shorter ids are zero-padded; longer ones do not exist. */
			if (id_len == 0 || id_len > 20)
				id = NULL;
		} else {
			r->map.major = cursor_u32(c);
			r->map.minor = cursor_u32(c);
			r->map.ino = cursor_u64(c);
			r->map.generation = cursor_u64(c);
		}
		cursor_skip(c, 8);
	}
	r->map.build_id = id;
	r->map.build_id_len = id ? id_len : 0;
	r->map.path = c->bad ? NULL : cursor_str_at(c, c->pos);
	return r->map.path != NULL;
}

/* Stores the chain as a sample's, and its cookie as the period. */
static bool parse_deferred(struct cursor *c, struct perfdata_record *r)
{
	uint64_t nr;

	r->kind = PERFDATA_DEFERRED;
	r->sample.period = cursor_u64(c);
	nr = cursor_u64(c);
	if (c->bad || nr > cursor_left(c) / 8)
		return false;
	r->sample.nr = (uint32_t)nr;
	r->sample.chain = cursor_bytes(c, nr * 8);
	return true;
}

enum perfdata_parsed perfdata_parse(struct perfdata_private *v, struct cursor *c,
				    struct perfdata_record *r, uint32_t *event)
{
	uint32_t type = cursor_u32(c);
	uint16_t misc = cursor_u16(c);
	unsigned int mode = misc & PERFDATA_MISC_CPUMODE_MASK;
	bool ok = true;
	const struct perfdata_layout *l;

	cursor_u16(c);
	memset(r, 0, sizeof(*r));
	*event = 0;
	if (c->bad || type >= PERFDATA_RECORD_USER_TYPE_START)
		return PERFDATA_PARSED_OTHER;
	*event = event_of(v, c, type == PERFDATA_RECORD_SAMPLE);
	l = &v->layout[*event];
	r->kernel = mode == PERFDATA_MISC_KERNEL;
	r->owner = perfdata_owner_of(misc);
	switch (type) {
	case PERFDATA_RECORD_SAMPLE:
		ok = parse_sample(l, c, r);
		/* kvmprof's markers have no mode. */
		if (l->marker && mode == 0)
			r->owner = PERFDATA_RECORDED;
		r->idle = v->has_idle ? !(misc & PERFDATA_MISC_EXACT_IP) : r->pid == 0;
		break;
	case PERFDATA_RECORD_CALLCHAIN_DEFERRED:
		parse_sample_id(l, c, r);
		ok = parse_deferred(c, r);
		break;
	case PERFDATA_RECORD_COMM:
		parse_sample_id(l, c, r);
		r->kind = PERFDATA_COMM;
		r->exec = misc & PERFDATA_MISC_COMM_EXEC;
		r->pid = cursor_u32(c);
		r->tid = cursor_u32(c);
		r->comm = c->bad ? NULL : cursor_str_at(c, c->pos);
		ok = r->comm != NULL;
		break;
	case PERFDATA_RECORD_MMAP:
	case PERFDATA_RECORD_MMAP2:
		parse_sample_id(l, c, r);
		ok = parse_map(c, type == PERFDATA_RECORD_MMAP2, misc, r);
		break;
	case PERFDATA_RECORD_FORK:
	case PERFDATA_RECORD_EXIT:
		parse_sample_id(l, c, r);
		r->kind = type == PERFDATA_RECORD_FORK ? PERFDATA_FORK : PERFDATA_EXIT;
		r->pid = cursor_u32(c);
		r->fork.ppid = cursor_u32(c);
		r->tid = cursor_u32(c);
		r->fork.ptid = cursor_u32(c);
		break;
	case PERFDATA_RECORD_LOST:
	case PERFDATA_RECORD_LOST_SAMPLES:
		parse_sample_id(l, c, r);
		r->kind = PERFDATA_LOST;
		if (type == PERFDATA_RECORD_LOST)
			cursor_skip(c, 8); /* event id */
		r->lost = cursor_u64(c);
		break;
	default:
		return PERFDATA_PARSED_OTHER;
	}
	return ok && !c->bad ? PERFDATA_PARSED : PERFDATA_PARSED_BAD;
}

struct cursor perfdata_record_at(const struct perfdata_private *v, uint64_t off)
{
	struct cursor c = cursor_window(&v->records, off, PERFDATA_RECORD_HEADER);
	uint16_t size;

	cursor_skip(&c, 6);
	size = cursor_u16(&c);
	c = cursor_window(&v->records, off, size);
	c.bad |= size < PERFDATA_RECORD_HEADER;
	return c;
}

uint64_t perfdata_record_extra(const struct perfdata_private *v, struct cursor c)
{
	uint32_t type = cursor_u32(&c);
	uint64_t len;

	if (type == PERFDATA_RECORD_AUXTRACE) {
		cursor_skip(&c, 4);
		len = cursor_u64(&c);
	} else if (type == PERFDATA_RECORD_HEADER_TRACING_DATA && v->pipe) {
		cursor_skip(&c, 4);
		len = ((uint64_t)cursor_u32(&c) + 7) & ~7ull;
	} else {
		return 0;
	}
	return c.bad ? UINT64_MAX : len;
}
