/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 3000 runs */
/*
 * A hostile guest that stands still. The input: a byte of flags (1: vCPUs idle, 2: interrupts on,
 * 4: clocks move, 8: a disk, 16: a ring of locks, 32: a stalled pool), then changes of a sound
 * guest's memory, tasks and log: u8 kind, u16 where, u16 what.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "tests/printk_guest.h"
#include "tests/why_guest.h"

#define MAX_CHANGES 256u
#define HANG_NS (10 * WG_SECOND)

static struct pg kernel_log;

/* The guest's memory, and that of its log. */
static size_t read_guest(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	if (va - PG_BASE >= PG_BYTES)
		return wg_read(ctx, space, va, dst, len);
	wg.reads++;
	return pg_read(&kernel_log, space, va, dst, len);
}

/* Lines that checks search for, with what a terminal obeys and what a format would. */
static const char *const line[] = {
	"Kernel panic - not syncing: \x1b]0;%n%s\a",
	"BUG: unable to handle page fault\x1b[2J",
	"Out of memory: Killed process 1 (\xff\xfe\x80)",
	"BUG: kernel stack overflow\r\n\n\n",
	"Waiting for root device \t\x7f...",
	"",
};

static void make_log(void)
{
	static struct symtab *symbols;

	if (!symbols)
		symbols = pg_symbols(false);
	pg_make(&kernel_log, 12);
	for (unsigned int i = 0; i < 12; i++) {
		const struct pg_record r = { line[i % 6], i * 1000003ull, 0, 4, i, "", "" };

		pg_store(&kernel_log, &r, 2);
	}
	wg.target.linux_facts.have_printk =
		!linux_printk_layout(&wg.target.linux_facts.printk, &pg_types, symbols, NULL);
	wg.memory.read = read_guest;
}

static const char states[] = "RSDTtXZPI-";

static void make(uint8_t flags)
{
	uint64_t pool, node;

	wg_make(true);
	make_log();
	for (unsigned int i = 0; i < 6; i++)
		wg_add("task", states[i % 3], (40 + 10 * i) * WG_SECOND);
	for (unsigned int cpu = 0; cpu < WG_CPUS; cpu++)
		wg.vcpu_frame[cpu][0] = wg_function[(flags & 1 ? 6 : 5) + (flags >> 6)];
	wg_wait_for_mutex(2, WG_OBJECT(4), flags & 16 ? 5 : 1);
	wg_wait_for_rwsem(5, WG_OBJECT(5), flags & 16 ? 2 : 4, flags & 32);
	wg_set(WG_OBJECT(0), LINUX_HANG_RCU_GP_SEQ, 0x101);
	wg_set(WG_OBJECT(0), LINUX_HANG_RCU_GP_START, 0xffffffff);
	wg_u64(WG_OBJECT(20), 0x101); /* a spinlock with waiters */
	if (flags & 8)
		wg_make_disk(4, 64);
	if (flags & 32) {
		pool = wg_percpu_at("cpu_worker_pools", 0);
		node = WG_OBJECT(7) + 8;
		wg_list(wg_at(pool, LINUX_HANG_POOL_WORKLIST), &node, 1);
		node = wg_at(WG_OBJECT(6), LINUX_HANG_WORKER_NODE);
		wg_list(wg_at(pool, LINUX_HANG_POOL_WORKERS), &node, 1);
		wg_set(WG_OBJECT(6), LINUX_HANG_WORKER_TASK, WG_TASK(0));
		wg_set(WG_OBJECT(6), LINUX_HANG_WORKER_FUNC, WG_TEXT);
	}
}

