// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A second vCPU changes memory and registers while the device reads them, so that checked values
 * may have changed. Only with two vCPUs.
 */
#include "villain.h"

#define AP_PAGE 0x8000ul
#define PT_LARGE 0xe3ul
#define LARGE_PAGE 0x200000ul
#define KERNEL_PA 0x1000000ul
#define APIC_SVR 0xf0u
#define APIC_ICR 0x300u
#define APIC_ICR_HIGH 0x310u
#define ICR_INIT 0x4500u
#define ICR_STARTUP 0x4600u
#define AP_PATIENCE 4000000000ul /* TSC cycles */
#define ROUNDS 40u
#define VALUES 6u

extern u64 boot_pml4[];
extern const u8 ap_trampoline[], ap_trampoline_end[];
void ap_main(void);

/* The work of the other vCPU, until kind is JOB_NONE again; busy: it is working. */
enum { JOB_NONE, JOB_VALUES, JOB_STATUS, JOB_QUEUE };
static volatile struct {
	u32 kind, busy;
	u64 address; /* address of memory, or of a register that is mapped one to one */
	u32 width, n;
	u64 values[VALUES];
	const struct vdev *d;
} job;
static volatile u32 ap_up;

static void write_value(u64 address, u32 width, u64 v)
{
	if (width == 2)
		write16(address, (u32)v);
	else if (width == 4)
		write32(address, (u32)v);
	else
		*(volatile u64 *)address = v;
}

static void work_once(u64 turn)
{
	switch (job.kind) {
	case JOB_VALUES:
		write_value(job.address, job.width, job.values[turn % job.n]);
		break;
	case JOB_STATUS:
		dev_set_status(job.d, turn % 4 ? 0 : STATUS_BEGUN);
		break;
	case JOB_QUEUE:
		queue_select(job.d, (u32)turn % 3);
		queue_set_size(job.d, (u32)turn & 0xffff);
		queue_set_places(job.d, turn << 12, RAM_END - turn, ~0ul);
		break;
	}
}

/* Runs the second vCPU; called by ap.S. It takes no interrupts, and exceptions end the run. */
void ap_main(void)
{
	ap_up = 1;
	for (u64 turn = 0;; turn++) {
		if (job.kind) {
			job.busy = 1;
			work_once(turn);
		} else {
			job.busy = 0;
			__builtin_ia32_pause();
		}
	}
}

int ap_start(void)
{
	u64 *pdpt = at(boot_pml4[0] & ~0xffful), *pd = at(pdpt[0] & ~0xffful), start = rdtsc();

	if (!option_number(command_line, "race=", 0))
		return 0;
	memcpy(at(AP_PAGE), ap_trampoline, (u64)(ap_trampoline_end - ap_trampoline));
	pd[0] = PT_LARGE;
	pd[KERNEL_PA / LARGE_PAGE] = KERNEL_PA | PT_LARGE; /* the descriptor table */
	write32(LAPIC + APIC_SVR, 0x1ff);
	write32(LAPIC + APIC_ICR_HIGH, 1u << 24);
	write32(LAPIC + APIC_ICR, ICR_INIT);
	wait_shortly();
	write32(LAPIC + APIC_ICR_HIGH, 1u << 24);
	write32(LAPIC + APIC_ICR, ICR_STARTUP | AP_PAGE >> 12);
	while (!ap_up && rdtsc() - start < AP_PATIENCE)
		;
	pd[0] = pd[KERNEL_PA / LARGE_PAGE] = 0;
	return ap_up != 0;
}

static void job_begin(u32 kind)
{
	job.kind = kind;
	while (!job.busy)
		;
}

void job_end(void)
{
	job.kind = JOB_NONE;
	while (job.busy)
		;
}

/* Makes the other vCPU write these values to memory in turn. */
void job_values(u64 address, u32 width, const u64 *values, u32 n)
{
	job.address = address;
	job.width = width;
	job.n = n;
	for (u32 i = 0; i < n; i++)
		job.values[i] = values[i];
	job_begin(JOB_VALUES);
}

/* Makes requests meanwhile, with resets where they are needed. */
static int requests(struct vdev *d, void (*prepare)(struct vdev *d))
{
	int wrong = 0;

	for (u32 i = 0; i < ROUNDS; i++) {
		if (dev_status(d) & STATUS_NEEDS_RESET)
			wrong |= !dev_setup(d, 0, STEP_DRIVER_OK);
		prepare(d);
		vq_offer(d, d->attacked, 0);
	}
	job_end();
	return wrong || !dev_setup(d, 0, STEP_DRIVER_OK);
}

/* Makes a chain of header, room and status, which suits each kind of device. */
static void chain(struct vdev *d)
{
	struct vq *q = &d->q[d->attacked];
	int reads = d->id == ID_BLOCK || d->id == ID_9P;
	u16 write = d->id == ID_RNG ? DESC_WRITE : 0;

	desc_set(vq_desc(q, 0), buffer(0), 64, reads ? DESC_NEXT : write, 1);
	desc_set(vq_desc(q, 1), buffer(1), 513, DESC_WRITE, 0);
}

