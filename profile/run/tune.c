/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/run/tune.h"

/* reboot=k: through the keyboard controller, which needs no ACPI; panic=-1: at once. */
#define LINUX_DEFAULTS "console=ttyS0 reboot=k panic=-1"
/* Until there is a driver for hvc0 the serial line speaks. */
#define LINUX_DEFAULTS_HVC "earlyprintk=ttyS0 console=hvc0 reboot=k panic=-1"

#define SSE_MODULES                                                                   \
	"aesni_intel,sha1_ssse3,sha256_ssse3,sha512_ssse3,crc32c_intel,crc32_pclmul," \
	"crct10dif_pclmul,ghash_clmulni_intel,polyval_clmulni"

/* When a setting is good. */
enum {
	ALWAYS = 0,
	ONE_CPU = 1,
	NO_PCI = 2,
	NO_VIRTIO = 4, /* interrupts of devices need the APICs */
	VIRTIO = 8,
	DISK_INITRD = 16,
	SAVED = 32
};

struct setting {
	const char *text;
	const char *why; /* for the reader of this table; docs/host-quirks.md repeats it */
	unsigned int when;
};

/* What a kernel does not know it ignores, so one list serves all versions. */
static const struct setting settings[] = {
	{ "clearcpuid=popcnt,rdrand,rdseed,smap,erms,fsrm,umip,sse4_2,pclmulqdq",
	  "refused, or slow when interpreted; CPUID masks alone leak (the last two: checksums by "
	  "SSE)",
	  ALWAYS },
	{ "tsc=reliable", "no watchdog that compares clocks under an interpreter", ALWAYS },
	{ "no_timer_check", "the check counts ticks that come late", ALWAYS },
	{ "highres=off", "when a tick takes longer than its period, each interrupt does three",
	  ALWAYS },
	{ "rodata=off", "splitting the direct map takes seconds", ALWAYS },
	{ "mitigations=off", "each costs instructions at every kernel entry", ALWAYS },
	{ "init_on_alloc=0", "clearing every page by interpreted stores", ALWAYS },
	{ "audit=0", "work at every system call", ALWAYS },
	{ "apparmor=0", "policy unpacking and hashing", ALWAYS },
	{ "cryptomgr.notests", "self tests of ciphers take minutes", ALWAYS },
	{ "nowatchdog", "soft-lockup timers are false alarms here", ALWAYS },
	{ "nosoftlockup", "the same", ALWAYS },
	{ "rcupdate.rcu_cpu_stall_suppress=1",
	  "false alarms too: late ticks make jiffies leap by many seconds", ALWAYS },
	{ "random.trust_bootloader=on", "hashing for each random number before there is entropy",
	  ALWAYS },
	{ "udev.event_timeout=1800", "modules take longer than the 180 s that an event may",
	  DISK_INITRD },
	{ "module_blacklist=" SSE_MODULES,
	  "SSE, refused: udev loads them, and then the next module's signature is hashed so",
	  ALWAYS },
	{ "modprobe.blacklist=" SSE_MODULES,
	  "udev does not even try: the kernel looks at its list after hashing the module, 16 s",
	  DISK_INITRD },
	{ "pci=off", "scanning an empty bus of 256 x 32 slots", NO_PCI },
	{ "initcall_blacklist=ftrace_check_for_weak_functions,blake2s_mod_init,curve25519_init,"
	  "chacha20poly1305_init,jent_mod_init,trace_eval_init,ptp_kvm_init",
	  "self tests and table fix-ups of 2 s to minutes each; a hypercall that never returns",
	  ALWAYS },
	{ "noreplace-smp", "taking lock prefixes out patches text in 10,000 places", ONE_CPU },
	{ "nolapic", "ticks from the PIT, whose period we can stretch", ONE_CPU | NO_VIRTIO },
	{ "nolapic_timer lapic=notscdeadline",
	  "the same, with APICs for the devices' interrupts; with a TSC deadline there would be no "
	  "tick",
	  ONE_CPU | VIRTIO },
	{ "clocksource=kvm-clock", "the TSC can't be set back when it goes on from a snapshot",
	  SAVED },
};

/*
 * Debian's RAM disk gives up udev after two minutes and the root half a minute later, with its cloud
 * kernel about when the disk's driver is there; on a busy host, with a generic kernel, 300 s were
 * not enough. It sleeps for all of rootdelay=, needed or not, so this depends on the host.
 */
#define ROOTDELAY_PS 2200u /* of an instruction's time for each second: 330 s at 0.73 us */
#define ROOTDELAY_STEP 60u /* so that a host has one mostly */
#define ROOTDELAY_MAX 900u

static unsigned int rootdelay(const struct quirks *q)
{
	uint64_t steps = q->ring0_ps_per_insn / ROOTDELAY_PS / ROOTDELAY_STEP + 1;

	return steps < ROOTDELAY_MAX / ROOTDELAY_STEP ? (unsigned int)steps * ROOTDELAY_STEP
						      : ROOTDELAY_MAX;
}

static void add_word(struct buf *b, const char *word)
{
	if (word && *word)
		buf_printf(b, "%s%s", b->len ? " " : "", word);
}

static bool fits(const struct tune_request *r, unsigned int when)
{
	return !((when & ONE_CPU) && r->vcpus > 1) && !((when & NO_PCI) && r->pci) &&
	       !((when & NO_VIRTIO) && r->virtio) && !((when & VIRTIO) && !r->virtio) &&
	       !((when & DISK_INITRD) && !r->disk_initrd) && !((when & SAVED) && !r->saved);
}

void tune_cmdline(const struct tune_request *r, const struct quirks *q, struct buf *out,
		  struct buf *tuned)
{
	/* It goes first: of two console= the last one is what an init writes to. */
	if (r->is_linux && !r->cmdline)
		add_word(out, r->disk_cmdline);
	if (r->is_linux && !r->cmdline)
		add_word(out, r->virtio_console ? LINUX_DEFAULTS_HVC : LINUX_DEFAULTS);
	add_word(out, r->cmdline);
	if (r->is_linux && r->tune && q->interpreted) {
		for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
			if (fits(r, settings[i].when))
				add_word(tuned, settings[i].text);
		if (r->disk_initrd)
			buf_printf(tuned, " rootdelay=%u", rootdelay(q));
	}
	buf_u8(tuned, 0);
	add_word(out, (const char *)tuned->data);
	/* A bare-metal guest has no other way to learn it where CPUID does not tell. */
	if (!r->is_linux && r->tsc_khz)
		buf_printf(out, "%stsc_khz=%u", out->len ? " " : "", r->tsc_khz);
	add_word(out, r->extra);
	add_word(out, r->append);
	buf_u8(out, 0);
}
