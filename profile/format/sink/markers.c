/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/sink/markers.h"

#include "base/array.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[MARKER_KINDS] = {
	[MARKER_CONSOLE] = "console",	[MARKER_BREAKPOINT] = "breakpoint",
	[MARKER_START] = "start",	[MARKER_STOP] = "stop",
	[MARKER_DELAY] = "delay",	[MARKER_CONTROL] = "control",
	[MARKER_SNAPSHOT] = "snapshot",
};

const char *markers_kind_name(enum marker_kind kind)
{
	return kind < MARKER_KINDS ? kind_names[kind] : "unknown";
}

bool markers_kind_parse(const char *name, size_t len, enum marker_kind *out)
{
	for (unsigned int i = 0; i < MARKER_KINDS; i++) {
		if (strlen(kind_names[i]) == len && !memcmp(name, kind_names[i], len)) {
			*out = (enum marker_kind)i;
			return true;
		}
	}
	return false;
}

void markers_init(struct markers *m)
{
	*m = (struct markers){ 0 };
	pthread_mutex_init(&m->lock, NULL);
}

void markers_deinit(struct markers *m)
{
	free(m->list);
	free(m->fresh);
	pthread_mutex_destroy(&m->lock);
}

void markers_clean_name(char out[MARKER_NAME], const char *name, size_t len)
{
	while (len && (uint8_t)name[0] <= ' ') {
		name++;
		len--;
	}
	while (len && (uint8_t)name[len - 1] <= ' ')
		len--;
	if (len >= MARKER_NAME)
		len = MARKER_NAME - 1;
	for (size_t i = 0; i < len; i++)
		out[i] = name[i] < ' ' || name[i] > '~' ? '?' : name[i];
	out[len] = '\0';
	if (!len)
		memcpy(out, "marker", sizeof("marker"));
}

static void markers_keep(struct markers *m, const struct marker *x)
{
	m->added++;
	if (m->n >= MARKERS_MAX)
		return;
	if (!ARRAY_ROOM(m->list, m->n, m->cap))
		m->list[m->n++] = *x;
	else
		m->lost++;
}

static struct marker markers_make(enum marker_kind kind, const char *name, size_t len,
				  uint64_t time_ns, uint32_t cpu)
{
	struct marker x = { .kind = kind, .time_ns = time_ns, .cpu = cpu };

	markers_clean_name(x.name, name, len);
	return x;
}

void markers_add(struct markers *m, enum marker_kind kind, const char *name, size_t len,
		 uint64_t time_ns, uint32_t cpu)
{
	struct marker x = markers_make(kind, name, len, time_ns, cpu);

	pthread_mutex_lock(&m->lock);
	markers_keep(m, &x);
	if (!ARRAY_ROOM(m->fresh, m->nfresh, m->fresh_cap))
		m->fresh[m->nfresh++] = x;
	else
		m->lost++;
	pthread_mutex_unlock(&m->lock);
}

void markers_note(struct markers *m, enum marker_kind kind, const char *name, size_t len,
		  uint64_t time_ns, uint32_t cpu)
{
	struct marker x = markers_make(kind, name, len, time_ns, cpu);

	pthread_mutex_lock(&m->lock);
	markers_keep(m, &x);
	pthread_mutex_unlock(&m->lock);
}

bool markers_take(struct markers *m, uint64_t before_ns, struct marker *out)
{
	size_t oldest = 0;
	bool found;

	pthread_mutex_lock(&m->lock);
	for (size_t i = 1; i < m->nfresh; i++)
		if (m->fresh[i].time_ns < m->fresh[oldest].time_ns)
			oldest = i;
	found = m->nfresh && m->fresh[oldest].time_ns <= before_ns;
	if (found) {
		*out = m->fresh[oldest];
		memmove(m->fresh + oldest, m->fresh + oldest + 1,
			(m->nfresh - oldest - 1) * sizeof(*m->fresh));
		m->nfresh--;
	}
	pthread_mutex_unlock(&m->lock);
	return found;
}

static int compare_times(const void *a, const void *b)
{
	const struct marker *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

void markers_json(struct markers *m, uint64_t first_ns, struct json_writer *w)
{
	pthread_mutex_lock(&m->lock);
	if (m->n)
		qsort(m->list, m->n, sizeof(*m->list), compare_times);
	json_array_begin(w, "markers");
	for (size_t i = 0; i < m->n; i++) {
		const struct marker *x = &m->list[i];
		uint64_t since = x->time_ns > first_ns ? x->time_ns - first_ns : 0;

		json_put_object(w, NULL, "name", x->name, "kind", kind_names[x->kind], "time_ns",
				since, "mono_ns", x->time_ns);
	}
	json_array_end(w);
	json_u64(w, "markers_beyond", m->added - m->n);
	pthread_mutex_unlock(&m->lock);
}
