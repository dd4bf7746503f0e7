/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The demo kernel: a guest whose profile is known in advance. See main.c. */
#ifndef DEMO_H
#define DEMO_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

#if defined(__has_attribute)
#if __has_attribute(noipa)
#define DEMO_NOIPA __attribute__((noipa))
#endif
#endif
#ifndef DEMO_NOIPA
#define DEMO_NOIPA
#endif

/*
 * A function that must appear in stacks under its own name: it is never inlined, cloned
 * (foo.constprop.0) or merged with another one that has the same body.
 */
#define demo_function __attribute__((noinline)) DEMO_NOIPA

/* Keeps a call from becoming a tail call, whatever the compiler flags are. */
#define demo_keep(value) __asm__ volatile("" : "+r"(value))

static inline u64 rdtsc(void)
{
	u32 low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (u64)high << 32 | low;
}

/*
 * Keeps the frame of a leaf function. -fno-omit-frame-pointer does not guarantee it: gcc omits a
 * frame that nothing uses, and then the caller is missing in the stack.
 */
#define demo_frame() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

/* Set in a budget if the other bits are a number of loop turns instead of TSC cycles. */
#define BUDGET_TURNS (1ul << 63)

/*
 * Spends `budget` TSC cycles, or runs that many turns of a loop, and returns the cycles that really
 * passed. It is the body of each leaf. Only TSC values of one privilege level are subtracted,
 * because some hypervisors show different offsets to ring 0 and ring 3.
 */
static inline __attribute__((always_inline)) u64 spin(u64 budget)
{
	u64 start = rdtsc(), spent;

	demo_frame();
	if (budget & BUDGET_TURNS) {
		for (u64 n = budget & ~BUDGET_TURNS; n; n--)
			demo_keep(n);
		return rdtsc() - start;
	}
	do
		spent = rdtsc() - start;
	while (spent < budget);
	return spent;
}

static inline void outb(u16 port, u8 value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline u8 inb(u16 port)
{
	u8 value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static inline u64 rdmsr(u32 msr)
{
	u32 low, high;

	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr));
	return (u64)high << 32 | low;
}

static inline void wrmsr(u32 msr, u64 value)
{
	__asm__ volatile("wrmsr" : : "c"(msr), "a"((u32)value), "d"((u32)(value >> 32)) : "memory");
}

struct cpuid_regs {
	u32 a, b, c, d;
};

static inline struct cpuid_regs cpuid(u32 leaf)
{
	struct cpuid_regs r;

	__asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(leaf), "c"(0));
	return r;
}

/* -- work.c ------------------------------------------------------------------------------------ */

/*
 * Runs its call tree once, spends `budget` cycles in the leaf, and returns the cycles measured
 * there. The next seven functions do the same.
 */
u64 flat_spin(u64 budget);
u64 tree_enter_left(u64 budget);
u64 tree_enter_right(u64 budget);
u64 share_from_a(u64 budget);
u64 share_from_b(u64 budget);
u64 deep_01(u64 budget);
u64 recurse_enter(u64 budget);
u64 irqoff_outer(u64 budget);
/* RFLAGS.IF as seen by irqoff_leaf(). It stays set once it was set. */
extern u64 irqoff_saw_if;
/*
 * Halts until `budget` cycles have passed, and returns the cycles. A halt ends with the next IRQ 0,
 * so this may take one of its periods longer.
 */
u64 idle_wait(u64 budget);
/*
 * Writes `count` bytes to a port without effect, a quarter of them on one path and the rest on
 * another.
 */
void ports_write(u64 count);
/*
 * Crashes the machine by a triple fault; if divide is not 0, by a division by zero, which fault()
 * reports.
 */
void crash_outer(int divide);

/* The virtual address at which ring 0 has the first GiB of memory. */
#define KERNEL_MAP 0xffffffff80000000ul

/* -- user.c, and the entry to it (start.S) ----------------------------------------------------- */

enum {
	USER_LONG,
	USER_SHORT,
	USER_PAGES,
	USER_PAGES_NO_1G,
	USER_PHASES,
	USER_GAPS,
	USER_SELFCHECK,
	USER_WHERE
};

