/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/read_header.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read_record.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- header and features ----------------------------------------------------------- */

static void copy_text(char *dst, size_t size, const uint8_t *src, size_t len)
{
	cleanup_free char *text = strndup((const char *)src, len);

	utf8_clean(dst, size, text ? text : "");
}

static void read_string(struct cursor *c, char *dst, size_t size)
{
	uint32_t len = cursor_u32(c);
	const uint8_t *s = cursor_bytes(c, len);

	if (s)
		copy_text(dst, size, s, len);
}

/*
 * Returns the length of a build id if the file does not contain it (before Linux 5.12). Such ids
 * are padded with zeros to 20 bytes: those of lld have 8 bytes, MD5 ids of gcc have 16.
 */
static uint8_t length_of_old_id(const uint8_t *id)
{
	static const uint8_t zero[12];

	if (!id || memcmp(id + 16, zero, 4) != 0)
		return 20;
	return memcmp(id + 8, zero, 12) != 0 ? 16 : 8;
}

/*
 * Reads the entry of the table at c's position. Returns false at the end or if the entry is
 * invalid.
 */
static bool add_build_id(struct perfdata *p, struct cursor *c)
{
	struct perfdata_private *v = p->priv;
	struct perfdata_build_id_entry b = { 0 };
	size_t start = c->pos;
	uint16_t misc, size;

	if (cursor_left(c) <= 36 || p->nbuild_ids >= PERFDATA_MAX_BUILD_IDS)
		return false;
	cursor_u32(c);
	misc = cursor_u16(c);
	size = cursor_u16(c);
	cursor_u32(c); /* pid */
	b.id = cursor_bytes(c, 20);
	b.len = cursor_u8(c);
	if (!(misc & PERFDATA_MISC_BUILD_ID_SIZE))
		b.len = length_of_old_id(b.id);
	b.name = cursor_str_at(c, start + 36);
	if (c->bad || size < 37 || !b.name || b.len == 0 || b.len > 20)
		return false;
	b.kernel = (misc & PERFDATA_MISC_CPUMODE_MASK) == PERFDATA_MISC_KERNEL;
	b.owner = perfdata_owner_of(misc);
	if (ARRAY_ROOM(v->build_ids, p->nbuild_ids, v->build_ids_cap))
		return false;
	p->build_ids = v->build_ids;
	v->build_ids[p->nbuild_ids++] = b;
	cursor_seek(c, start + size);
	return true;
}

/* Reads the events' names, in the order of their attributes. */
static void read_event_desc(struct perfdata *p, struct cursor *c)
{
	uint32_t n = cursor_u32(c), attr_size = cursor_u32(c);

	for (uint32_t i = 0; i < n && i < PERFDATA_MAX_ATTRS && !c->bad; i++) {
		uint32_t ids;

		cursor_skip(c, attr_size);
		ids = cursor_u32(c);
		if (c->bad)
			return;
		read_string(c, p->events[i].name, sizeof(p->events[i].name));
		cursor_skip(c, 8ull * ids);
	}
}

static void read_feature(struct perfdata *p, unsigned int feature, struct cursor c)
{
	switch (feature) {
	case PERFDATA_FEAT_BUILD_ID:
		while (add_build_id(p, &c))
			;
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
	case PERFDATA_FEAT_CMDLINE:
		p->priv->command = c;
		break;
	case PERFDATA_FEAT_NRCPUS:
		p->ncpus = cursor_u32(&c);
		break;
	case PERFDATA_FEAT_EVENT_DESC:
		read_event_desc(p, &c);
		break;
	case PERFDATA_FEAT_DIR_FORMAT:
		p->priv->split = true;
		break;
	case PERFDATA_FEAT_OLD_TOTALS:
		p->json = (const char *)c.base;
		p->json_len = c.len;
		break;
	}
}

int perfdata_command(const struct perfdata *p, char ***words)
{
	struct cursor c = p->priv->command;
	uint32_t n = c.len ? cursor_u32(&c) : 0;
	size_t room = cursor_left(&c) + PERFDATA_MAX_WORDS;
	char *text;

	if (!n || n > PERFDATA_MAX_WORDS)
		return 0;
	*words = malloc((n + 1) * sizeof(**words) + room);
	if (!*words)
		return -ENOMEM;
	text = (char *)&(*words)[n + 1];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = cursor_u32(&c);
		const uint8_t *s = cursor_bytes(&c, len);

		(*words)[i] = text;
		if (!s) {
			free(*words);
			return 0;
		}
		len = (uint32_t)strnlen((const char *)s, len);
		memcpy(text, s, len);
		text[len] = '\0';
		text += len + 1;
	}
	(*words)[n] = NULL;
	return (int)n;
}