static void change(struct cursor *c)
{
	uint8_t kind = cursor_u8(c);
	uint16_t where = cursor_u16(c), what = cursor_u16(c);
	/* Members are 64 bytes apart, and a list has two words. */
	uint64_t at = WG_BASE + (where >> 1) * (uint64_t)WG_SLOT % WG_BYTES + (where & 1) * 8;
	struct wg_task *t = &wg.task[what % 6];

	if (kind & 128) { /* the log */
		at = PG_BASE + where * 8ull % (PG_BYTES - 8);
		switch (kind & 3) {
		case 0:
			pg_u64(&kernel_log, at, (uint64_t)(int64_t)(int16_t)what);
			return;
		case 1:
			pg_u32(&kernel_log, at + (kind & 4), what);
			return;
		case 2:
			pg_u64(&kernel_log, PG_RING + where % 10 * 8,
			       (uint64_t)(int64_t)(int16_t)what);
			return;
		default:
			kernel_log.bytes[(where * 256u + what) % PG_BYTES] = (uint8_t)what;
			return;
		}
	}
	switch (kind & 15) {
	case 0: /* a pointer to a member anywhere */
		wg_u64(at, WG_BASE + what * (uint64_t)WG_SLOT % WG_BYTES);
		break;
	case 1:
		wg_u64(at, WG_TASK(what % WG_TASKS) | (what >> 8 & 7));
		break;
	case 2:
		wg_u64(at, what);
		break;
	case 3:
		wg_u64(at, ~(uint64_t)what);
		break;
	case 4:
		wg_u64(at, (uint64_t)what << 48 | what);
		break;
	case 5:
		wg_u64(at, at); /* a ring of one */
		break;
	case 6:
		wg.gone[where % (WG_BYTES / 0x1000)] = true;
		break;
	case 7:
		t->s.state = states[where % 10];
		t->s.raw_state = where >> 4;
		break;
	case 8:
		t->s.running = where & 1;
		t->s.cpu = where >> 1 & 3;
		t->s.policy = where >> 3 & 3;
		break;
	case 9:
		t->t.stack = WG_BASE + where * 64ull % WG_BYTES;
		break;
	case 10:
		t->s.sp = WG_BASE + where * 8ull % WG_BYTES;
		break;
	case 11:
		t->frame[where % WG_MAX_FRAMES] = wg_function[where / 8 % WG_COUNT(wg_function)];
		break;
	case 12:
		t->t.task = WG_BASE + where * 64ull % WG_BYTES;
		break;
	case 13:
		wg.vcpu_frame[what % WG_CPUS][where % WG_MAX_FRAMES] =
			wg_function[where / 8 % WG_COUNT(wg_function)];
		break;
	case 14: /* another vCPU's processor */
		wg_u64(wg_find("__per_cpu_offset") + what % 2 * 8,
		       WG_BASE + where * 8ull % WG_BYTES);
		break;
	default:
		wg_put(at, "\x1b[2J%s%n", 8);
		break;
	}
}

/* What is said about the guest is text for a terminal, and each verdict has its proof. */
static void check_result(const json_t *result)
{
	const json_t *checks = json_object_get(result, "checks"), *o;
	int status = why_status(result);
	struct buf text;
	size_t i;

	buf_init(&text);
	why_print(result, &text);
	for (size_t k = 0; k < text.len; k++)
		if (text.data[k] < 0x20 && text.data[k] != '\n' && text.data[k] != '\t')
			abort();
	buf_deinit(&text);
	if (json_array_size(checks) != WHY_CAUSES ||
	    (status != 0 && status != 10 && status != 11) ||
	    (status == 10) != json_is_string(json_object_get(result, "cause")))
		abort();
	json_array_foreach(checks, i, o)
	{
		bool bad = !strcmp(json_string_value(json_object_get(o, "result")), "bad");

		if (!*json_string_value(json_object_get(o, "text")) ||
		    (bad && !json_object_size(json_object_get(o, "proof"))))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct why *w;
	json_t *result = NULL;
	struct cursor c;
	uint8_t flags;

	cursor_init(&c, data, size);
	flags = cursor_u8(&c);
	make(flags);
	for (unsigned int i = 0; i < MAX_CHANGES && cursor_left(&c) >= 5; i++)
		change(&c);
	if (why_create(&w, HANG_NS, NULL))
		return 0;
	if (why_look(w, (struct guest *)&wg, NULL))
		abort();
	wg_samples(w, flags & 1 ? SAMPLE_IDLE : SAMPLE_KERNEL, flags & 2, 6);
	if (flags & 4)
		wg_tick(101 * WG_SECOND);
	if (why_look(w, (struct guest *)&wg, NULL) ||
	    why_judge(w, (struct guest *)&wg, &result, NULL))
		abort();
	if (wg.reads > 4ull * WHY_MAX_READS)
		abort();
	check_result(result);
	json_decref(result);
	why_destroy(w);
	return 0;
}
