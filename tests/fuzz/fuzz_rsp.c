/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 20000 runs */
/*
 * The replies of a gdbstub: packets, a description, registers, a monitor's text. The input is a
 * stream of packets; each complete packet is parsed as each of these.
 */
#include "tests/fuzz/fuzz.h"

#include "vmm/attach/rsp.h"
#include "vmm/attach/rsp_regs.h"
#include "vmm/attach/rsp_text.h"

#include <stdlib.h>
#include <string.h>

static void look_at_ranges(const char *text, size_t len)
{
	struct rsp_range r[4];
	unsigned int n = rsp_text_ram(text, len, r, 4);

	if (n > 4)
		abort();
	for (unsigned int i = 0; i < n; i++) {
		if (!r[i].len || (r[i].start | r[i].len) & 0xfff || r[i].start >> 52 ||
		    (r[i].start + r[i].len - 1) >> 52)
			abort();
		if (i && r[i].start <= r[i - 1].start + r[i - 1].len)
			abort();
	}
}

static void look_at(const char *text, size_t len, struct rsp_layout *layout, bool *have)
{
	char name[RSP_MAX_INCLUDES][64];
	struct err e = { 0 };
	struct sample_regs regs;
	uint64_t a, b;
	unsigned int n = rsp_includes(text, len, name);

	if (n > RSP_MAX_INCLUDES)
		abort();
	for (unsigned int i = 0; i < n; i++)
		if (!memchr(name[i], 0, sizeof(name[i])))
			abort();
	if (*have)
		(void)rsp_regs_parse(layout, text, len, &regs, &a);
	if (!rsp_layout_parse(layout, text, len, &e)) {
		*have = true;
		if (!layout->rip.len || layout->rip.off + layout->rip.len > layout->size)
			abort();
	} else if (!e.code || strchr(e.text, '\n')) {
		abort();
	}
	(void)rsp_text_tables(text, len, &a, &b);
	look_at_ranges(text, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rsp_layout layout = { 0 };
	bool have = false;
	struct buf out;
	size_t at = 0;

	buf_init(&out);
	look_at((const char *)data, size, &layout, &have);
	while (at < size) {
		long n = rsp_parse(&out, data + at, size - at);

		if (n > (long)(size - at) || (n > 0 && n < 4) || out.len > RSP_MAX_PACKET)
			abort();
		if (n > 0)
			look_at(out.data ? (const char *)out.data : "", out.len, &layout, &have);
		at += n > 0 ? (size_t)n : 1;
	}
	buf_deinit(&out);
	return 0;
}
