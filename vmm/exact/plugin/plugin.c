/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/plugin/plugin.h"

#include "vmm/exact/plugin/calls.h"
#include "vmm/exact/plugin/trace.h"
#include "vmm/exact/shared.h"
#include "vmm/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Maximum number of instructions of a block in QEMU (TCG_MAX_INSNS). */
#define BLOCK_MAX 512u
#define BLOCK_BUCKETS 4096u
/*
 * Ports and bits of QEMU's pc as its firmware configures it: PM1a_CNT_BLK with SLP_EN and SLP_TYP,
 * which is 0 for power-off (hw/acpi/core.c, acpi_pm1_cnt_write; ACPI 4.8.4.2.1).
 */
#define PM1_CONTROL 0x604u
#define SLEEP_ENABLE (1u << 13)
#define SLEEP_TYPE (7u << 10)

/* The instruction lengths of a block. Blocks with equal lengths share one; there are few. */
struct plugin_block {
	struct plugin_block *next;
	uint32_t n;
	uint16_t off[]; /* bytes from its start to each instruction */
};

/* The context of a block's callback if calls are counted. */
struct counted {
	const struct plugin_block *block;
	struct callstacks_block *calls;
};

/* The context of a block's callback with a trace. */
struct traced_block {
	const struct plugin_block *block;
	const struct traced *traced;
};

/*
 * A part of a block that contains places: from one place, or the block's start, up to the next
 * place.
 */
struct plugin_part {
	const struct plugin_block *block;
	struct callstacks_block *calls;
	uint16_t off;	/* bytes from the block's start */
	uint32_t place; /* bit i: it may begin with place i */
};

static const char *const register_names[] = { EXACT_REGISTER_NAMES };
enum { REGISTER_RAX = 0, REGISTER_RDX = 2, REGISTER_RIP = 16 };
#define REGISTERS EXACT_REGISTERS
_Static_assert(sizeof(register_names) / sizeof(register_names[0]) == REGISTERS, "one name each");

/* The plugin's state. QEMU calls the plugin on one thread at a time (thread=single). */
static struct {
	struct exact_shared *shared;
	int request, answer;
	struct qemu_handle handle[REGISTERS];
	bool known; /* the handles are */
	struct glib_array *bytes;
	struct plugin_block *bucket[BLOCK_BUCKETS];
	bool counts, trace;
	uint32_t part;	   /* the last one that the program has requested */
	uint64_t block_pc; /* runtime address of the block with places that runs now */
} plugin;

/* QEMU reads it when it loads the plugin; no value is accepted by all of its releases. */
int qemu_plugin_version = QEMU_API_LEAST;

__attribute__((constructor)) static void choose_version(void)
{
	const char *wanted = getenv("KVMPROF_QEMU_API");

	if (wanted && atoi(wanted) >= QEMU_API_LEAST && atoi(wanted) <= QEMU_API_MOST)
		qemu_plugin_version = atoi(wanted);
}

/* Ends QEMU at once, when the program has gone or the run cannot continue correctly. */
static void plugin_gives_up(void)
{
	syscall(SYS_exit_group, 1);
}

/* -- registers ---------------------------------------------------------------------------- */

/* Passes the handles that calls.c needs, by name. */
static void tell_registers(void)
{
	static const char *const wanted[CALLS_REGISTERS] = { "rsp", "rip",     "cr0",	   "cr3",
							     "cs",  "gs_base", "k_gs_base" };
	struct qemu_handle handle[CALLS_REGISTERS] = { { NULL, false } };

	for (unsigned int w = 0; w < CALLS_REGISTERS; w++)
		for (unsigned int k = 0; k < REGISTERS; k++)
			if (!strcmp(register_names[k], wanted[w]))
				handle[w] = plugin.handle[k];
	calls_set_registers(handle);
}

static void vcpu_begins(void)
{
	struct glib_array *all;
	unsigned int size;

	if (plugin.known)
		return;
	all = qemu_plugin_get_registers();
	size = g_array_get_element_size(all);
	plugin.known = true;
	for (unsigned int i = 0; i < all->len; i++) {
		const struct qemu_register *r = (const void *)(all->data + (size_t)i * size);

		for (unsigned int k = 0; k < REGISTERS; k++)
			if (!strcmp(r->name, register_names[k]))
				plugin.handle[k] = (struct qemu_handle){ r->handle, true };
	}
	for (unsigned int k = 0; k < REGISTERS; k++)
		if (!plugin.handle[k].known)
			snprintf(plugin.shared->error, sizeof(plugin.shared->error),
				 "this QEMU does not show register %s", register_names[k]);
	tell_registers();
}