struct json_t *perfdata_totals(const struct perfdata *p)
{
	json_t *t = p->json ? json_loadb(p->json, p->json_len, JSON_DISABLE_EOF_CHECK, NULL) : NULL;

	if (json_is_object(t))
		return t;
	json_decref(t);
	return NULL;
}

/* Recognises the embedded guest by its name in `image` (KERNEL_DEMO_NAME of profile/record/run). */
static void read_guest(struct perfdata *p, const char *image)
{
	if (image && !strcmp(image, "(embedded demo guest)"))
		snprintf(p->guest, sizeof(p->guest), "embedded demo guest");
}

/*
 * "profile":{"complete":false,"samples":N,"missing":N,"error":"TEXT"}: see perfdata_put_totals();
 * "engine":{"counts":true}: see summary_engine().
 */
static void read_totals(struct perfdata *p)
{
	json_t *totals = perfdata_totals(p);
	json_int_t samples, missing;
	const char *error;
	char text[128];
	int complete;

	if (totals &&
	    !json_unpack(totals, "{s:{s:b,s:I,s:I,s:s}}", "profile", "complete", &complete,
			 "samples", &samples, "missing", &missing, "error", &error) &&
	    !complete) {
		copy_text(text, sizeof(text), (const uint8_t *)error, strlen(error));
		perfdata_mark_partial(p,
				      "is not complete: writing it failed (%s): %lld of %llu "
				      "samples are missing",
				      text, missing,
				      (unsigned long long)samples + (unsigned long long)missing);
	}
	read_guest(p, json_string_value(json_object_get(totals, "image")));
	p->counted = json_is_true(json_object_get(json_object_get(totals, "engine"), "counts"));
	json_decref(totals);
}

/*
 * Returns true if the file has features. perf and kvmprof always write some, at the end: without
 * any, the writer was interrupted.
 */
static bool has_features(struct cursor header)
{
	uint64_t all = 0;

	cursor_seek(&header, PERFDATA_HDR_FEATURES);
	for (unsigned int i = 0; i < 4; i++)
		all |= cursor_u64(&header);
	return all != 0;
}

/* Finds the totals at off, the end of the features' index; most files have none. */
static void find_totals(struct perfdata *p, uint64_t off)
{
	struct cursor c = cursor_window(&p->priv->file, off, PERFDATA_TOTALS_HEADER);
	const uint8_t *magic = cursor_bytes(&c, 8);
	uint64_t len = cursor_u64(&c);

	if (!magic || memcmp(magic, PERFDATA_TOTALS_MAGIC, 8) != 0)
		return;
	c = cursor_window(&p->priv->file, off + PERFDATA_TOTALS_HEADER, len);
	if (c.bad) {
		perfdata_mark_partial(p, "cut: the totals are missing");
		return;
	}
	p->json = (const char *)c.base;
	p->json_len = c.len;
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
		perfdata_mark_partial(p, "cut: the description behind the samples is missing");
		return;
	}
	find_totals(p, index_off + 16ull * n);
	for (unsigned int f = 0; f < PERFDATA_FEATURE_BITS; f++) {
		struct cursor c;

		if (!(bits[f / 64] >> (f % 64) & 1))
			continue;
		uint64_t off = cursor_u64(&index), len = cursor_u64(&index);

		c = cursor_window(&p->priv->file, off, len);
		if (c.bad)
			perfdata_mark_partial(p, "cut: feature %u is missing", f);
		else
			read_feature(p, f, c);
	}
}

/* -- the kernel's build id --------------------------------------------------------- */

/*
 * Returns true if an entry of the table is the kernel's own: modules are files *.ko, or `[NAME]`.
 */
static bool is_kernel_entry(const struct perfdata_build_id_entry *b)
{
	const char *base = strrchr(b->name, '/');

	if (!b->kernel || !b->name[0])
		return false;
	if (b->name[0] == '[')
		return !strncmp(b->name, "[kernel", 7);
	return !strstr(base ? base : b->name, ".ko");
}

