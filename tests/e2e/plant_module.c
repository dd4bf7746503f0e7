/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plant_module: makes a guest's kernel stand still in one of several ways.
 *
 * It is compiled without the kernel's headers, and plant.py links it for one kernel. The addresses of the kernel's
 * functions are absolute symbols, so nothing is left to resolve, and what depends on a kernel's configuration (struct
 * module) is taken from another module of that kernel. Locks and timers are zeroed storage, larger than the kernel's own
 * types, which the kernel's functions initialise.
 *
 * What is true is written to the first serial port, byte by byte, and not to the kernel's log:
 *
 *	plant: truth KEY=VALUE...
 *	plant: planted
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long u64;

#define FOREVER 0x3fffffffffffffffL
#define MAX_THREADS 4
#define PIDTYPE_PID 0

/* The plan: plant_init finds it by its mark, and fills it in before it loads the module. */
static volatile struct {
	char mark[16];
	u32 CAUSE, KIND, CPU, THREADS, DELAY, SEED;
} plan = { "plant: the plan", 0, 0, 0, 0, 0, 0 };
#define PLAN(name) (plan.name)

/* As plant.py numbers them. */
enum cause {
	MUTEX = 1,
	DEADLOCK,
	SPINLOCK,
	IRQS_OFF,
	HALTED_IRQS_OFF,
	LOST_TIMER,
	PENDING_INTERRUPT,
	RCU_STALL,
	HUNG_TASK,
	WORKQUEUE,
	SOFT_LOCKUP,
	IRQ_STORM,
	PANIC = 15,
	STACK_OVERFLOW,
	BOOT_WAIT,
};

/* The kernel's functions; one that a kernel lacks has the address 0. */
extern void *kthread_create_on_node(int (*fn)(void *), void *arg, int node, const char *format,
				    ...);
extern void kthread_bind(void *task, u32 cpu);
extern int wake_up_process(void *task);
extern int __task_pid_nr_ns(void *task, int type, void *ns);
extern void mutex_lock(void *lock);
extern void __mutex_init(void *lock, const char *name, void *key) __attribute__((weak));
extern void mutex_init_generic(void *lock);
extern void __init_rwsem(void *lock, const char *name, void *key);
extern void down_read(void *lock);
extern void down_write(void *lock);
extern void _raw_spin_lock(void *lock);
extern u64 _raw_spin_lock_irqsave(void *lock);
extern void _raw_spin_lock_bh(void *lock);
extern void msleep(u32 ms);
extern long schedule_timeout_uninterruptible(long timeout);
extern long schedule_timeout_interruptible(long timeout);
extern void wait_for_completion(void *completion);
extern u8 queue_work_on(int cpu, void *queue, void *work);
extern char system_wq[], system_highpri_wq[];
extern void tasklet_init(void *tasklet, void (*fn)(u64), u64 arg);
extern void __tasklet_schedule(void *tasklet);
extern void __tasklet_hi_schedule(void *tasklet);
extern u8 irq_work_queue(void *work);
extern void panic(const char *format, ...);
extern void __rcu_read_lock(void);
extern void synchronize_rcu(void);
extern int cond_resched(void);
extern void native_apic_mem_write(u32 reg, u32 value);

int init_module(void);
void cleanup_module(void);

static u8 storage[MAX_THREADS][256] __attribute__((aligned(64)));
static u64 completion[8] = { 0, 0, (u64)&completion[2], (u64)&completion[2] };
static volatile u32 ready, in_order, counter, never;
static u8 work[2][64] __attribute__((aligned(64))), again[256] __attribute__((aligned(64)));
static char thread_names[MAX_THREADS + 1][16];
static int tids[MAX_THREADS];

/* The console, without the kernel's help. */

static void out_byte(u32 port, u8 value)
{
	__asm__ volatile("outb %0, %w1" : : "a"(value), "d"(port));
}

static u8 in_byte(u32 port)
{
	u8 value;

	__asm__ volatile("inb %w1, %0" : "=a"(value) : "d"(port));
	return value;
}