/* -- samples ------------------------------------------------------------------------------ */

static void pass_token(int fd, bool take)
{
	uint64_t token = 1;
	ssize_t n;

	do
		n = take ? read(fd, &token, sizeof(token)) : write(fd, &token, sizeof(token));
	while (n < 0 && errno == EINTR);
	if (n != sizeof(token))
		plugin_gives_up();
}

static void read_registers(struct exact_regs *out)
{
	uint64_t *word = (uint64_t *)out;

	for (unsigned int i = 0; i < REGISTERS; i++)
		word[i] = qemu_api_read(&plugin.handle[i], plugin.bytes);
}

/* Stops the vCPU until the program answers. pc: the value of RIP; 0: as QEMU reports it. */
static void stand(uint64_t at, uint64_t ahead, uint64_t pc)
{
	struct exact_shared *s = plugin.shared;

	read_registers(&s->regs);
	if (pc)
		s->regs.rip = pc;
	s->at = at;
	s->ahead = ahead;
	pass_token(plugin.request, false);
	pass_token(plugin.answer, true);
	if (s->anew) {
		s->anew = 0;
		calls_reset();
	}
	if (s->part != plugin.part) {
		plugin.part = s->part;
		calls_begin_part(plugin.part);
	}
}

static void stand_for_good(uint32_t end)
{
	plugin.shared->off = end;
	pass_token(plugin.request, false);
	for (;;) {
		pass_token(plugin.answer, true);
		/* QEMU cannot end by itself while its vCPU is stopped. */
		if (plugin.shared->frozen) {
			calls_end();
			plugin_gives_up();
		}
	}
}

/*
 * Stops the guest for good before an OUT that powers off or exits. QEMU's main thread performs
 * these at some later time, and until then the guest would continue for a number of instructions
 * that differs each time. So the vCPU stops before the instruction, which is the last of its
 * block.
 */
static void out_begins(unsigned int vcpu, void *ctx)
{
	uint64_t port = qemu_api_read(&plugin.handle[REGISTER_RDX], plugin.bytes) & 0xffff;
	uint64_t value = qemu_api_read(&plugin.handle[REGISTER_RAX], plugin.bytes);

	(void)vcpu;
	(void)ctx;
	if (port == PM1_CONTROL && (value & (SLEEP_ENABLE | SLEEP_TYPE)) == SLEEP_ENABLE)
		stand_for_good(EXACT_OFF);
	if (port == PORT_DEBUG_EXIT)
		stand_for_good(EXACT_EXIT | (uint32_t)(value & 0xff) << EXACT_EXIT_SHIFT);
}

static void count(const struct plugin_block *b, uint64_t pc)
{
	struct exact_shared *s = plugin.shared;
	uint64_t before = s->count, after = before + b->n;

	while (__builtin_expect(after >= s->next, 0)) {
		uint64_t at = s->next;

		/* In the case of 0 nothing has run yet, and the program may not be ready. */
		stand(at, at > before ? b->off[at - before - 1] : 0, pc);
		if (s->next <= at)
			plugin_gives_up();
	}
	s->count = after;
}

static void block_begins(unsigned int vcpu, void *ctx)
{
	(void)vcpu;
	count(ctx, 0);
}

static void counted_block_begins(unsigned int vcpu, void *ctx)
{
	const struct counted *x = ctx;

	(void)vcpu;
	count(x->block, 0);
	if (!plugin.shared->frozen)
		calls_run(x->calls);
}

static void traced_block_begins(unsigned int vcpu, void *ctx)
{
	const struct traced_block *x = ctx;
	uint64_t before = plugin.shared->count;
	struct exact_regs regs;

	(void)vcpu;
	count(x->block, 0);
	if (plugin_trace_run(x->traced, before)) {
		read_registers(&regs);
		plugin_trace_record(x->traced, before, &regs);
	}
}

