// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The demo kernel: spends known shares of its time in known call stacks, then prints the real
 * shares, measured with the TSC inside the leaves:
 *
 *   truth <percent> <kernel|user|irqoff|idle> <outermost;...;leaf>
 *   truth-end
 *   outside <percent>
 *
 * The percentages are of the time between the lines "demo: start" and the
 * first "truth", and with "outside" they make up 100.
 *
 * Command line: seconds=N (20); tsc_khz=N (replaces the frequency of CPUID or the PIT);
 * mode=idle (half of the time halted); mode=pages (only memory accesses in ring 3: pages.h), or
 * another mode, see modes.c; crash=triple or crash=divide (after a second's work); ports=N (0)
 * writes to port 0x80 after the work, a quarter of them from ports_a, the others from ports_b.
 *
 * work=N instead of seconds: N rounds in which each leaf does a fixed number of turns
 * of a loop, by the same shares, so that a slower machine takes longer, and so does a
 * slower function. user_work=M (1): ring 3 does M turns for one, for machines on which
 * it is M times faster. slow=FUNCTION:PERMILLE: this leaf does PERMILLE thousandths more.
 *
 * Shares are of time, so they hold whatever the speed of ring 0 and ring 3.
 * Each share is spent in many slices, in random order and of random lengths, so that no period of a
 * sampler can coincide with one of the demo.
 */
#include "demo.h"
#include "pages.h"

#define TURNS_PER_PERCENT 100ul

#define R4 "recurse;recurse;recurse;recurse;"
#define DEEP                                                               \
	"deep_01;deep_02;deep_03;deep_04;deep_05;deep_06;deep_07;deep_08;" \
	"deep_09;deep_10;deep_11;deep_12;deep_13;deep_14;deep_15;deep_16;" \
	"deep_17;deep_18;deep_19;deep_20"
#define CRASH_STACK "demo_main;crash_outer;crash_middle;crash_now"

static u64 run_user_long(u64 budget);
static u64 run_user_short(u64 budget);

struct job {
	u32 percent;
	u64 (*run)(u64 budget);
	const char *where;
	const char *stack;
	u64 left;  /* cycles still to be spent */
	u64 spent; /* cycles measured in the leaf */
	u64 slow;  /* permille of additional work */
};

static struct job jobs[] = {
	{ 25, tree_enter_left, "kernel", "demo_main;tree_enter_left;tree_top;tree_left;left_leaf",
	  0, 0, 0 },
	{ 10, tree_enter_right, "kernel",
	  "demo_main;tree_enter_right;tree_top;tree_right;right_leaf", 0, 0, 0 },
	{ 5, flat_spin, "kernel", "demo_main;flat_spin", 0, 0, 0 },
	{ 6, share_from_a, "kernel", "demo_main;share_from_a;shared_leaf", 0, 0, 0 },
	{ 4, share_from_b, "kernel", "demo_main;share_from_b;shared_leaf", 0, 0, 0 },
	{ 10, deep_01, "kernel", "demo_main;" DEEP, 0, 0, 0 },
	{ 5, recurse_enter, "kernel", "demo_main;recurse_enter;" R4 R4 R4 "recurse_leaf", 0, 0, 0 },
	{ 15, irqoff_outer, "irqoff", "demo_main;irqoff_outer;irqoff_leaf", 0, 0, 0 },
	{ 15, run_user_long, "user", "user_main;user_middle;user_leaf_long", 0, 0, 0 },
	{ 5, run_user_short, "user", "user_main;user_leaf_short", 0, 0, 0 },
	/* Always last: the share is set by mode=idle */
	{ 0, idle_wait, "idle", "demo_main;idle_wait", 0, 0, 0 },
};

#define NR_JOBS (sizeof(jobs) / sizeof(jobs[0]))
#define IDLE_JOB (NR_JOBS - 1)

static u64 user_work = 1;

static u64 user_budget(u64 budget)
{
	return budget & BUDGET_TURNS ? (budget & ~BUDGET_TURNS) * user_work | BUDGET_TURNS : budget;
}

static u64 run_user_long(u64 budget)
{
	return enter_user(USER_LONG, user_budget(budget));
}

static u64 run_user_short(u64 budget)
{
	return enter_user(USER_SHORT, user_budget(budget));
}

static u64 random_state = 0x9e3779b97f4a7c15ul;

/* xorshift (Marsaglia 2003): few instructions, and the same in each run */
static u64 random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Returns whether `name`, of len characters, is the innermost function of this stack. */
static int is_leaf(const char *stack, const char *name, u64 len)
{
	const char *leaf = stack;

	for (; *stack; stack++)
		if (*stack == ';')
			leaf = stack + 1;
	for (u64 i = 0; i < len; i++)
		if (leaf[i] != name[i])
			return 0;
	return !leaf[len];
}

/*
 * Applies slow=FUNCTION:PERMILLE. PERMILLE 0 is allowed; such a run is the baseline for
 * comparisons.
 */
static void slow_apply(const char *line)
{
	const char *name = option_find(line, "slow=");
	u64 len = 0, permille = 0;
	int found = 0;

	if (!name)
		return;
	while (name[len] && name[len] != ' ' && name[len] != ':')
		len++;
	if (name[len] == ':')
		permille = option_number(name + len, ":", 0);
	for (u32 i = 0; i < NR_JOBS; i++) {
		if (!is_leaf(jobs[i].stack, name, len))
			continue;
		jobs[i].slow = permille;
		jobs[i].left += jobs[i].left / 1000 * permille;
		found = 1;
	}
	/* Nothing is printed if it is valid, so that the rest of the run stays the same. */
	if (!found)
		put_string("demo: slow=FUNCTION:PERMILLE names no leaf\n");
}

/*
 * Contains each job as often as its share, so that choosing one by a random index costs only a few
 * instructions.
 */
static u8 lots[200];
static u32 nr_lots;

static void lots_fill(void)
{
	for (u32 i = 0; i < IDLE_JOB; i++)
		for (u32 n = jobs[i].percent; n > 0; n--)
			lots[nr_lots++] = (u8)i;
	/* Half of the time, so as many lots as all others together. */
	for (u32 n = jobs[IDLE_JOB].left ? nr_lots : 0; n > 0; n--)
		lots[nr_lots++] = IDLE_JOB;
}

/* Returns a random job that has time left; NULL at the end. */
static struct job *job_pick(void)
{
	u32 first, i;

	demo_frame();
	i = first = lots[random_next() % nr_lots];
	do {
		if (jobs[i].left)
			return &jobs[i];
		i = i ? i - 1 : IDLE_JOB;
	} while (i != first);
	return 0;
}

/*
 * Returns the average length of a slice. The cost of a round outside of its leaf must be less than
 * 1/2000 of it. About half of that cost is measured here (entering and leaving the trees, without
 * the accounting); on a KVM that interprets ring 0 it is 1000 times that of other machines.
 */
static u64 slice_find(u64 total, u64 cycles_per_ms)
{
	u64 cost = 0, slice;

	/* Twice: the first is the warm-up. */
	for (int turn = 0; turn < 2; turn++) {
		u64 start = rdtsc();

		for (u32 i = 0; i < IDLE_JOB; i++) {
			job_pick();
			jobs[i].run(0);
		}
		cost = (rdtsc() - start) / IDLE_JOB;
	}
	slice = cost * 4000;
	/* At least 150 slices, so that the order looks random. */
	if (slice > total / 150)
		slice = total / 150;
	if (slice < 12 * cycles_per_ms)
		slice = 12 * cycles_per_ms;
	return slice;
}

static void truth_print(u64 total)
{
	u64 inside = 0;

	for (u32 i = 0; i < NR_JOBS; i++) {
		if (!jobs[i].percent)
			continue;
		put_string("truth ");
		put_percent(jobs[i].spent, total);
		put_string(" ");
		/* Measured by the leaf itself. */
		if (jobs[i].run == irqoff_outer && irqoff_saw_if)
			put_string("irqs-were-on");
		else
			put_string(jobs[i].where);
		put_string(" ");
		put_string(jobs[i].stack);
		put_string("\n");
		inside += jobs[i].spent;
	}
	put_string("truth-end\noutside ");
	put_percent(inside < total ? total - inside : 0, total);
	put_string("\n");
}

static u32 banner_print(const char *line, u64 seconds, u64 work)
{
	const char *source = "command line";
	u32 khz = (u32)option_number(line, "tsc_khz=", 0);

	if (!khz)
		khz = tsc_khz_find(&source);
	if (!khz) {
		source = "a guess";
		khz = 2000000;
	}
	put_string("demo: kvmprof demo kernel, ");
	put_string(work ? "work " : "seconds ");
	put_number(work ? work : seconds);
	put_string("\ndemo: tsc ");
	put_number(khz);
	put_string(" kHz from ");
	put_string(source);
	put_string("\n");
	return khz;
}

/* Spends all remaining time. Returns the number of slices. */
static u64 spend_time(u64 slice, u64 crash_after)
{
	u64 start = rdtsc(), rounds = 0;
	struct job *job;

	while ((job = job_pick())) {
		u64 budget = slice / 2 + random_next() % slice, spent;

		/* Avoids a tiny last slice. */
		if (job->left < budget + slice / 4)
			budget = job->left;
		spent = job->run(budget);
		job->spent += spent;
		job->left -= spent < job->left ? spent : job->left;
		rounds++;
		if (crash_after && rdtsc() - start > crash_after) {
			crash_after = 0;
			put_string("demo: crashing in " CRASH_STACK "\n");
			crash_outer(option_is(command_line, "crash=", "divide"));
		}
	}
	return rounds;
}

/*
 * Works in short rounds with all leaves in each: when the machine gets slower for a while, all
 * leaves get slower alike, and the shares stay the same. Each round begins with another leaf.
 */
static u64 do_work(u64 work)
{
	u64 rounds = 0;

	for (; rounds < work; rounds++) {
		u32 i = (u32)(random_next() % IDLE_JOB);

		for (u32 n = 0; n < IDLE_JOB; n++) {
			struct job *job = &jobs[i];
			u64 turns = job->percent * TURNS_PER_PERCENT, extra = turns * job->slow;

			/* Fractions of a turn add up over the rounds. */
			turns += extra * (rounds + 1) / 1000 - extra * rounds / 1000;
			job->spent += job->run(turns | BUDGET_TURNS);
			i = i + 1 < IDLE_JOB ? i + 1 : 0;
		}
	}
	return rounds * IDLE_JOB;
}

/* The root of all kernel stacks: start.S jumps here with rbp = 0 and a zero
 * return address. */
demo_function void demo_main(u64 boot_params);
demo_function void demo_main(u64 boot_params)
{
	u64 seconds, khz, total, work, slice, start, end, ports, rounds;

	command_line_copy(boot_params);
	seconds = option_number(command_line, "seconds=", 20);
	if (!seconds || seconds > 86400)
		seconds = 20;
	work = option_number(command_line, "work=", 0);
	user_work = option_number(command_line, "user_work=", 1);
	console_init();
	tables_init();
	khz = banner_print(command_line, seconds, work);
	total = khz * 1000 * seconds;
	if (option_is(command_line, "mode=", "pages")) {
		timer_init();
		pages_run(total);
		machine_reset();
	}
	if (option_is(command_line, "mode=", "idle")) {
		for (u32 i = 0; i < IDLE_JOB; i++)
			jobs[i].left = total / 200 * jobs[i].percent;
		jobs[IDLE_JOB].percent = 50;
		jobs[IDLE_JOB].left = total / 2;
	} else {
		for (u32 i = 0; i < IDLE_JOB; i++)
			jobs[i].left = total / 100 * jobs[i].percent;
	}
	slow_apply(command_line);
	lots_fill();
	timer_init();
	if (mode_run(command_line, khz, seconds)) {
		put_string("demo: done\n");
		machine_reset();
	}
	slice = slice_find(total, khz);
	if (!work) {
		put_string("demo: slices of about ");
		put_number(slice / (khz / 1000));
		put_string(" us\n");
	}
	put_string("demo: start\n");

	start = rdtsc();
	rounds = work ? do_work(work)
		      : spend_time(slice, option_find(command_line, "crash=") ? khz * 1000 : 0);
	end = rdtsc();

	ports = option_number(command_line, "ports=", 0);
	ports_write(ports);
	truth_print(end - start);
	put_string("demo: ");
	put_number((end - start) / khz);
	put_string(" ms, ");
	put_number(rounds);
	put_string(" slices, ");
	put_number(irq0_count);
	put_string(" timer interrupts\ndemo: done\n");
	machine_reset();
}