static void say(const char *text)
{
	for (; *text; text++) {
		for (u32 i = 0; i < 10000 && !(in_byte(0x3fd) & 0x20); i++)
			;
		out_byte(0x3f8, (u8)*text);
	}
}

static void say_number(const char *key, u64 value, u32 base)
{
	char digits[24];
	u32 at = sizeof(digits) - 1;

	digits[at] = '\0';
	do
		digits[--at] = "0123456789abcdef"[value % base];
	while (value /= base);
	say(key);
	say(digits + at);
}

static void sleep_forever(void)
{
	for (;;)
		schedule_timeout_interruptible(FOREVER);
}

static void wait_forever(void)
{
	if (PLAN(SEED) & 1)
		wait_for_completion(completion);
	for (;;)
		schedule_timeout_uninterruptible(FOREVER);
}

/* Three endless loops: one that does nothing, one that waits for a word, and one that computes. */
static void loop_forever(void)
{
	for (;;)
		switch (PLAN(SEED) % 3) {
		case 0:
			break;
		case 1:
			while (!never)
				__asm__ volatile("pause");
			break;
		default:
			counter = counter * 69069 + 1;
		}
}

static void start(u32 i, int (*fn)(void *), int cpu)
{
	char *name = thread_names[i];
	u32 x = PLAN(SEED) * 2654435761u + i * 40503u;
	void *task;

	name[0] = (char)('k' + i);
	for (u32 k = 1; k < 8; k++, x = x * 69069 + 12345)
		name[k] = (char)('a' + (x >> 24) % 26);
	task = kthread_create_on_node(fn, (void *)(u64)i, -1, "%s", name);
	if ((u64)task > (u64)-4096) {
		say("plant: failed: no thread\n");
		return;
	}
	tids[i % MAX_THREADS] = __task_pid_nr_ns(task, PIDTYPE_PID, 0);
	say_number("plant: truth thread=", i, 10);
	say_number(" tid=", (u64)tids[i % MAX_THREADS], 10);
	say(" comm=");
	say(name);
	say("\n");
	if (cpu >= 0)
		kthread_bind(task, (u32)cpu);
	wake_up_process(task);
}

/* Mutexes and rwsems. */

static u32 kind_of(u32 i)
{
	return PLAN(KIND) >> (4 * i) & 0xf;
}

static void lock_init(u32 i)
{
	if (kind_of(i) != 0)
		__init_rwsem(storage[i], "plant", 0);
	else if (__mutex_init)
		__mutex_init(storage[i], "plant", 0);
	else
		mutex_init_generic(storage[i]);
	say_number("plant: truth lock=", i, 10);
	say_number(" address=0x", (u64)storage[i], 16);
	say(kind_of(i) == 0   ? " kind=mutex\n"
	    : kind_of(i) == 1 ? " kind=rwsem-write\n"
			      : " kind=rwsem-read\n");
}

static void take(u32 i, int first)
{
	if (kind_of(i) == 0)
		mutex_lock(storage[i]);
	else if (kind_of(i) == 2 && first)
		down_read(storage[i]);
	else
		down_write(storage[i]);
}

static int hold_and_wait(void *arg)
{
	(void)arg;
	take(0, 1);
	ready = 1;
	if (PLAN(SEED) & 4)
		sleep_forever();
	wait_forever();
	return 0;
}

static int want_lock(void *arg)
{
	(void)arg;
	while (!ready)
		msleep(1);
	in_order = in_order + 1;
	take(0, 0);
	return 0;
}

/* Thread i has lock i, and wants the next one once all have theirs. */
static int take_in_a_ring(void *arg)
{
	u32 i = (u32)(u64)arg;

	take(i, 1);
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	while (ready < PLAN(THREADS))
		msleep(1);
	msleep(i);
	__atomic_add_fetch(&in_order, 1, __ATOMIC_SEQ_CST);
	take((i + 1) % PLAN(THREADS), 0);
	return 0;
}