static void part_begins(unsigned int vcpu, void *ctx)
{
	struct exact_shared *s = plugin.shared;
	const struct plugin_part *x = ctx;
	uint64_t pc;

	(void)vcpu;
	/* QEMU may run one block at two addresses; which one is known only now. */
	if (!x->off)
		plugin.block_pc = qemu_api_read(&plugin.handle[REGISTER_RIP], plugin.bytes);
	pc = plugin.block_pc + x->off;
	for (uint32_t i = 0; i < EXACT_MAX_PLACES; i++) {
		if (!(x->place >> i & 1) || s->place[i].addr != pc)
			continue;
		s->reached = i + 1;
		stand(s->count + 1, 0, pc);
		s->reached = 0;
	}
	count(x->block, pc);
	if (plugin.counts && !s->frozen)
		calls_run(x->calls);
}

/* -- blocks ------------------------------------------------------------------------------- */

static struct plugin_block *block_of(const uint16_t *off, uint32_t n)
{
	struct plugin_block **at, *b;
	uint32_t hash = n;

	for (uint32_t i = 0; i < n; i++)
		hash = (hash ^ off[i]) * UINT32_C(0x01000193);
	at = &plugin.bucket[(hash ^ hash >> 16) % BLOCK_BUCKETS];
	for (b = *at; b; b = b->next)
		if (b->n == n && !memcmp(b->off, off, n * sizeof(off[0])))
			return b;
	b = malloc(sizeof(*b) + n * sizeof(off[0]));
	if (!b)
		plugin_gives_up();
	b->next = *at;
	b->n = n;
	memcpy(b->off, off, n * sizeof(off[0]));
	*at = b;
	return b;
}

/* Returns whether the instruction is OUT DX, AL, AX or EAX (SDM vol. 2). */
static bool is_out(const struct qemu_plugin_insn *insn)
{
	uint8_t b[2];
	size_t n = qemu_plugin_insn_data(insn, b, sizeof(b));

	return (n >= 1 && (b[0] & 0xfe) == 0xee) || (n == 2 && b[0] == 0x66 && b[1] == 0xef);
}

/* Returns a bit for each place that may be at this address. */
static uint32_t places_at(uint64_t va)
{
	uint32_t places = 0;

	for (uint32_t i = 0; i < EXACT_MAX_PLACES && i < plugin.shared->nplaces; i++)
		if (!((plugin.shared->place[i].linked ^ va) % EXACT_MOVES_BY))
			places |= 1u << i;
	return places;
}

/* Counts a part: n instructions from number `from`. */
static void count_part(struct qemu_plugin_tb *tb, const uint16_t *off, uint32_t from, uint32_t n)
{
	struct plugin_part *x = malloc(sizeof(*x));
	uint16_t own[BLOCK_MAX];

	if (!x)
		plugin_gives_up();
	for (uint32_t i = 0; i < n; i++)
		own[i] = (uint16_t)(off[from + i] - off[from]);
	*x = (struct plugin_part){
		.block = block_of(own, n),
		.off = off[from],
		.place = places_at(qemu_plugin_tb_vaddr(tb) + off[from]),
		.calls = plugin.counts ? calls_block(tb, from, n) : NULL,
	};
	qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, from), part_begins,
					       QEMU_READS_REGISTERS, x);
}

/* Returns false if no place is in the block. */
static bool count_in_parts(struct qemu_plugin_tb *tb, const uint16_t *off, uint32_t n)
{
	uint64_t pc = qemu_plugin_tb_vaddr(tb);
	uint32_t i = 0, from = 0;

	while (i < n && !places_at(pc + off[i]))
		i++;
	if (i == n)
		return false;
	for (i = 1; i <= n; i++) {
		if (i < n && !places_at(pc + off[i]))
			continue;
		count_part(tb, off, from, i - from);
		from = i;
	}
	return true;
}

static void count_block(struct qemu_plugin_tb *tb, const struct plugin_block *b)
{
	struct counted *x = malloc(sizeof(*x));

	if (!x)
		plugin_gives_up();
	x->block = b;
	x->calls = calls_block(tb, 0, b->n);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, counted_block_begins, QEMU_READS_REGISTERS, x);
}

static void trace_block(struct qemu_plugin_tb *tb, const struct plugin_block *b)
{
	struct traced_block *x = malloc(sizeof(*x));

	if (!x)
		plugin_gives_up();
	x->block = b;
	x->traced = plugin_trace_block(tb);
	if (!x->traced)
		plugin_gives_up();
	qemu_plugin_register_vcpu_tb_exec_cb(tb, traced_block_begins, QEMU_READS_REGISTERS, x);
}