void perfdata_find_kernel_id(struct perfdata *p)
{
	const struct perfdata_build_id_entry *found = NULL;

	for (size_t i = 0; i < p->nbuild_ids && !p->kernel_id_len; i++) {
		const struct perfdata_build_id_entry *b = &p->build_ids[i];

		if (is_kernel_entry(b) && (!found || !strcmp(b->name, PERFDATA_KERNEL_DSO)))
			found = b;
	}
	if (!found)
		return;
	p->kernel_id_len = found->len;
	memcpy(p->kernel_id, found->id, found->len);
}

/* -- attributes -------------------------------------------------------------------- */

static uint64_t u64_at(const struct cursor *attr, uint64_t off)
{
	struct cursor c = *attr;

	/* Older attrs are shorter: missing fields are 0. */
	cursor_seek(&c, off);
	return cursor_u64(&c);
}

static int add_ids(struct perfdata_private *v, const char *name, uint32_t event, struct cursor c,
		   struct err *e)
{
	size_t n = c.len / 8, want = v->nids + n;

	if (c.bad || n > PERFDATA_MAX_IDS || want > PERFDATA_MAX_IDS)
		return err_set(e, EINVAL, "%s: bad list of ids of event %u", name, event);
	if (ARRAY_FIT(v->ids, want, v->ids_cap))
		return err_set(e, ENOMEM, "%s: out of memory", name);
	while (n--)
		v->ids[v->nids++] = (struct perfdata_id){ cursor_u64(&c), event };
	return 0;
}

/* attr covers the bytes of the attr only. */
static int add_layout(struct perfdata *p, const char *name, struct cursor attr, struct cursor ids,
		      struct err *e)
{
	struct perfdata_private *v = p->priv;
	struct perfdata_layout *l;
	struct cursor c = attr;
	uint64_t period, flags, config;
	uint32_t type;

	if (v->nlayouts == PERFDATA_MAX_ATTRS)
		return err_set(e, E2BIG, "%s: more than %u events", name, PERFDATA_MAX_ATTRS);
	l = &v->layout[v->nlayouts];
	type = cursor_u32(&c);
	cursor_skip(&c, 4);
	config = cursor_u64(&c);
	period = cursor_u64(&c);
	*l = (struct perfdata_layout){
		.branch_type = u64_at(&attr, PERFDATA_ATTR_BRANCH_TYPE),
		.regs_user = u64_at(&attr, PERFDATA_ATTR_REGS_USER),
		.regs_intr = u64_at(&attr, PERFDATA_ATTR_REGS_INTR),
	};
	l->sample_type = cursor_u64(&c);
	l->read_format = cursor_u64(&c);
	flags = cursor_u64(&c);
	if (c.bad)
		return err_set(e, EINVAL, "%s: cut inside the attributes", name);
	l->period = flags & PERFDATA_ATTR_FREQ || !period ? 1 : period;
	l->marker = type == PERFDATA_TYPE_SOFTWARE && config == PERFDATA_COUNT_SW_BPF_OUTPUT &&
		    l->sample_type & PERFDATA_SAMPLE_RAW;
	l->sample_id_all = flags & PERFDATA_ATTR_SAMPLE_ID_ALL;
	l->inherit = flags & PERFDATA_ATTR_INHERIT;
	p->nevents = v->nlayouts + 1;
	return add_ids(v, name, v->nlayouts++, ids, e);
}

static int compare_ids(const void *a, const void *b)
{
	const struct perfdata_id *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->event < y->event ? -1 : x->event > y->event;
}

/*
 * Records of several events contain an id, whose place must not depend on the event: either it is
 * the first and last field (IDENTIFIER), or all samples have the same layout.
 */
int perfdata_check_layouts(struct perfdata *p, const char *name, struct err *e)
{
	struct perfdata_private *v = p->priv;
	const struct perfdata_layout *first = v->layout;

	if (!v->nlayouts)
		return err_set(e, EINVAL, "%s: cut before the description of its events", name);
	for (uint32_t i = 1; i < v->nlayouts; i++) {
		const struct perfdata_layout *l = &v->layout[i];
		uint64_t both = first->sample_type & l->sample_type;

		if (l->sample_id_all != first->sample_id_all ||
		    (!(both & PERFDATA_SAMPLE_IDENTIFIER) &&
		     (l->sample_type != first->sample_type ||
		      l->read_format != first->read_format)))
			return err_set(e, EINVAL,
				       "%s: has several events whose samples cannot be told "
				       "apart (no identifier)",
				       name);
	}
	if (v->nids)
		qsort(v->ids, v->nids, sizeof(*v->ids), compare_ids);
	for (uint32_t i = 0; i < p->nevents; i++)
		if (!p->events[i].name[0] && p->nevents > 1)
			snprintf(p->events[i].name, sizeof(p->events[i].name), "event-%u", i + 1);
	return 0;
}

