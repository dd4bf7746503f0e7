/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * u8 kind: bit 0: lists as rings, as before Linux 6.8. The rest are changes (linux_change.h) to
 * the names of tests/unit/linux_tree_fixture.h, in which a file is sought.
 */
#include "tests/fuzz/fuzz.h"

#include "tests/fuzz/linux_change.h"
#include "tests/unit/linux_tree_fixture.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lm g, scene[2];
	static struct lt_scene at[2];
	static struct linux_mm_layout mm;
	struct linux_tree_layout l;
	const struct memory m = lm_memory(&g);
	const struct linux_tree tree = { &l, &mm, &m };
	struct linux_place root;
	uint64_t mapping;
	struct cursor c;
	bool ring;

	if (!at[0].task) {
		lm_layout(&mm, true);
		at[0] = lt_scene(&scene[0], false);
		at[1] = lt_scene(&scene[1], true);
	}
	cursor_init(&c, data, size);
	ring = cursor_u8(&c) & 1;
	l = lt_layout(ring);
	g = scene[ring];
	linux_change(&g, &c);
	if (linux_tree_root(&tree, at[ring].task, &root) != LINUX_OK)
		return 0;
	if (linux_tree_find(&tree, &root, "tmp/perf-7.map", &mapping) >= LINUX_WHY_COUNT)
		abort();
	return 0;
}
