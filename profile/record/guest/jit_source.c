/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/jit_source.h"

#include "profile/format/files/userfile.h"
#include "symbolizer/linux/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define CHUNK 65536u

/* Of a task of that process; of pid 1 where there is none. 0: of none. */
static uint64_t find_task(const struct jit_source *s, uint32_t pid, uint64_t mm)
{
	struct linux_task_list list = { 0 };
	struct err ignored = { 0 };
	uint64_t found = 0;

	if (linux_task_list(&s->facts->task, s->memory, &list, &ignored) < 0)
		return 0;
	for (size_t i = 0; i < list.n; i++) {
		const struct linux_task *t = &list.task[i];

		if (t->tgid == 1 && t->pid == 1 && !found)
			found = t->task;
		if (t->tgid == pid && t->mm == mm) {
			found = t->task;
			break;
		}
	}
	linux_task_list_deinit(&list);
	return found;
}

static int read_all(const struct linux_file *f, struct buf *out, const char *path, struct err *e)
{
	uint64_t size = linux_file_size(f), off = 0;
	uint8_t chunk[CHUNK];

	if (size > USERFILE_MAX_PERFMAP)
		return err_set(e, EFBIG, "the guest's /%s has %" PRIu64 " bytes", path, size);
	while (off < size) {
		size_t n = linux_file_read(f, off, chunk, sizeof(chunk));

		buf_add(out, chunk, n);
		off += n;
		if (n < sizeof(chunk))
			break;
	}
	/* Of a line that is not all there nobody knows what it says. */
	while (out->len && off < size && out->data[out->len - 1] != '\n')
		out->len--;
	if (out->failed)
		return err_set(e, ENOMEM, "out of memory");
	return out->len ? 0
			: err_set(e, ENODATA, "nothing of the guest's /%s is in its memory", path);
}

int jit_source_read(const struct jit_source *s, uint32_t pid, uint64_t mm, struct buf *out,
		    struct err *e)
{
	const struct linux_tree tree = { &s->facts->tree, &s->facts->mm, s->memory };
	struct linux_place root;
	struct linux_file file;
	enum linux_why why = LINUX_NOT_THERE;
	uint64_t mapping, task;
	char path[32];

	if (!s->facts->have_tree || !s->facts->have_file)
		return err_set(e, ENOENT, "the guest's files cannot be found in its memory: %s",
			       s->facts->have_file ? s->facts->tree_note.text
						   : s->facts->file_note.text);
	snprintf(path, sizeof(path), "tmp/perf-%" PRIu32 ".map", pid);
	task = find_task(s, pid, mm);
	if (task)
		why = linux_tree_root(&tree, task, &root);
	if (task && why == LINUX_OK)
		why = linux_tree_find(&tree, &root, path, &mapping);
	if (why == LINUX_OK)
		why = linux_file_of_mapping(&file, &s->facts->file, s->memory, mapping);
	if (why != LINUX_OK)
		return err_set(e, ENOENT, "no /%s is in the guest's memory (%s)", path,
			       linux_why_text(why));
	return read_all(&file, out, path, e);
}