static void block_is_made(struct qemu_plugin_tb *tb)
{
	uint32_t n = (uint32_t)qemu_plugin_tb_n_insns(tb);
	uint16_t off[BLOCK_MAX];
	uint16_t at = 0;

	if (n > BLOCK_MAX) {
		snprintf(plugin.shared->error, sizeof(plugin.shared->error),
			 "this QEMU has made a block of %u instructions", n);
		plugin_gives_up();
	}
	for (uint32_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		off[i] = at;
		at = (uint16_t)(at + qemu_plugin_insn_size(insn));
	}
	/* A trace records whole blocks and does not stop at places. */
	if (!plugin.trace && count_in_parts(tb, off, n))
		/*
		 * Registered before out_begins(): a part is counted before its first instruction
		 * is executed.
		 */
		;
	else if (plugin.counts)
		count_block(tb, block_of(off, n));
	else if (plugin.trace)
		trace_block(tb, block_of(off, n));
	else
		qemu_plugin_register_vcpu_tb_exec_cb(tb, block_begins, QEMU_READS_REGISTERS,
						     block_of(off, n));
	for (uint32_t i = 0; i < n; i++)
		if (is_out(qemu_plugin_tb_get_insn(tb, i)))
			qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, i),
							       out_begins, QEMU_READS_REGISTERS,
							       NULL);
}

/* -- life --------------------------------------------------------------------------------- */

/* Returns the option's value, or NULL if it is missing. */
static const char *option_text(int argc, char **argv, const char *name)
{
	size_t len = strlen(name);

	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], name, len) && argv[i][len] == '=')
			return argv[i] + len + 1;
	return NULL;
}

static int option_number(int argc, char **argv, const char *name)
{
	const char *text = option_text(argc, argv, name);

	return text ? atoi(text) : -1;
}

static uint64_t option_count(int argc, char **argv, const char *name)
{
	const char *text = option_text(argc, argv, name);

	return text ? strtoull(text, NULL, 10) : 0;
}

static int begin_trace(int fd, int argc, char **argv)
{
	struct trace_plan plan = { .step = option_count(argc, argv, "step") };

	plan.window[0].from = option_count(argc, argv, "from0");
	plan.window[0].to = option_count(argc, argv, "to0");
	plan.window[1].from = option_count(argc, argv, "from1");
	plan.window[1].to = option_count(argc, argv, "to1");
	return plugin_trace_begin(fd, &plan);
}

/*
 * Prints the versions that this QEMU supports, and ends it: engine.c starts each candidate for
 * that.
 */
static int answer_version(const struct qemu_info *info)
{
	char text[128];
	int len = snprintf(text, sizeof(text), "%s %d %d %.32s\n", EXACT_ANSWER, info->version.min,
			   info->version.cur, info->target_name);

	if (write(STDOUT_FILENO, text, (size_t)len) < 0)
		return -1;
	plugin_gives_up();
	return -1;
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	int counts = option_number(argc, argv, "counts");
	int memory = option_number(argc, argv, "memory");
	int trace = option_number(argc, argv, "trace");
	struct qemu_callbacks callbacks = { vcpu_begins, block_is_made, NULL };
	struct exact_shared *s;

	if (option_text(argc, argv, "versions"))
		return answer_version(info);
	plugin.request = option_number(argc, argv, "request");
	plugin.answer = option_number(argc, argv, "answer");
	if (memory < 0 || plugin.request < 0 || plugin.answer < 0) {
		fputs("kvmprof's plugin is for kvmprof run --engine exact\n", stderr);
		return -1;
	}
	s = mmap(NULL, EXACT_SHARED_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (s == MAP_FAILED)
		return -1;
	plugin.shared = s;
	s->version = EXACT_VERSION;
	s->qemu_min = info->version.min;
	s->qemu_cur = info->version.cur;
	if (!info->system_emulation || strcmp(info->target_name, "x86_64") != 0)
		snprintf(s->error, sizeof(s->error), "this QEMU is for %.32s", info->target_name);
	plugin.bytes = g_byte_array_new();
	plugin.counts = counts >= 0;
	if (plugin.counts &&
	    calls_begin(counts, (unsigned int)info->system.smp_vcpus, plugin.bytes))
		return -1;
	plugin.trace = trace >= 0;
	if (plugin.trace && begin_trace(trace, argc, argv))
		return -1;
	if (plugin.counts)
		callbacks.ends = calls_end;
	qemu_api_register(id, info, &callbacks);
	s->magic = EXACT_MAGIC;
	return 0;
}
