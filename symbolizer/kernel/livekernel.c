/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/kernel/livekernel.h"

#include "base/cleanup.h"
#include "symbolizer/core/elf64.h"
#include "symbolizer/kernel/live_copy.h"
#include "symbolizer/kernel/live_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char banner_prefix[] = "Linux version ";

/* -- what its symbols locate ------------------------------------------------------ */

static uint64_t address_of(const struct livekernel *l, const char *name)
{
	const struct symbol *s = symtab_find(l->symbols, name);

	return s ? s->addr : 0;
}

/*
 * Finds the bytes between the symbols __start_NAME and __stop_NAME. Returns 0; -ENOENT if one is
 * missing; -EBADMSG if they are not a range inside the kernel, or the range has more than max
 * bytes.
 */
static int range_of(const struct livekernel *l, struct live_copy *c, const char *name, uint64_t max,
		    struct cursor *out, struct err *e)
{
	char first[32], last[32];
	uint64_t from, to;

	snprintf(first, sizeof(first), "__start_%s", name);
	snprintf(last, sizeof(last), "__stop_%s", name);
	from = address_of(l, first);
	to = address_of(l, last);
	if (!from || !to)
		return err_set(e, ENOENT, "the running kernel has no symbol %s",
			       from ? last : first);
	if (from < c->va || to < from || to - c->va > c->len || to - from > max)
		return err_set(e, EBADMSG,
			       "the running kernel's %s and %s (0x%llx, 0x%llx) enclose no part of "
			       "it",
			       first, last, (unsigned long long)from, (unsigned long long)to);
	live_copy_need(c, from, to - from, true);
	cursor_init(out, c->bytes + (from - c->va), (size_t)(to - from));
	return 0;
}

static void need_code(void *ctx, uint64_t va, size_t len)
{
	live_copy_need(ctx, va, len, false);
}

static void read_orc(struct livekernel *l, struct live_copy *c, struct kimage *k)
{
	struct cursor ips, entries;
	struct orc_tables t = { .text_start = l->text, .text_end = l->text_end, .code = k };

	if (range_of(l, c, "orc_unwind_ip", 4ull * ORC_MAX_ENTRIES, &ips, &l->orc_note) ||
	    range_of(l, c, "orc_unwind", 8ull * ORC_MAX_ENTRIES, &entries, &l->orc_note))
		return;
	t.ips = ips.base;
	t.entries = entries.base;
	t.ips_va = c->va + (uint64_t)(ips.base - c->bytes);
	t.n = ips.len / 4;
	/* An entry has six bytes; two more may follow for alignment. */
	if (ips.len % 4 || entries.len / 6 != t.n) {
		err_set(&l->orc_note, EBADMSG,
			"the running kernel's ORC tables do not belong together: %zu bytes of "
			"addresses, %zu of entries",
			ips.len, entries.len);
		return;
	}
	/* The code of the first entries shows the format, so that no other code has to be read. */
	live_copy_want(c, l->text, LIVEKERNEL_TEXT, LIVEKERNEL_TEXT);
	if (orc_build(&l->orc, &t, &l->orc_note))
		return;
	k->need = need_code;
	k->need_ctx = c;
	l->irq_stack_ptr = orc_irq_stack_ptr(l->orc, k, &l->irq_stack_percpu);
	k->need = NULL;
}

static void read_btf(struct livekernel *l, struct live_copy *c)
{
	struct cursor btf;

	if (range_of(l, c, "BTF", LIVEKERNEL_MAX_BTF, &btf, &l->btf_note))
		return;
	if (!btf.len) {
		err_set(&l->btf_note, ENOENT, "the running kernel's BTF is empty");
		return;
	}
	l->btf = malloc(btf.len);
	if (!l->btf) {
		err_set(&l->btf_note, ENOMEM, "no memory for the running kernel's BTF");
		return;
	}
	memcpy(l->btf, btf.base, btf.len);
	l->btf_len = btf.len;
}

/* Copies a banner: printable up to a newline or NUL. */
static bool take_banner(struct livekernel *l, const uint8_t *p, size_t left)
{
	size_t n = sizeof(banner_prefix) - 1;

	if (left <= n || memcmp(p, banner_prefix, n) || p[n] < '0' || p[n] > '9')
		return false;
	while (n < left && p[n] >= 0x20 && p[n] < 0x7f)
		n++;
	if (n == left || n >= sizeof(l->banner) || (p[n] != '\n' && p[n]))
		return false;
	memcpy(l->banner, p, n);
	l->banner[n] = 0;
	n = sizeof(banner_prefix) - 1;
	snprintf(l->osrelease, sizeof(l->osrelease), "%.*s", (int)strcspn(l->banner + n, " "),
		 l->banner + n);
	return true;
}

