// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A kernel in 32-bit C: prints its loader's information, spends known shares of its time in known
 * call stacks, then prints the real shares, measured with the TSC inside the leaves, and powers
 * off:
 *
 *   mb: loader NAME            multiboot | multiboot2 | pvh
 *   mb: command line TEXT
 *   mb: memory BASE LENGTH TYPE        (hexadecimal)
 *   mb: module LENGTH SUM TEXT         SUM: of its bytes
 *   mb: rsdp OEM REVISION SUM          multiboot2; SUM: of its bytes, modulo 256
 *   mb: start
 *   truth <percent> kernel <outermost;...;leaf>
 *   truth-end
 *
 * Command line: seconds=N (5), tsc_khz=N (2000000).
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define MULTIBOOT_BOOT 0x2badb002u
#define MULTIBOOT2_BOOT 0x36d76289u
#define PVH_MAGIC 0x336ec578u
#define PORT_SERIAL 0x3f8
#define PORT_PM1A_CONTROL 0x604 /* vmm/layout.h */
#define POWER_OFF (0x2000 | 5 << 10)

#define ROUNDS 100u

struct multiboot_info {
	u32 flags, mem_lower, mem_upper, boot_device, cmdline, mods_count, mods_addr, syms[4];
	u32 mmap_length, mmap_addr, drives[2], config, loader_name;
};

struct multiboot_map {
	u32 size;
	u64 base, len;
	u32 type;
} __attribute__((packed));

struct multiboot_module {
	u32 start, end, text, reserved;
};

struct multiboot2_tag {
	u32 type, size, field[];
};

enum { TAG_END, TAG_CMDLINE, TAG_LOADER, TAG_MODULE, TAG_MMAP = 6, TAG_RSDP = 15 };

struct multiboot2_range {
	u64 base, len;
	u32 type, reserved;
} __attribute__((packed));

struct pvh_info {
	u32 magic, version, flags, nr_modules;
	u64 modlist, cmdline, rsdp, memmap;
	u32 memmap_entries, reserved;
};

struct pvh_range {
	u64 base, len;
	u32 type, reserved;
};

struct pvh_module {
	u64 start, size, cmdline, reserved;
};

void mb_main(u32 magic, const void *info);

static void outb(u16 port, u8 v)
{
	__asm__ volatile("outb %0, %1" : : "a"(v), "Nd"(port));
}

static u64 rdtsc(void)
{
	u64 v;

	__asm__ volatile("rdtsc" : "=A"(v));
	return v;
}

static void put(const char *s)
{
	for (; *s; s++)
		outb(PORT_SERIAL, (u8)*s);
}

static void put_hex(u64 v)
{
	put("0x");
	for (int i = 60; i >= 0; i -= 4)
		if (!i || v >> i)
			outb(PORT_SERIAL, (u8) "0123456789abcdef"[v >> i & 15]);
}

static void put_number(u32 v)
{
	char digits[11];
	int i = 10;

	digits[i] = 0;
	do
		digits[--i] = (char)('0' + v % 10);
	while (v /= 10);
	put(digits + i);
}

static void put_range(u64 base, u64 len, u32 type)
{
	put("mb: memory ");
	put_hex(base);
	put(" ");
	put_hex(len);
	put(" ");
	put_number(type);
	put("\n");
}

static void put_module(u32 start, u32 len, const char *text)
{
	u32 sum = 0;

	for (u32 i = 0; i < len; i++)
		sum += ((const u8 *)start)[i];
	put("mb: module ");
	put_number(len);
	put(" ");
	put_number(sum);
	put(" ");
	put(text);
	put("\n");
}

static const char *tell_multiboot(const struct multiboot_info *m)
{
	const struct multiboot_module *mod = (const void *)m->mods_addr;
	const char *cmdline = (const char *)m->cmdline;

	put("mb: loader ");
	put((const char *)m->loader_name);
	put(" multiboot\nmb: command line ");
	put(cmdline);
	put("\n");
	for (u32 at = 0; at < m->mmap_length;) {
		const struct multiboot_map *r = (const void *)(m->mmap_addr + at);

		put_range(r->base, r->len, r->type);
		at += r->size + 4;
	}
	for (u32 i = 0; i < m->mods_count; i++)
		put_module(mod[i].start, mod[i].end - mod[i].start, (const char *)mod[i].text);
	return cmdline;
}

static void put_rsdp(const u8 *p, u32 len)
{
	u32 sum = 0;
	char oem[7] = { 0 };

	for (u32 i = 0; i < len; i++)
		sum += p[i];
	for (u32 i = 0; i < 6; i++)
		oem[i] = (char)p[9 + i];
	put("mb: rsdp ");
	put(oem);
	put(" ");
	put_number(p[15]);
	put(" ");
	put_number(sum & 255);
	put("\n");
}

static const struct multiboot2_tag *next_tag(const struct multiboot2_tag *t)
{
	return (const void *)((const char *)t + ((t->size + 7) & ~7u));
}

static const char *tell_multiboot2(const u32 *info)
{
	const struct multiboot2_tag *t, *first = (const void *)(info + 2);
	const char *cmdline = "", *loader = "?";

	for (t = first; t->type != TAG_END; t = next_tag(t)) {
		if (t->type == TAG_CMDLINE)
			cmdline = (const char *)t->field;
		if (t->type == TAG_LOADER)
			loader = (const char *)t->field;
	}
	put("mb: loader ");
	put(loader);
	put(" multiboot2\nmb: command line ");
	put(cmdline);
	put("\n");
	for (t = first; t->type != TAG_END; t = next_tag(t)) {
		if (t->type == TAG_MODULE)
			put_module(t->field[0], t->field[1] - t->field[0],
				   (const char *)(t->field + 2));
		if (t->type == TAG_RSDP)
			put_rsdp((const u8 *)t->field, t->size - 8);
		for (u32 at = 16; t->type == TAG_MMAP && at < t->size; at += t->field[0]) {
			const struct multiboot2_range *r = (const void *)((const char *)t + at);

			put_range(r->base, r->len, r->type);
		}
	}
	return cmdline;
}