static void plant_locks(void)
{
	u32 n = PLAN(THREADS);

	for (u32 i = 0; i < (PLAN(CAUSE) == DEADLOCK ? n : 1); i++)
		lock_init(i);
	for (u32 i = 0; i < n; i++)
		start(i,
		      PLAN(CAUSE) == DEADLOCK ? take_in_a_ring
		      : i		      ? want_lock
					      : hold_and_wait,
		      -1);
	while (in_order < (PLAN(CAUSE) == DEADLOCK ? n : n - 1))
		msleep(1);
	msleep(20);
}

/* Spinlocks. */

static void spin(u32 i)
{
	if (PLAN(KIND) & 1)
		_raw_spin_lock_irqsave(storage[i]);
	else if (PLAN(KIND) & 2)
		_raw_spin_lock_bh(storage[i]);
	else
		_raw_spin_lock(storage[i]);
}

/* The owner never lets go of it, or it waits for the other processor's lock. */
static int spin_owner(void *arg)
{
	u32 i = (u32)(u64)arg;

	spin(i);
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	if (!(PLAN(KIND) & 4))
		loop_forever();
	while (ready < 2)
		__asm__ volatile("pause");
	in_order = in_order + 1;
	spin(!i);
	return 0;
}

static int spin_waiter(void *arg)
{
	(void)arg;
	while (!ready)
		__asm__ volatile("pause");
	in_order = in_order + 1;
	spin(0);
	return 0;
}

/* The word as it is when its owner has gone without an unlock. */
static void plant_spinlock(void)
{
	int cpu = (int)PLAN(CPU);

	say_number("plant: truth lock=0 kind=spinlock address=0x", (u64)storage[0], 16);
	say("\n");
	if (PLAN(KIND) & 8) {
		*(volatile u32 *)storage[0] = 1;
		ready = 1;
		start(0, spin_waiter, cpu);
		return;
	}
	start(0, spin_owner, cpu);
	start(1, PLAN(KIND) & 4 ? spin_owner : spin_waiter, !cpu);
}

/* A processor that does nothing else any more. */

static int no_interrupts(void *arg)
{
	(void)arg;
	__asm__ volatile("cli");
	loop_forever();
	return 0;
}

static int halted(void *arg)
{
	(void)arg;
	__asm__ volatile("cli");
	for (;;)
		__asm__ volatile("hlt");
	return 0;
}

static int locked_up(void *arg)
{
	(void)arg;
	_raw_spin_lock(storage[0]);
	loop_forever();
	return 0;
}

/* The timer's line in the local APIC is masked (its register 0x320), as by firmware or a defect of the host. */
static int mask_timer(void *arg)
{
	u32 low, high, masked = 0x10000 | 0xec | (PLAN(KIND) & 1 ? 0x40000 : 0);

	(void)arg;
	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(0x1b));
	if (low & 0x400)
		__asm__ volatile("wrmsr" : : "a"(masked), "d"(0), "c"(0x832));
	else if (low & 0x800)
		native_apic_mem_write(0x320, masked);
	if (PLAN(KIND) & 2) {
		/* A machine with one processor and no local APIC: the timer chip counts no more. */
		out_byte(0x43, 0x30);
		out_byte(0x21, in_byte(0x21) | 1);
	}
	ready = 1;
	return 0;
}

static int raise_priority(void *arg)
{
	(void)arg;
	__asm__ volatile("mov %0, %%cr8" : : "r"(15ul));
	ready = 1;
	if (PLAN(KIND) & 1)
		loop_forever();
	return 0;
}

/* RCU, tasks and work. */

static int reader(void *arg)
{
	(void)arg;
	__rcu_read_lock();
	ready = 1;
	sleep_forever();
	return 0;
}

static int updater(void *arg)
{
	(void)arg;
	while (!ready)
		msleep(1);
	synchronize_rcu();
	return 0;
}

static int hangs(void *arg)
{
	(void)arg;
	wait_forever();
	return 0;
}

static void never_ends(void *arg)
{
	(void)arg;
	ready = 1;
	while (!never)
		cond_resched();
}

static void ends(void *arg)
{
	(void)arg;
	in_order = 1;
}

