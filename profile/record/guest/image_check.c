/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/image_check.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "symbolizer/unwind/orc_format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 4, 5))) static void image_check_say(struct image_check *c,
								  enum image_check_what what,
								  enum image_check_answer answer,
								  const char *fmt, ...)
{
	struct image_check_row *r = &c->row[what];
	va_list ap;

	r->answer = answer;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
}

/* Appends to the text of a row, and lowers its answer to `answer` if it was better. */
static void image_check_but(struct image_check *c, enum image_check_what what,
			    enum image_check_answer answer, const char *text, const char *more)
{
	struct image_check_row *r = &c->row[what];
	size_t n = strlen(r->text);

	r->answer = answer < r->answer ? answer : r->answer;
	snprintf(r->text + n, sizeof(r->text) - n, "; %s%s", text, more);
}

/*
 * Without CONFIG_KALLSYMS_ALL a kernel has the names of its functions only, and those of a few
 * section borders. With it, a quarter of the symbols are variables.
 */
static bool has_variables(const struct symtab *t)
{
	size_t n = 0;

	for (size_t i = 0; i < symtab_count(t); i++)
		n += strchr("bBdD", symtab_at(t, i)->type) != NULL;
	return n > symtab_count(t) / 100;
}

static void check_names(const struct target *t, struct image_check *c)
{
	if (!t->symbols) {
		image_check_say(c, IMAGE_CHECK_NAMES, IMAGE_CHECK_NO, "%s",
				t->symbol_note.code ? t->symbol_note.text
						    : "the image has no symbols");
		return;
	}
	image_check_say(c, IMAGE_CHECK_NAMES, IMAGE_CHECK_YES, "%zu from %s",
			symtab_count(t->symbols), t->symbol_source);
	if (t->is_linux && !has_variables(t->symbols))
		image_check_but(c, IMAGE_CHECK_NAMES, IMAGE_CHECK_PARTLY,
				"of functions only, as without CONFIG_KALLSYMS_ALL", "");
}

static void check_stacks(const struct target *t, struct image_check *c)
{
	struct unwinder u = target_unwinder(t);
	enum unwind_method way = unwind_method(&u);

	c->way = way;
	if (way <= UNWIND_SEARCH && u.frame_pointers32) {
		c->way = UNWIND_FRAME_POINTERS;
		image_check_say(c, IMAGE_CHECK_STACKS, IMAGE_CHECK_YES,
				"by frame pointers, in its 32-bit code");
		return;
	}
	switch (way) {
	case UNWIND_ORC:
		image_check_say(c, IMAGE_CHECK_STACKS, IMAGE_CHECK_YES,
				"by its ORC table: %zu entries, layout of %s, registers of %s",
				orc_count(t->orc), orc_layout_name(orc_layout(t->orc)),
				orc_format_registers(orc_format_of(t->orc)));
		break;
	case UNWIND_FRAME_POINTERS:
		image_check_say(c, IMAGE_CHECK_STACKS, IMAGE_CHECK_YES, "by frame pointers");
		break;
	case UNWIND_SEARCH:
		image_check_say(c, IMAGE_CHECK_STACKS, IMAGE_CHECK_PARTLY,
				"by the code's way to its return and a search of the stack: none "
				"counts as whole");
		break;
	default:
		image_check_say(c, IMAGE_CHECK_STACKS, IMAGE_CHECK_NO,
				"only the innermost frame of each stack");
		break;
	}
	if (t->orc_note.code) {
		image_check_but(c, IMAGE_CHECK_STACKS, IMAGE_CHECK_YES,
				"its ORC table is not used: ", t->orc_note.text);
	}
	if (t->is_linux && way > UNWIND_INNERMOST && !t->irq_stack_ptr)
		image_check_but(
			c, IMAGE_CHECK_STACKS, IMAGE_CHECK_PARTLY,
			"the address of its interrupt stack is not known, so stacks end there", "");
}

static void check_tasks(const struct target_linux *l, struct image_check *c)
{
	const enum image_check_what what = IMAGE_CHECK_TASKS;

	if (l->have_task) {
		image_check_say(c, what, IMAGE_CHECK_YES, "by the kernel's types");
		if (l->task.tasks == LINUX_TASK_NONE || !l->task.init_task)
			image_check_but(c, what, IMAGE_CHECK_PARTLY,
					"those that run; the list of all is not known", "");
	} else if (l->have_current && l->task.init_task) {
		image_check_say(c, what, IMAGE_CHECK_SEARCHED,
				"in the memory of the running guest: %s", l->task_note.text);
	} else if (l->have_current) {
		image_check_say(c, what, IMAGE_CHECK_NO, "%s, nor a symbol init_task",
				l->task_note.text);
	} else {
		image_check_say(c, what, IMAGE_CHECK_NO, "%s", l->task_note.text);
	}
}

static void check_modules(const struct target *t, struct image_check *c)
{
	const struct target_linux *l = &t->linux_facts;
	const struct linux_module_layout *m = &l->modules;
	const enum image_check_what what = IMAGE_CHECK_MODULES;

	if (!l->have_modules && m->modules) {
		image_check_say(c, what, IMAGE_CHECK_SEARCHED,
				"in the memory of the running guest: %s", l->module_note.text);
		return;
	}
	if (!l->have_modules) {
		image_check_say(c, what, IMAGE_CHECK_NO, "%s", l->module_note.text);
		return;
	}
	image_check_say(c, what, IMAGE_CHECK_YES, "by the kernel's types");
	if (m->kallsyms == LINUX_MODULE_NONE || m->symtab == LINUX_MODULE_NONE ||
	    m->num_symtab == LINUX_MODULE_NONE || m->strtab == LINUX_MODULE_NONE)
		image_check_but(c, what, IMAGE_CHECK_PARTLY,
				"where the names of their functions are is not known", "");
	if (t->orc && (m->num_orcs == LINUX_MODULE_NONE || m->orc_ip == LINUX_MODULE_NONE ||
		       m->orc == LINUX_MODULE_NONE))
		image_check_but(c, what, IMAGE_CHECK_PARTLY,
				"where their ORC tables are is not known", "");
}