/*
 * Finds the banner. Without CONFIG_KALLSYMS_ALL it has no symbol; then the first text of its form
 * is used.
 */
static void read_banner(struct livekernel *l, struct live_copy *c)
{
	uint64_t at = address_of(l, "linux_banner");
	const uint8_t *p = c->bytes, *end = p + c->len;

	live_copy_need(c, at, sizeof(l->banner), false);
	if (at >= c->va && at - c->va < c->len &&
	    take_banner(l, p + (at - c->va), c->len - (size_t)(at - c->va)))
		return;
	for (; !at && (p = memmem(p, (size_t)(end - p), banner_prefix, sizeof(banner_prefix) - 1));
	     p++)
		if (take_banner(l, p, (size_t)(end - p)))
			return;
	err_set(&l->banner_note, ENOENT, "the running kernel's version text was not found");
}

static void read_build_id(struct livekernel *l, struct live_copy *c)
{
	struct elf64 f = { .name = "the running kernel" };
	struct cursor notes;

	if (range_of(l, c, "notes", LIVEKERNEL_MAX_NOTES, &notes, &l->build_id_note))
		return;
	f.file = notes;
	l->build_id_len = elf64_build_id(&f, 0, notes.len, l->build_id, sizeof(l->build_id));
	if (!l->build_id_len)
		err_set(&l->build_id_note, ENOENT,
			"the running kernel has no build id among its notes");
}

static void find_text(struct livekernel *l)
{
	uint64_t init = address_of(l, "__init_end");

	l->text = address_of(l, "_text");
	if (!l->text)
		l->text = address_of(l, "_stext");
	if (l->text < l->start || l->text >= l->end)
		l->text = l->start;
	l->image_end = address_of(l, "_end");
	if (l->image_end <= l->text || l->image_end > l->end)
		l->image_end = l->end;
	/* Init code may have been freed, but ORC still describes it. */
	l->text_end = init > l->text && init <= l->end ? init : l->image_end;
}

/*
 * Reads the names. They are proven by linux_banner; if only functions have names, by the start of
 * the mapping, which is the address of _text.
 */
static int read_names(struct livekernel *l, struct live_copy *c, uint64_t inside, struct err *e)
{
	const struct kallsyms_range r = { .va = c->va, .bytes = c->bytes, .len = c->len };
	struct kallsyms_source from = { .range = &r, .nrange = 1, .name = "the running kernel" };
	struct err first = { 0 };
	int ret;

	if (live_find(c, inside, &l->symbols, &l->kallsyms))
		return 0;
	live_copy_need(c, c->va, c->len, true);
	ret = kallsyms_decode(&from, &l->symbols, &l->kallsyms, &first);
	from.text = l->start;
	from.end = l->end;
	if (ret == -EBADMSG)
		ret = kallsyms_decode(&from, &l->symbols, &l->kallsyms, NULL);
	return ret ? err_set(e, -ret, "%s", first.text) : 0;
}

static int read_tables(struct livekernel *l, struct live_copy *c, uint64_t inside, struct err *e)
{
	struct kimage k = { .elf = c->bytes,
			    .elf_len = c->len,
			    .seg = { { .va = c->va,
				       .file_len = c->len,
				       .mem_len = c->len,
				       .flags = PF_R | PF_W | PF_X } },
			    .nseg = 1 };
	int ret = read_names(l, c, inside, e);

	if (ret)
		return ret;
	find_text(l);
	k.text = l->text;
	k.etext = l->text_end;
	k.end = l->image_end;
	read_orc(l, c, &k);
	k.has_orc = l->orc;
	if (!l->orc)
		live_copy_want(c, l->text, l->text_end - l->text, LIVEKERNEL_TEXT);
	l->frame_pointers = kimage_keeps_frame_pointers(&k, l->symbols);
	read_btf(l, c);
	read_banner(l, c);
	read_build_id(l, c);
	return 0;
}

/* Moves what was read from a stored copy to where this guest's kernel runs. */
static int move_all(struct livekernel *l, uint64_t slide, struct err *e)
{
	struct symtab *moved = NULL;
	int ret;

	if (!slide)
		return 0;
	ret = symtab_slide(l->symbols, l->text, l->image_end, slide, &moved, e);
	if (!ret && l->orc)
		ret = orc_slide(l->orc, slide, e);
	if (ret) {
		symtab_destroy(moved);
		return ret;
	}
	symtab_destroy(l->symbols);
	l->symbols = moved;
	l->irq_stack_ptr = kimage_run_address(l->text, l->image_end, slide, l->irq_stack_ptr);
	l->start += slide;
	l->end += slide;
	l->text += slide;
	l->text_end += slide;
	l->image_end += slide;
	return 0;
}