static void plant_work(void)
{
	void *queue = *(void **)(PLAN(KIND) & 1 ? system_highpri_wq : system_wq);

	for (u32 i = 0; i < 2; i++) {
		u64 *w = (u64 *)work[i];

		w[1] = w[2] = (u64)&w[1];
		w[3] = (u64)(i ? ends : never_ends);
	}
	queue_work_on((int)PLAN(CPU), queue, work[0]);
	while (!ready)
		msleep(1);
	queue_work_on((int)PLAN(CPU), queue, work[1]);
}

/* Interrupts and softirqs without end: a tasklet, or an interrupt that the processor sends itself, asks for itself again. */

/* As tasklet_schedule(), which is inline: bit 0 of its state says that it is scheduled. */
static void schedule_tasklet(void)
{
	*(u64 *)(again + 8) |= 1;
	if (PLAN(KIND) % 4)
		__tasklet_schedule(again);
	else
		__tasklet_hi_schedule(again);
}

static void tasklet_again(u64 arg)
{
	(void)arg;
	counter = counter + 1;
	schedule_tasklet();
}

static void irq_work_again(void *arg)
{
	(void)arg;
	counter = counter + 1;
	irq_work_queue(again);
}

static int storm(void *arg)
{
	(void)arg;
	if (PLAN(KIND) % 4 < 2) {
		tasklet_init(again, tasklet_again, 0);
		schedule_tasklet();
	} else {
		*(u64 *)(again + 16) = (u64)irq_work_again;
		irq_work_queue(again);
	}
	ready = 1;
	return 0;
}

/* The kernel's end. */

static u32 recurse(volatile u8 *before, u32 depth)
{
	volatile u8 here[256];

	here[0] = (u8)(before[0] + 1);
	return recurse(here, depth + 1) + here[0];
}

static int overflow(void *arg)
{
	u8 first[1] = { 0 };

	(void)arg;
	counter = recurse(first, 0);
	return 0;
}

static int dies(void *arg)
{
	(void)arg;
	switch (PLAN(KIND) % 3) {
	case 0:
		panic("planted %u", PLAN(SEED));
		break;
	case 1:
		*(volatile u32 *)(u64)(8 + PLAN(SEED) % 4000) = 1;
		break;
	default:
		__asm__ volatile("ud2");
	}
	return 0;
}

static void start_one(int (*fn)(void *), int cpu)
{
	say_number("plant: truth cpu=", PLAN(CPU), 10);
	say("\nplant: planted\n");
	start(0, fn, cpu);
}

static int begin(void *arg)
{
	int cpu = (int)PLAN(CPU);

	(void)arg;
	msleep(PLAN(DELAY));
	switch (PLAN(CAUSE)) {
	case MUTEX:
	case DEADLOCK:
		plant_locks();
		break;
	case SPINLOCK:
		say("plant: planted\n");
		plant_spinlock();
		return 0;
	case IRQS_OFF:
		start_one(no_interrupts, cpu);
		return 0;
	case HALTED_IRQS_OFF:
		start_one(halted, cpu);
		return 0;
	case LOST_TIMER:
		start_one(mask_timer, cpu);
		return 0;
	case PENDING_INTERRUPT:
		start_one(raise_priority, cpu);
		return 0;
	case RCU_STALL:
		start(0, reader, -1);
		start(1, updater, -1);
		break;
	case HUNG_TASK:
		start(0, hangs, -1);
		break;
	case WORKQUEUE:
		plant_work();
		break;
	case SOFT_LOCKUP:
		start_one(locked_up, cpu);
		return 0;
	case IRQ_STORM:
		start_one(storm, cpu);
		return 0;
	case PANIC:
		start_one(dies, cpu);
		return 0;
	case STACK_OVERFLOW:
		start_one(overflow, cpu);
		return 0;
	default:
		say("plant: failed: no such cause\n");
	}
	say("plant: planted\n");
	return 0;
}

int init_module(void)
{
	if (PLAN(CAUSE) == BOOT_WAIT) {
		say("plant: planted\n");
		wait_forever();
	}
	start(MAX_THREADS, begin, -1);
	return 0;
}

void cleanup_module(void)
{
}