/* A maple tree (since 6.1) shows what is mapped even without types (mm_find.c). */
static bool has_maple_tree(const struct target *t)
{
	return t->symbols && symtab_find(t->symbols, "mas_find");
}

/* Requires that the task is known. */
static const char *by_types(enum image_check_answer tasks)
{
	return tasks == IMAGE_CHECK_SEARCHED ? "by the kernel's types, once tasks are found"
					     : "by the kernel's types";
}

static void check_mappings(const struct target *t, struct image_check *c)
{
	const struct target_linux *l = &t->linux_facts;
	enum image_check_answer tasks = c->row[IMAGE_CHECK_TASKS].answer;
	bool searched = !l->have_mm && tasks != IMAGE_CHECK_NO && has_maple_tree(t);
	const struct {
		enum image_check_what what;
		bool have;
		const struct err *note;
	} part[] = {
		{ IMAGE_CHECK_MAPPINGS, l->have_mm, &l->mm_note },
		{ IMAGE_CHECK_FILES, l->have_mm && l->have_file,
		  l->have_mm ? &l->file_note : &l->mm_note },
	};

	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		const char *why = part[i].note->text;

		if (tasks == IMAGE_CHECK_NO)
			image_check_say(c, part[i].what, IMAGE_CHECK_NO,
					"tasks cannot be told apart");
		else if (part[i].have)
			image_check_say(c, part[i].what,
					tasks == IMAGE_CHECK_SEARCHED ? tasks : IMAGE_CHECK_YES,
					"%s", by_types(tasks));
		else if (searched)
			image_check_say(c, part[i].what, IMAGE_CHECK_SEARCHED,
					"in the memory of the running guest: %s", why);
		else if (!l->have_mm && !has_maple_tree(t))
			image_check_say(c, part[i].what, IMAGE_CHECK_NO,
					"%s, and without a maple tree (6.1) none are searched for",
					why);
		else
			image_check_say(c, part[i].what, IMAGE_CHECK_NO, "%s", why);
	}
}

static void check_off_cpu(const struct target_linux *l, struct image_check *c)
{
	const struct linux_sched_layout *s = &l->sched;
	const enum image_check_what what = IMAGE_CHECK_OFF_CPU;
	enum image_check_answer tasks = c->row[IMAGE_CHECK_TASKS].answer;
	bool state = s->state != LINUX_TASK_NONE, sp = s->sp != LINUX_TASK_NONE;

	if (tasks == IMAGE_CHECK_NO)
		image_check_say(c, what, IMAGE_CHECK_NO, "tasks cannot be told apart");
	else if (tasks == IMAGE_CHECK_PARTLY)
		image_check_say(c, what, IMAGE_CHECK_NO, "the list of all tasks is not known");
	else if (s->source != LINUX_TASK_BY_TYPES)
		image_check_say(c, what, IMAGE_CHECK_SEARCHED,
				"in the memory of the running guest: %s", l->task_note.text);
	else if (state && sp)
		image_check_say(c, what, tasks, "%s", by_types(tasks));
	else
		image_check_say(c, what, IMAGE_CHECK_NO,
				"the kernel's types do not contain task_struct.%s",
				sp ? "__state" : "thread.sp");
}

void image_check(const struct target *t, struct image_check *out)
{
	memset(out, 0, sizeof(*out));
	out->n = t->is_linux ? IMAGE_CHECK_COUNT : IMAGE_CHECK_TASKS;
	check_names(t, out);
	check_stacks(t, out);
	if (!t->is_linux)
		return;
	check_tasks(&t->linux_facts, out);
	check_modules(t, out);
	check_mappings(t, out);
	check_off_cpu(&t->linux_facts, out);
}

static const struct {
	const char *title, *key;
} image_check_names[IMAGE_CHECK_COUNT] = {
	[IMAGE_CHECK_NAMES] = { "names", "names" },
	[IMAGE_CHECK_STACKS] = { "stacks", "stacks" },
	[IMAGE_CHECK_TASKS] = { "tasks", "tasks" },
	[IMAGE_CHECK_MODULES] = { "modules", "modules" },
	[IMAGE_CHECK_MAPPINGS] = { "mappings", "mappings" },
	[IMAGE_CHECK_FILES] = { "files", "files" },
	[IMAGE_CHECK_OFF_CPU] = { "off-CPU", "off_cpu" },
};

const char *image_check_title(enum image_check_what what)
{
	return image_check_names[what].title;
}

const char *image_check_answer_name(enum image_check_answer a)
{
	static const char *const name[] = {
		[IMAGE_CHECK_NO] = "no",
		[IMAGE_CHECK_SEARCHED] = "searched",
		[IMAGE_CHECK_PARTLY] = "partly",
		[IMAGE_CHECK_YES] = "yes",
	};

	return name[a];
}

void image_check_json(struct json_writer *w, const char *key, const struct image_check *c)
{
	json_object_begin(w, key);
	for (unsigned int i = 0; i < c->n; i++)
		json_put_object(w, image_check_names[i].key, "answer",
				image_check_answer_name(c->row[i].answer), "text", c->row[i].text);
	json_object_end(w);
}
