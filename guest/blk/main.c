// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The disk guest measures how many reads of its first virtio disk it gets per second, of blocks in
 * order and at random, with several in flight. tests/bench/bench_disk.py makes the image: each
 * sector begins with its number, which the guest checks in every sector that it reads. A first pass
 * reads the whole disk once and adds up all words of 64 bits.
 *
 *   blk: pci 131072 sectors, event_idx 1, irq 0
 *   blk: sum <decimal>
 *   blk: <name> <bytes> <depth> <requests> <TSC cycles> <kicks> <waits> <interrupts>
 *   ...
 *   blk: done
 *
 * or "blk: failed: ...". Command line: ms=N for each workload (500); transport=pci|mmio;
 * event_idx=0; irq=1 (PCI: MSI-X; the answer is still polled for); tsc_khz=N; only=NAME.
 */
#include "blk.h"

#define PT_TABLE 0x67ul
#define PT_USER_LARGE 0xe7ul
#define PT_UNCACHED 0x10ul
#define LARGE_PAGE 0x200000ul
#define PIC1_MASK 0x21
#define PIC2_MASK 0xa1
#define LIMIT_SECONDS 20u

extern u64 boot_pml4[];

static const struct workload {
	const char *name;
	u32 bytes, depth, random;
} workloads[] = {
	{ "seq128k-1", 0x20000, 1, 0 },
	{ "seq128k-8", 0x20000, 8, 0 },
	{ "rand4k-1", 0x1000, 1, 1 },
	{ "rand4k-32", 0x1000, 32, 1 },
};

static u64 mmio_pd[512] __attribute__((aligned(4096)));

static u64 *table_of(u64 entry)
{
	return (u64 *)(KERNEL_MAP + (entry & ~0xffful));
}

static void map_for_user(void)
{
	u64 *pdpt = table_of(boot_pml4[0]), *pd = table_of(pdpt[0]);

	for (u64 at = BLK_RAM; at < BLK_RAM_END; at += LARGE_PAGE)
		pd[at / LARGE_PAGE] = at | PT_USER_LARGE;
	for (u64 at = BLK_MMIO; at < BLK_MMIO_END; at += LARGE_PAGE)
		mmio_pd[(at - BLK_MMIO) / LARGE_PAGE] = at | PT_USER_LARGE | PT_UNCACHED;
	pdpt[BLK_MMIO >> 30] = ((u64)mmio_pd - KERNEL_MAP) | PT_TABLE;
}

static void put_field(const char *before, u64 v)
{
	put_string(before);
	put_number(v);
}

static int run(struct blk_box *box, const struct workload *w, u64 budget)
{
	u64 interrupts = irq_count;

	box->bytes = w->bytes;
	box->depth = w->depth;
	box->random = w->random;
	box->budget = budget;
	box->sum_all = !budget;
	box->requests = box->kicks = box->waits = box->bad = box->stuck = box->sum = 0;
	box->next = 0;
	enter_user((u64)box, 0);
	if (box->stuck || box->bad) {
		put_string("blk: failed: ");
		put_string(w->name);
		put_field(box->stuck ? ": no answer after " : ": requests ", box->requests);
		put_field(", bad ", box->bad);
		put_string("\n");
		return 0;
	}
	if (!budget) {
		put_field("blk: sum ", box->sum);
	} else {
		put_string("blk: ");
		put_string(w->name);
		put_field(" ", w->bytes);
		put_field(" ", w->depth);
		put_field(" ", box->requests);
		put_field(" ", box->cycles);
		put_field(" ", box->kicks);
		put_field(" ", box->waits);
		put_field(" ", irq_count - interrupts);
	}
	put_string("\n");
	return 1;
}

static int measure(struct blk_box *box, u64 cycles)
{
	if (!run(box, &workloads[1], 0))
		return 0;
	for (u32 i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++)
		if ((!option_find(command_line, "only=") ||
		     option_is(command_line, "only=", workloads[i].name)) &&
		    !run(box, &workloads[i], cycles))
			return 0;
	return 1;
}

/* As guest/demo's: start.S jumps here. */
demo_function void demo_main(u64 boot_params);
demo_function void demo_main(u64 boot_params)
{
	struct blk_box *box = (struct blk_box *)BLK_BOX;
	const char *source = "command line", *transport;
	u64 khz;

	command_line_copy(boot_params);
	console_init();
	tables_init();
	map_for_user();
	timer_init();
	outb(PIC1_MASK, 0xff); /* no ticks, so that only the disk interrupts */
	outb(PIC2_MASK, 0xff);
	khz = option_number(command_line, "tsc_khz=", 0);
	if (!khz)
		khz = tsc_khz_find(&source);
	put_field("blk: tsc ", khz);
	put_string(" kHz from ");
	put_string(source);
	put_string("\n");
	transport = device_setup(box, command_line);
	if (transport && khz) {
		put_string("blk: ");
		put_string(transport);
		put_field(" ", box->sectors);
		put_field(" sectors, event_idx ", box->event_idx);
		put_field(", irq ", box->irq);
		put_string("\n");
		box->random_state = 0x9e3779b97f4a7c15ul;
		box->limit = khz * 1000 * LIMIT_SECONDS;
		if (measure(box, khz * option_number(command_line, "ms=", 500)))
			put_string("blk: done\n");
	} else {
		put_string("blk: failed: no virtio disk by this transport\n");
	}
	machine_reset();
}