static const char *tell_pvh(const struct pvh_info *p)
{
	const struct pvh_range *r = (const void *)(u32)p->memmap;
	const struct pvh_module *mod = (const void *)(u32)p->modlist;
	const char *cmdline = (const char *)(u32)p->cmdline;

	put("mb: loader ? pvh\nmb: command line ");
	put(cmdline);
	put("\n");
	for (u32 i = 0; i < p->memmap_entries; i++)
		put_range(r[i].base, r[i].len, r[i].type);
	for (u32 i = 0; i < p->nr_modules; i++)
		put_module((u32)mod[i].start, (u32)mod[i].size, (const char *)(u32)mod[i].cmdline);
	return cmdline;
}

/* Spends the time; the loop is in the leaf itself. */
static inline __attribute__((always_inline)) u64 spin(u64 budget)
{
	u64 start = rdtsc(), spent;

	do {
		for (u32 i = 0; i < 200; i++)
			__asm__ volatile("" : : : "memory");
		spent = rdtsc() - start;
	} while (spent < budget);
	return spent;
}

#define FUNCTION static __attribute__((noinline, noclone))

FUNCTION u64 leaf_a(u64 budget)
{
	return spin(budget);
}

FUNCTION u64 leaf_b(u64 budget)
{
	return spin(budget);
}

FUNCTION u64 leaf_c(u64 budget)
{
	return spin(budget);
}

/* Keeps the caller's frame, because work is left after the call. */
#define CALLS(name, callee)                         \
	FUNCTION u64 name(u64 budget)               \
	{                                           \
		u64 spent = callee(budget);         \
                                                    \
		__asm__ volatile("" : "+m"(spent)); \
		return spent;                       \
	}

CALLS(outer_a, leaf_a)
CALLS(middle_b, leaf_b)
CALLS(outer_b, middle_b)

static struct job {
	u32 percent;
	u64 (*run)(u64 budget);
	const char *stack;
	u64 spent;
} jobs[] = {
	{ 50, outer_a, "mb_main;work;outer_a;leaf_a", 0 },
	{ 30, outer_b, "mb_main;work;outer_b;middle_b;leaf_b", 0 },
	{ 20, leaf_c, "mb_main;work;leaf_c", 0 },
};

#define NR_JOBS (sizeof(jobs) / sizeof(jobs[0]))

/* Returns N of NAME=N among the words of the command line. */
static u32 option(const char *s, const char *name, u32 otherwise)
{
	for (; *s; s++) {
		const char *a = s, *b = name;
		u32 v = 0;

		while (*b && *a == *b) {
			a++;
			b++;
		}
		if (*b || *a != '=')
			continue;
		for (a++; *a >= '0' && *a <= '9'; a++)
			v = v * 10 + (u32)(*a - '0');
		return v;
	}
	return otherwise;
}

/* Divides without the compiler's library; the quotient fits in 32 bits. */
static u32 divide(u64 v, u32 by)
{
	u32 q, r;

	__asm__("divl %4" : "=a"(q), "=d"(r) : "0"((u32)v), "1"((u32)(v >> 32)), "r"(by));
	return q;
}

/* Works in slices of random lengths, so that no sampler can run in step with them. */
FUNCTION void work(u32 seconds, u32 khz)
{
	u32 random = 12345;
	/* Cycles of one percent of a round */
	u64 slice = divide((u64)khz * seconds * 10, ROUNDS);

	for (u32 round = 0; round < ROUNDS; round++) {
		for (u32 i = 0; i < NR_JOBS; i++) {
			random = random * 1103515245 + 12345;
			jobs[i].spent += jobs[i].run((slice * jobs[i].percent >> 7) *
						     (64 + (random >> 16) % 129));
		}
	}
}

static void put_truth(void)
{
	u64 all = 0;
	u32 shift = 0;

	for (u32 i = 0; i < NR_JOBS; i++)
		all += jobs[i].spent;
	while (all >> shift >> 20)
		shift++;
	for (u32 i = 0; i < NR_JOBS; i++) {
		u32 permille = (u32)(jobs[i].spent >> shift) * 1000 / (u32)(all >> shift);

		put("truth ");
		put_number(permille / 10);
		put(".");
		put_number(permille % 10);
		put(" kernel ");
		put(jobs[i].stack);
		put("\n");
	}
	put("truth-end\n");
}

void mb_main(u32 magic, const void *info)
{
	const char *cmdline;

	if (magic != MULTIBOOT_BOOT && magic != MULTIBOOT2_BOOT && magic != PVH_MAGIC) {
		put("mb: entered by neither multiboot nor PVH\n");
	} else {
		cmdline = magic == PVH_MAGIC	     ? tell_pvh(info)
			  : magic == MULTIBOOT2_BOOT ? tell_multiboot2(info)
						     : tell_multiboot(info);
		put("mb: start\n");
		work(option(cmdline, "seconds", 5), option(cmdline, "tsc_khz", 2000000));
		put_truth();
	}
	__asm__ volatile("outw %0, %1" : : "a"((u16)POWER_OFF), "Nd"((u16)PORT_PM1A_CONTROL));
	for (;;)
		__asm__ volatile("hlt");
}
