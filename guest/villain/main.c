// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The villain guest attacks its virtio devices, and the rest of the machine, by classes. After each
 * attack it checks whether the device still answers an ordinary request, after a reset if
 * necessary.
 *
 *   villain: found <device> pci|mmio			for each
 *   villain: try <class> <device> <attack>
 *   villain: got <class> <device> <attack> PASS|REJECT|WRONG|WEDGED (expected ...)
 *   ...
 *   villain: done <attacks>
 *
 * PASS: the device continued to work. REJECT: it needed a reset or did not answer, and works after
 * a reset. WEDGED: it does not work even after a reset. WRONG: it did what it must not do.
 *
 * Command line: class=NAME, device=NAME and attack=NAME select; storm=MS repeats the attacks for
 * this many milliseconds, without the lines "try", and with "got" only for unexpected results;
 * tsc_khz=N; race=1 includes those that need a second vCPU.
 */
#include "villain.h"

#define MAX_DEVICES 16u
#define PIC1_MASK 0x21
#define PIC2_MASK 0xa1

static const struct attack_class *const classes[] = {
	&ring_class,  &transport_class, &pci_class,	    &blk_class,
	&net_class,   &console_class,	&rng_class,	    &p9_class,
	&cpu_class,   &simd_class,	&simd_memory_class, &refused_class,
	&ports_class, &stack_class,	&race_class,	    &race_simd_class,
};

static struct vdev devices[MAX_DEVICES];
static u32 ndevices;
static int have_ap; /* a second vCPU */
static u64 attacks, storm_end;

static const char *const verdicts[] = { "PASS", "REJECT", "WRONG", "WEDGED" };
enum verdict { GOT_PASS, GOT_REJECT, GOT_WRONG, GOT_WEDGED };

static void tell(const char *what, const struct attack_class *c, const struct vdev *d,
		 const struct attack *a)
{
	put_string("villain: ");
	put_string(what);
	put_string(" ");
	put_string(c->name);
	put_string(" ");
	put_string(d ? d->name : "-");
	put_string(" ");
	put_string(a->name);
}

static enum verdict judge_device(struct vdev *d, const struct attack *a)
{
	int wrong, goes_on;

	patience = PATIENCE;
	if (!dev_setup(d, 0, STEP_DRIVER_OK))
		return GOT_WEDGED;
	wrong = a->f(d);
	/* Other threads may still be about to detect it. */
	for (u32 i = 0; a->expect == REJECT && i < 100 && !(dev_status(d) & STATUS_NEEDS_RESET);
	     i++)
		wait_shortly();
	patience = a->expect == ANY ? PATIENCE_SHORT : PATIENCE;
	goes_on = a->expect != REJECT && (dev_status(d) & STATUS_DRIVER_OK) &&
		  !(dev_status(d) & STATUS_NEEDS_RESET) && dev_works(d);
	patience = PATIENCE;
	if (!wrong && goes_on)
		return GOT_PASS;
	if (a->expect == REJECT && !wrong && !(dev_status(d) & STATUS_NEEDS_RESET))
		wrong = 1; /* a reset should have been needed */
	if (!dev_setup(d, 0, STEP_DRIVER_OK) || !dev_works(d))
		return GOT_WEDGED;
	return wrong ? GOT_WRONG : GOT_REJECT;
}

static void attack(const struct attack_class *c, struct vdev *d, const struct attack *a)
{
	static const char *const expected[] = { "PASS", "REJECT", "ANY" };
	enum verdict v;

	attacks++;
	if (!storm_end) {
		tell("try", c, d, a);
		put_string("\n");
	}
	if (d)
		v = judge_device(d, a);
	else
		v = a->f(0) ? GOT_WRONG : c->works() ? GOT_PASS : GOT_WEDGED;
	if (storm_end && v < GOT_WRONG && (a->expect == ANY || (enum expect)v == a->expect))
		return;
	tell("got", c, d, a);
	put_string(" ");
	put_string(verdicts[v]);
	put_string(" (expected ");
	put_string(expected[a->expect]);
	put_string(")\n");
}

static int is_for(const struct attack_class *c, const struct vdev *d)
{
	if (option_find(command_line, "device=") && !option_is(command_line, "device=", d->name))
		return 0;
	return c->on == ON_EACH || (c->on == ON_EACH_PCI && d->pci) || c->on == d->id;
}

static void attack_all(const struct attack_class *c, struct vdev *d)
{
	for (u32 i = 0; i < c->n; i++) {
		if (storm_end && rdtsc() >= storm_end)
			return;
		if (option_find(command_line, "attack=") &&
		    !option_is(command_line, "attack=", c->attacks[i].name))
			continue;
		attack(c, d, &c->attacks[i]);
	}
}

static void run_class(const struct attack_class *c)
{
	if ((c == &race_class || c == &race_simd_class) && !have_ap)
		return;
	if (c == &refused_class && !option_find(command_line, "attack="))
		return;
	if (c->on == ON_NONE) {
		attack_all(c, 0);
		return;
	}
	for (u32 i = 0; i < ndevices; i++)
		if (is_for(c, &devices[i]))
			attack_all(c, &devices[i]);
}

static void run_all(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(classes); i++)
		if (!option_find(command_line, "class=") ||
		    option_is(command_line, "class=", classes[i]->name))
			run_class(classes[i]);
}

/* As guest/demo's: start.S jumps here. Interrupts stay off. */
demo_function void demo_main(u64 boot_params);
demo_function void demo_main(u64 boot_params)
{
	const char *source;
	u64 storm, before, khz;

	command_line_copy(boot_params);
	console_init();
	tables_init();
	outb(PIC1_MASK, 0xff);
	outb(PIC2_MASK, 0xff);
	traps_init();
	devices_map();
	ndevices = devices_find(devices, MAX_DEVICES);
	for (u32 i = 0; i < ndevices; i++) {
		put_string("villain: found ");
		put_string(devices[i].name);
		put_string(devices[i].pci ? " pci\n" : " mmio\n");
	}
	have_ap = ap_start();
	storm = option_number(command_line, "storm=", 0);
	if (storm) {
		khz = option_number(command_line, "tsc_khz=", 0);
		storm_end = rdtsc() + storm * (khz ? khz : tsc_khz_find(&source));
	}
	do {
		before = attacks;
		run_all();
	} while (storm && attacks != before && rdtsc() < storm_end);
	put_string("villain: done ");
	put_number(attacks);
	put_string("\n");
	machine_reset();
}