static void chain_by_table(struct vdev *d)
{
	struct vq *q = &d->q[d->attacked];

	chain(d);
	memcpy(vq_table(q), vq_desc(q, 0), 2 * sizeof(struct desc));
	desc_set(vq_desc(q, 0), vq_table_address(q), 32, DESC_INDIRECT, 0);
}

static void nothing(struct vdev *d)
{
	(void)d;
}

static int race_address(struct vdev *d)
{
	const u64 values[] = { buffer(0), RAM_END, buffer(2), ~0ul - 8, RAM_END - 8, LAPIC };

	chain(d);
	job_values((u64)&vq_desc(&d->q[d->attacked], 0)->addr, 8, values, 6);
	return requests(d, nothing);
}

static int race_length(struct vdev *d)
{
	const u64 values[] = { 64, 0xffffffff, 16, 0, 4096, 1u << 30 };

	chain(d);
	job_values((u64)&vq_desc(&d->q[d->attacked], 0)->len, 4, values, 6);
	return requests(d, nothing);
}

static int race_flags(struct vdev *d)
{
	const u64 values[] = { DESC_NEXT, 0, DESC_WRITE, DESC_INDIRECT, DESC_NEXT | DESC_WRITE, 7 };

	chain(d);
	job_values((u64)&vq_desc(&d->q[d->attacked], 0)->flags, 2, values, 6);
	return requests(d, nothing);
}

static int race_next(struct vdev *d)
{
	const u64 values[] = { 1, 0, VQ_SIZE, 0xffff, 2, 1 };

	chain(d);
	job_values((u64)&vq_desc(&d->q[d->attacked], 0)->next, 2, values, 6);
	return requests(d, nothing);
}

static int race_table(struct vdev *d)
{
	const u64 values[] = { buffer(0), RAM_END, VQ_AREA, ~0ul, buffer(3), RAM_END - 1 };

	chain_by_table(d);
	job_values((u64)vq_table(&d->q[d->attacked]), 8, values, 6);
	return requests(d, nothing);
}

static int race_table_flags(struct vdev *d)
{
	const u64 values[] = { DESC_NEXT, DESC_INDIRECT, DESC_NEXT | DESC_WRITE, 0, DESC_NEXT, 7 };

	chain_by_table(d);
	job_values((u64)&vq_table(&d->q[d->attacked])->flags, 2, values, 6);
	return requests(d, nothing);
}

static int race_avail(struct vdev *d)
{
	const u64 values[] = { 1, 2, 0x8000, 0xffff, 0, 300 };

	chain(d);
	job_values((u64)at(d->q[d->attacked].avail + 2), 2, values, 6);
	return requests(d, nothing);
}

static int race_used(struct vdev *d)
{
	const u64 values[] = { 1, 2, 0x8000, 0xffff, 0, 300 };

	chain(d);
	job_values((u64)at(d->q[d->attacked].used + 2), 2, values, 6);
	return requests(d, chain);
}

/* The first word of a request changes: its type, a message's size and type, or a header. */
static int race_request(struct vdev *d)
{
	const u64 values[] = { 0x6400000013, 1, 0x64ffffffff, 0x7400000007, 8, 0x76000000ff };

	memset(at(buffer(0)), 0, 64);
	chain(d);
	job_values((u64)at(buffer(0)), 8, values, 6);
	return requests(d, chain);
}

static int race_sector(struct vdev *d)
{
	const u64 values[] = { 0, ~0ul, 8191, 1ul << 55, 8192, 1 };

	memset(at(buffer(0)), 0, 64);
	chain(d);
	job_values((u64)at(buffer(0) + 8), 8, values, 6);
	return requests(d, chain);
}

static int race_reset(struct vdev *d)
{
	job.d = d;
	job_begin(JOB_STATUS);
	for (u32 i = 0; i < ROUNDS; i++) {
		chain(d);
		vq_offer(d, d->attacked, 0);
		dev_set_status(d, STATUS_BEGUN | STATUS_FEATURES_OK | STATUS_DRIVER_OK);
	}
	job_end();
	return !dev_setup(d, 0, STEP_DRIVER_OK);
}

static int race_setup(struct vdev *d)
{
	job.d = d;
	job_begin(JOB_QUEUE);
	for (u32 i = 0; i < ROUNDS / 2; i++) {
		dev_setup(d, 0, STEP_DRIVER_OK);
		chain(d);
		vq_offer(d, d->attacked, 0);
	}
	job_end();
	return !dev_setup(d, 0, STEP_DRIVER_OK);
}

static const struct attack attacks[] = {
	{ "2.7.5 race-address", ANY, race_address },
	{ "2.7.5 race-length", ANY, race_length },
	{ "2.7.5 race-flags", ANY, race_flags },
	{ "2.7.5 race-next", ANY, race_next },
	{ "2.7.5.3 race-table-address", ANY, race_table },
	{ "2.7.5.3 race-table-flags", ANY, race_table_flags },
	{ "2.7.6 race-avail", ANY, race_avail },
	{ "2.7.8 race-used", ANY, race_used },
	{ "2.7.13 race-request", ANY, race_request },
	{ "2.7.13 race-sector", ANY, race_sector },
	{ "2.4 race-reset", ANY, race_reset },
	{ "3.1.1 race-setup", ANY, race_setup },
};

const struct attack_class race_class = { "race", ATTACKS(attacks), ON_EACH, 0 };
