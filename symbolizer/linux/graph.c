/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/graph.h"

#include "base/cleanup.h"

#define MAX_OFFSET 65536u
#define MAX_ENTRY 256u
/* Maximum number of probed functions in one stack. */
#define MAX_NODES 8u
/* Words that follow an entry in a word-wise stack: a bitmap, and data of the tracers. */
#define MORE_WORDS 4u

static bool graph_find(const struct types *t, const char *structure, const char *member,
		       uint32_t size, uint32_t *off)
{
	struct type_member m;

	if (t->member(t->ctx, structure, member, &m) || m.size != size || m.bit_count ||
	    m.off > MAX_OFFSET)
		return false;
	*off = m.off;
	return true;
}

bool linux_graph_layout(struct linux_graph_layout *out, const struct types *types)
{
	struct linux_graph_layout l = { 0 };
	uint64_t entry;
	int64_t words;

	if (!types || types->size(types->ctx, "ftrace_ret_stack", &entry) || !entry || entry % 8 ||
	    entry > MAX_ENTRY || !graph_find(types, "task_struct", "ret_stack", 8, &l.stack) ||
	    !graph_find(types, "task_struct", "curr_ret_stack", 4, &l.index) ||
	    !graph_find(types, "ftrace_ret_stack", "ret", 8, &l.ret) ||
	    !graph_find(types, "ftrace_ret_stack", "retp", 8, &l.retp) || l.ret % 8 || l.retp % 8)
		return false;
	l.entry = (uint32_t)entry;
	l.unit = l.entry;
	l.top = true;
	/* The kinds of words between the entries of a word-wise stack (kernel/trace/fgraph.c). */
	if (types->enumerator(types->ctx, "FGRAPH_TYPE_BITMAP", &words) == 0) {
		l.unit = 8;
		l.top = false;
		l.entry += 8 * MORE_WORDS;
	}
	*out = l;
	return true;
}

bool linux_rethook_layout(struct linux_rethook_layout *out, const struct types *types)
{
	static const struct {
		const char *list, *node, *retp;
	} forms[] = { { "rethooks", "rethook_node", "frame" },
		      { "kretprobe_instances", "kretprobe_instance", "fp" } };

	for (unsigned int i = 0; types && i < ARRAY_SIZE(forms); i++) {
		struct linux_rethook_layout l = { 0 };

		if (!graph_find(types, "task_struct", forms[i].list, 8, &l.list) ||
		    !graph_find(types, forms[i].node, "llist", 8, &l.link) ||
		    !graph_find(types, forms[i].node, "ret_addr", 8, &l.ret) ||
		    !graph_find(types, forms[i].node, forms[i].retp, 8, &l.retp) || l.ret % 8 ||
		    l.retp % 8)
			continue;
		l.len = l.link > l.ret ? l.link : l.ret;
		l.len = 8 + (l.len > l.retp ? l.len : l.retp);
		if (l.len > MAX_ENTRY)
			continue;
		*out = l;
		return true;
	}
	return false;
}

static uint32_t read_entries(const struct linux_graph_layout *g, const struct memory *m,
			     uint64_t task, uint8_t *dst, uint32_t room)
{
	uint32_t index;
	uint64_t base, len, start;

	if (!memory_u64(m, task + g->stack, &base) || !(base >> 63) || base % 8 ||
	    !memory_u32(m, task + g->index, &index) || (int32_t)index < (g->top ? -1 : 0))
		return 0;
	len = (uint64_t)((int64_t)(int32_t)index + g->top) * g->unit;
	room &= ~7u;
	start = len > room ? len - room : 0;
	len -= start;
	return memory_read(m, MEMORY_KERNEL, base + start, dst, len) ? (uint32_t)len : 0;
}

uint32_t linux_graph_read(const struct linux_graph_layout *g, const struct linux_rethook_layout *r,
			  const struct memory *m, uint64_t task, uint8_t *dst, uint32_t room)
{
	uint32_t nodes = r && r->len ? MAX_NODES * r->len : 0, len = 0;
	uint64_t at, next;

	if (nodes > room)
		return 0;
	if (g)
		len = read_entries(g, m, task, dst, room - nodes);
	at = nodes ? task + r->list : 0;
	for (unsigned int n = 0; nodes && n < MAX_NODES; n++) {
		if (!memory_u64(m, at, &next) || !(next >> 63) || next % 8 ||
		    !memory_read(m, MEMORY_KERNEL, next - r->link, dst + len, r->len))
			break;
		len += r->len;
		at = next;
	}
	return len;
}