static int read_copy(struct livekernel *l, struct live_copy *c, uint64_t inside, struct err *e)
{
	l->start = c->va;
	l->end = c->va + c->len;
	return read_tables(l, c, inside, e);
}

/* Returns whether a stored copy is of this guest's kernel. Then *c is that copy. */
static bool find_stored(struct live_copy *c, const struct live_guest *g, uint64_t inside,
			uint64_t *slide)
{
	bool found = false;

	for (unsigned int n = 0; !found && g->load; n++) {
		size_t len = 0;
		uint8_t *bytes = g->load(g->ctx, inside, n, &len);

		if (!bytes)
			break;
		found = live_copy_load(c, g, inside, bytes, len, slide);
		free(bytes);
	}
	return found;
}

/*
 * Functions that each guest runs all the time, in many parts of the kernel: the pages with their code are in memory also where hardly
 * anything else is.
 */
static const char *const busy[] = {
	"asm_exc_page_fault",
	"exc_page_fault",
	"handle_mm_fault",
	"entry_SYSCALL_64",
	"do_syscall_64",
	"__schedule",
	"schedule",
	"update_curr",
	"scheduler_tick",
	"sched_tick",
	"enqueue_task_fair",
	"pick_next_task_fair",
	"try_to_wake_up",
	"__switch_to",
	"__switch_to_asm",
	"do_idle",
	"default_idle",
	"ktime_get",
	"ktime_get_update_offsets_now",
	"hrtimer_interrupt",
	"__hrtimer_run_queues",
	"tick_sched_timer",
	"tick_nohz_handler",
	"tick_periodic",
	"timekeeping_advance",
	"update_process_times",
	"run_timer_softirq",
	"__do_softirq",
	"handle_softirqs",
	"irq_exit_rcu",
	"sysvec_apic_timer_interrupt",
	"common_interrupt",
	"clockevents_program_event",
	"rcu_sched_clock_irq",
	"_raw_spin_lock",
	"_raw_spin_unlock_irqrestore",
	"memcpy",
	"clear_page_rep",
	"ksys_write",
	"vfs_write",
};

static void store(const struct livekernel *l, struct live_copy *c, uint64_t inside)
{
	const struct symbol *first = symtab_find(l->symbols, "__start_notes");
	const struct symbol *last = symtab_find(l->symbols, "__stop_notes");
	struct live_copy_mark mark = { .inside = inside };
	uint8_t *bytes;
	size_t len;

	if (!c->guest->store || !l->build_id_len || !first || !last || last->addr <= first->addr)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(busy); i++)
		live_copy_show(c, address_of(l, busy[i]));
	mark.notes = first->addr;
	mark.notes_len = last->addr - first->addr;
	bytes = live_copy_store(c, &mark, &len);
	if (bytes)
		c->guest->store(c->guest->ctx, l->build_id, l->build_id_len, bytes, len);
	free(bytes);
}

static int read_kernel(struct livekernel *l, struct live_copy *c, const struct live_guest *g,
		       uint64_t inside, struct err *e)
{
	uint64_t slide;
	int ret;

	l->stored = find_stored(c, g, inside, &slide);
	if (l->stored) {
		ret = read_copy(l, c, inside - slide, e);
		return ret ? ret : move_all(l, slide, e);
	}
	ret = live_copy_open(c, g, inside, e);
	ret = ret ? ret : read_copy(l, c, inside, e);
	if (!ret)
		store(l, c, inside);
	return ret;
}

int livekernel_read(struct livekernel **out, const struct live_guest *g, uint64_t inside,
		    struct err *e)
{
	struct livekernel *l = calloc(1, sizeof(*l));
	struct live_copy c = { 0 };
	int ret;

	if (!l)
		return err_set(e, ENOMEM, "no memory for the guest kernel's tables");
	ret = read_kernel(l, &c, g, inside, e);
	live_copy_close(&c);
	if (ret) {
		livekernel_destroy(l);
		return ret;
	}
	*out = l;
	return 0;
}

void livekernel_destroy(struct livekernel *l)
{
	if (!l)
		return;
	symtab_destroy(l->symbols);
	orc_destroy(l->orc);
	free(l->btf);
	free(l);
}
