/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/tune.h"

/* reboot=k: through the keyboard controller, which needs no ACPI; panic=-1: at once. */
#define LINUX_DEFAULTS "console=ttyS0 reboot=k panic=-1"
/* The serial line is used until there is a driver for hvc0. */
#define LINUX_DEFAULTS_HVC "earlyprintk=ttyS0 console=hvc0 reboot=k panic=-1"

#define SSE_MODULES                                                                   \
	"aesni_intel,sha1_ssse3,sha256_ssse3,sha512_ssse3,crc32c_intel,crc32_pclmul," \
	"crct10dif_pclmul,ghash_clmulni_intel,polyval_clmulni"

/*
 * popcnt, rdrand, rdseed, smap, erms, fsrm, umip, sse4_2, pclmulqdq by their numbers, 32 times
 * the word and the bit of the kernel's cpufeatures.h: names are understood since Linux 5.18
 * only ("x86/cpu: Allow feature bit names from /proc/cpuinfo in clearcpuid="), several numbers
 * since 5.8, and still by 7.3.
 */
#define CPUID_BITS "151,158,306,308,297,580,514,148,129"

/* Conditions of a setting. */
enum {
	ALWAYS = 0,
	ONE_CPU = 1,
	NO_PCI = 2,
	NO_APICS = 4,
	APICS = 8, /* interrupts of virtio devices need them, and several CPUs */
	DISK_INITRD = 16,
	SAVED = 32
};

struct setting {
	const char *text;
	const char *why; /* for the reader of this table; docs/hosts.md repeats it */
	unsigned int when;
};

/* A kernel ignores unknown options, so one list serves all versions. */
static const struct setting settings[] = {
	{ "clearcpuid=" CPUID_BITS,
	  "refused, or slow when interpreted; CPUID masks alone leak (the last two: checksums by "
	  "SSE). Not AVX: programs would use it all the same, and the kernel not save it",
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
	{ "noreplace-smp", "taking lock prefixes out patches text in 10,000 places", ONE_CPU },
	{ "nolapic", "ticks from the PIT, whose period we can stretch", NO_APICS },
	{ "nolapic_timer lapic=notscdeadline",
	  "the same, with APICs for devices and for other CPUs, to which the first one passes its "
	  "ticks on; with a TSC deadline there would be no tick",
	  APICS },
	{ "clocksource=kvm-clock", "the TSC can't be set back when it goes on from a snapshot",
	  SAVED },
};

/* Initial calls that are omitted; the rest of a kernel needs none of them. */
enum initcall_where {
	ANYWHERE,    /* also in a module, whose symbols are unknown before it is loaded */
	UNLESS_GONE, /* in the kernel itself; not if its symbols are known and lack it */
	WHERE_SEEN,  /* only if the kernel's symbols contain it: a module of that name is needed */
};

static const struct initcall {
	const char *name;
	const char *why;
	enum initcall_where where;
} initcalls[] = {
	{ "ftrace_check_for_weak_functions", "looks at each of 50,000 places", UNLESS_GONE },
	{ "trace_eval_init", "table fix-ups of 80 s", UNLESS_GONE },
	{ "blake2s_mod_init", "self test of 5 s", UNLESS_GONE },
	{ "curve25519_init", "self test", ANYWHERE },
	{ "chacha20poly1305_init", "self test", ANYWHERE },
	{ "jent_mod_init", "minutes of measuring the CPU's jitter", ANYWHERE },
	{ "ptp_kvm_init", "a hypercall that never returns", ANYWHERE },
	/*
	 * These choose SHA and AES by AVX and AES-NI, built in since 6.16. Such instructions
	 * are refused here and finished by us at 10 us each: the C code is ten times as fast.
	 */
	{ "sha256_x86_mod_init", "SHA-256 by AVX", WHERE_SEEN },
	{ "sha1_mod_init", "SHA-1 by AVX", WHERE_SEEN },
	{ "sha256_mod_init", "SHA-256 by AVX", WHERE_SEEN },
	{ "sha512_mod_init", "SHA-512 by AVX", WHERE_SEEN },
	{ "aes_mod_init", "AES-NI", WHERE_SEEN },
	{ "gf128hash_mod_init", "GHASH by PCLMULQDQ", WHERE_SEEN },
};

/*
 * Debian's RAM disk gives up udev after two minutes and the root half a minute later, with its
 * cloud kernel about when the disk's driver is there; on a busy host, with a generic kernel, 300 s
 * were not enough. It sleeps for all of rootdelay=, needed or not, so this depends on the host.
 */
#define ROOTDELAY_PS 2200u /* part of an instruction's time for each second: 330 s at 0.73 us */
#define ROOTDELAY_STEP 60u /* so that a host usually gets the same value */
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

static bool tune_fits(const struct tune_request *r, unsigned int when)
{
	bool apics = r->virtio || r->vcpus > 1;

	return !((when & ONE_CPU) && r->vcpus > 1) && !((when & NO_PCI) && r->pci) &&
	       !((when & NO_APICS) && apics) && !((when & APICS) && !apics) &&
	       !((when & DISK_INITRD) && !r->disk_initrd) && !((when & SAVED) && !r->saved);
}

static bool wants(const struct tune_request *r, const struct initcall *c)
{
	bool seen = r->symbols && symtab_find(r->symbols, c->name);

	return c->where == ANYWHERE || seen || (c->where == UNLESS_GONE && !r->symbols);
}

static void add_initcalls(const struct tune_request *r, struct buf *b)
{
	const char *sep = " initcall_blacklist=";

	for (size_t i = 0; i < sizeof(initcalls) / sizeof(initcalls[0]); i++) {
		if (!wants(r, &initcalls[i]))
			continue;
		buf_printf(b, "%s%s", sep, initcalls[i].name);
		sep = ",";
	}
}

void tune_cmdline(const struct tune_request *r, const struct quirks *q, struct buf *out,
		  struct buf *tuned)
{
	/* The console comes first: an init writes to the last one of two console= options. */
	if (r->is_linux && !r->cmdline)
		add_word(out, r->disk_cmdline);
	if (r->is_linux && !r->cmdline)
		add_word(out, r->virtio_console ? LINUX_DEFAULTS_HVC : LINUX_DEFAULTS);
	add_word(out, r->cmdline);
	if (r->is_linux && r->tune && q->interpreted) {
		for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
			if (tune_fits(r, settings[i].when))
				add_word(tuned, settings[i].text);
		add_initcalls(r, tuned);
		if (r->disk_initrd)
			buf_printf(tuned, " rootdelay=%u", rootdelay(q));
	}
	buf_u8(tuned, 0);
	add_word(out, (const char *)tuned->data);
	/* A bare-metal guest cannot learn the frequency otherwise if CPUID does not contain it. */
	if (!r->is_linux && r->tsc_khz)
		buf_printf(out, "%stsc_khz=%u", out->len ? " " : "", r->tsc_khz);
	add_word(out, r->extra);
	add_word(out, r->append);
	buf_u8(out, 0);
}
