/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/read_group.h"

#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read_record.h"

static bool equal_count(const void *a, const void *b, const void *ctx)
{
	const struct perfdata_count *x = a, *y = b;

	(void)ctx;
	return x->id == y->id && x->tid == y->tid;
}

void perfdata_group_reset(struct perfdata_private *v)
{
	table_deinit(&v->counts);
	v->counts = TABLE_OF(struct perfdata_count, equal_count);
}

/* Returns the increase of a counter since its last sample; 0 also if out of memory. */
static uint64_t gain_of(struct perfdata_private *v, uint64_t id, uint32_t tid, uint64_t value)
{
	const struct perfdata_count like = { .id = id, .tid = tid };
	struct perfdata_count *c;
	uint64_t gain;
	uint32_t index;
	bool fresh;

	if (table_add(&v->counts, table_mix(id, tid), &like, &index, &fresh) < 0)
		return 0;
	c = (struct perfdata_count *)v->counts.item + index;
	gain = value - c->value;
	c->value = value;
	return gain;
}

/* One value with the fields that accompany it. */
struct group_value {
	uint64_t value, id;
};

static struct group_value read_value(struct cursor *c, uint64_t format, unsigned int times)
{
	struct group_value x = { .value = cursor_u64(c) };

	cursor_skip(c, 8u * times);
	if (format & PERFDATA_FORMAT_ID)
		x.id = cursor_u64(c);
	if (format & PERFDATA_FORMAT_LOST)
		cursor_skip(c, 8);
	return x;
}

/* Adds an increase to that of its event. Returns the number of events in out. */
static uint32_t add_gain(struct perfdata_gain out[PERFDATA_MAX_ATTRS], uint32_t n,
			 const struct perfdata_gain *gain)
{
	uint32_t i = 0;

	if (!gain->period)
		return n;
	while (i < n && out[i].event != gain->event)
		i++;
	if (i < n)
		out[i].period += gain->period;
	else
		out[n++] = *gain;
	return n;
}

uint32_t perfdata_group_gains(struct perfdata_private *v, uint32_t event,
			      const struct perfdata_record *r,
			      struct perfdata_gain out[PERFDATA_MAX_ATTRS])
{
	const struct perfdata_layout *l = &v->layout[event];
	uint64_t format = l->read_format, nr = 1;
	unsigned int times = !!(format & PERFDATA_FORMAT_TOTAL_TIME_ENABLED) +
			     !!(format & PERFDATA_FORMAT_TOTAL_TIME_RUNNING);
	uint32_t tid = l->inherit && l->sample_type & PERFDATA_SAMPLE_TID ? r->tid : 0, n = 0;
	struct cursor c;

	cursor_init(&c, r->sample.values, r->sample.values_len);
	if (format & PERFDATA_FORMAT_GROUP) {
		nr = cursor_u64(&c);
		cursor_skip(&c, 8u * times);
		times = 0;
	}
	for (uint64_t i = 0; i < nr && !c.bad; i++) {
		struct group_value x = read_value(&c, format, times);
		struct perfdata_gain gain;

		if (c.bad || !perfdata_event_of_id(v, x.id, &gain.event))
			continue;
		gain.period = gain_of(v, x.id, tid, x.value);
		n = add_gain(out, n, &gain);
	}
	return n;
}