static int read_attrs(struct perfdata *p, const char *name, uint64_t off, uint64_t len,
		      uint64_t entry, struct err *e)
{
	struct perfdata_private *v = p->priv;
	uint64_t n = entry ? len / entry : 0;
	int ret = 0;

	if (entry < PERFDATA_ATTR_MIN + 16 || entry > 4096 || n == 0 || n > PERFDATA_MAX_ATTRS)
		return err_set(e, EINVAL,
			       "%s: bad perf.data header: %" PRIu64
			       " bytes of attributes of %" PRIu64,
			       name, len, entry);
	for (uint64_t i = 0; i < n && !ret; i++) {
		struct cursor attr = cursor_window(&v->file, off + i * entry, entry - 16);
		struct cursor section = cursor_window(&v->file, off + i * entry + entry - 16, 16);
		uint64_t ids_off = cursor_u64(&section), ids_len = cursor_u64(&section);

		if (attr.bad || section.bad)
			return err_set(e, EINVAL, "%s: cut inside the attributes", name);
		ret = add_layout(p, name, attr, cursor_window(&v->file, ids_off, ids_len), e);
	}
	return ret;
}

/* -- header ------------------------------------------------------------------------ */

int perfdata_pipe_record(struct perfdata *p, const char *name, struct cursor c, struct err *e)
{
	struct cursor whole = c;
	uint32_t type = cursor_u32(&c), size;
	uint64_t feature;

	switch (type) {
	case PERFDATA_RECORD_HEADER_ATTR:
		cursor_skip(&c, 8);
		size = cursor_u32(&c);
		if (c.bad || size < PERFDATA_ATTR_MIN || size > c.len - PERFDATA_RECORD_HEADER)
			return err_set(e, EINVAL, "%s: bad description of an event", name);
		return add_layout(p, name, cursor_window(&whole, PERFDATA_RECORD_HEADER, size),
				  cursor_window(&whole, PERFDATA_RECORD_HEADER + size,
						c.len - PERFDATA_RECORD_HEADER - size),
				  e);
	case PERFDATA_RECORD_HEADER_BUILD_ID:
		add_build_id(p, &whole);
		return 0;
	case PERFDATA_RECORD_HEADER_FEATURE:
		cursor_skip(&c, 4);
		feature = cursor_u64(&c);
		if (!c.bad && feature < PERFDATA_FEATURE_BITS)
			read_feature(p, (unsigned int)feature,
				     cursor_window(&whole, c.pos, c.len - c.pos));
		return 0;
	default:
		return 0;
	}
}

int perfdata_read_header(struct perfdata *p, const char *name, struct err *e)
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
	if (magic && !memcmp(magic, "\x28\xb5\x2f\xfd", 4))
		return err_set(e, EINVAL,
			       "%s: not a perf.data file, but a compressed archive: unpack it with "
			       "`tar -xf`",
			       name);
	if (!magic || memcmp(magic, PERFDATA_MAGIC, 8))
		return err_set(e, EINVAL, "%s: not a perf.data file (no %s at its beginning)", name,
			       PERFDATA_MAGIC);
	if (size == PERFDATA_PIPE_HEADER_SIZE) {
		v->pipe = true;
		v->data_off = size;
		v->data_end = v->file.len;
		return 0;
	}
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
	if (data_len == 0 || (data_len <= v->file.len - v->data_off && !has_features(v->file)))
		perfdata_mark_partial(
			p, "was not finished (the writer was killed?): what is there is shown");
	if (data_len > v->file.len - v->data_off)
		perfdata_mark_partial(p,
				      "cut: %" PRIu64 " of %" PRIu64 " bytes of records are there",
				      (uint64_t)v->file.len - v->data_off, data_len);
	else if (data_len)
		v->data_end = v->data_off + data_len;
	if (!p->partial)
		read_features(p, v->file, v->data_end);
	if (p->json && p->ours)
		read_totals(p);
	return 0;
}