#define NR_PHASES 8u

/* Data exchanged between modes.c and ring 3, at the low end of user_stack. */
union user_box {
	struct {
		u64 end, step; /* TSC cycles; a phase lasts a step */
		u64 spent[NR_PHASES];
	} phases;
	/* Gaps longer than `gap` cycles are added to `stolen` instead of ring 3's own time. */
	struct {
		u64 gap, stolen;
	} where;
	/*
	 * tests/bench/bench_cost.c reads and writes these members from outside, while the guest
	 * runs.
	 */
	struct {
		volatile u64 magic;
		volatile u64 kind; /* written by the host: the current measurement */
		volatile u64 stop; /* written by the host: nonzero ends the run */
		/* Written by the host: longer gaps are recorded, in cycles. */
		volatile u64 threshold;
		volatile u64 tsc, iterations;
		volatile u64 n; /* number of gaps recorded so far */
		volatile struct {
			u32 kind, cycles;
		} gap[512]; /* the last gaps, at index n modulo 512 */
	} gaps;
};
#define GAPS_MAGIC 0x7370616770666d76ul

extern u8 user_stack[];
static inline union user_box *user_box(void)
{
	return (union user_box *)user_stack;
}

/*
 * Runs the function that `which` (USER_*) selects in ring 3, and passes its result to int 0x80.
 * Does not return.
 */
void user_main(u64 which, u64 budget);
/* Runs user_main() in ring 3, and returns the value that it passed to int 0x80. */
u64 enter_user(u64 which, u64 budget);

/* -- modes.c ----------------------------------------------------------------------------------- */

/* Runs the mode that the command line selects. Returns 0 if it selects none. */
int mode_run(const char *line, u64 khz, u64 seconds);

/* -- where.c ----------------------------------------------------------------------------------- */

/* Runs mode=where. */
void where_run(const char *line, u64 khz, u64 seconds);

/* -- pvclock.c --------------------------------------------------------------------------------- */

/* Runs mode=pvclock. */
void pvclock_run(u64 khz, u64 seconds);

/* -- nested.c ---------------------------------------------------------------------------------- */

/* Runs mode=nested. */
void nested_run(u64 khz, u64 seconds);

/* -- options.c: parameters of the command line ------------------------------------------------- */

#define CMD_LINE_MAX 2048
extern char command_line[CMD_LINE_MAX];
/* Copies the command line of the boot protocol to command_line. */
void command_line_copy(u64 boot_params);
/* Returns the value of a parameter ("name="), which points into `line`, or NULL. */
const char *option_find(const char *line, const char *name);
/* Returns the decimal value of a parameter, or `fallback` if it is missing or not a number. */
u64 option_number(const char *line, const char *name, u64 fallback);
/* Returns 1 if a parameter has this value, else 0. */
int option_is(const char *line, const char *name, const char *value);

/* -- machine.c --------------------------------------------------------------------------------- */

/* The frequency of the timer, whose interrupts are counted. */
#define IRQ0_HZ 20u
extern volatile u64 irq0_count;
/* Loads the task state segment and the interrupt table, with gates for all exceptions. */
void tables_init(void);
/* Sets an interrupt gate. `entry` is code of ring 0; dpl 3 lets ring 3 use it with `int`. */
void gate_set(unsigned int vector, const u8 *entry, u64 dpl);
/* Starts IRQ 0 with IRQ0_HZ: often enough to have interrupts, too rarely to change the shares. */
void timer_init(void);
/* Returns the TSC frequency in kHz, or 0 if it is unknown, and stores the name of its source. */
u32 tsc_khz_find(const char **source);
/* Resets the machine. */
__attribute__((noreturn)) void machine_reset(void);

/* -- console.c --------------------------------------------------------------------------------- */

/* Initialises COM1. */
void console_init(void);
/* Writes text to COM1, like the three functions below. */
void put_string(const char *s);
/* Writes a number in decimal. */
void put_number(u64 value);
/* Writes a number as 0x and 16 digits. */
void put_hex(u64 value);
/* Writes part/whole in percent with two decimals. */
void put_percent(u64 part, u64 whole);

#endif
