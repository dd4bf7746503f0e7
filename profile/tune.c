/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/tune.h"

/* reboot=k: through the keyboard controller, which needs no ACPI; panic=-1: at once. */
#define LINUX_DEFAULTS "console=ttyS0 reboot=k panic=-1"

struct setting {
	const char *text;
	const char *why; /* for the reader of this table; docs/host-quirks.md repeats it */
	bool one_cpu_only;
};

/* What a kernel does not know it ignores, so one list serves all versions. */
static const struct setting settings[] = {
	{ "clearcpuid=popcnt,rdrand,rdseed,smap,erms,fsrm,umip",
	  "instructions that are refused, or slow when interpreted; CPUID masks alone leak",
	  false },
	{ "tsc=reliable", "no watchdog that compares clocks under an interpreter", false },
	{ "no_timer_check", "the check counts ticks that come late", false },
	{ "rodata=off", "splitting the direct map takes seconds", false },
	{ "mitigations=off", "each costs instructions at every kernel entry", false },
	{ "init_on_alloc=0", "clearing every page by interpreted stores", false },
	{ "audit=0", "work at every system call", false },
	{ "apparmor=0", "policy unpacking and hashing", false },
	{ "cryptomgr.notests", "self tests of ciphers take minutes", false },
	{ "nowatchdog", "soft-lockup timers are false alarms here", false },
	{ "nosoftlockup", "the same", false },
	{ "random.trust_bootloader=on", "hashing for each random number before there is entropy",
	  false },
	{ "pci=off", "scanning an empty bus of 256 x 32 slots", false },
	{ "initcall_blacklist=ftrace_check_for_weak_functions,blake2s_mod_init,curve25519_init,"
	  "chacha20poly1305_init,jent_mod_init,trace_eval_init",
	  "self tests and table fix-ups of 2 s to minutes each", false },
	{ "nolapic", "ticks from the PIT, whose period we can stretch", true },
};

static void add_word(struct buf *b, const char *word)
{
	if (word && *word)
		buf_printf(b, "%s%s", b->len ? " " : "", word);
}

void tune_cmdline(const struct tune_request *r, const struct quirks *q, struct buf *out,
		  struct buf *tuned)
{
	if (r->is_linux && !r->cmdline)
		add_word(out, LINUX_DEFAULTS);
	add_word(out, r->cmdline);
	if (r->is_linux && r->tune && q->interpreted)
		for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
			if (!settings[i].one_cpu_only || r->vcpus == 1)
				add_word(tuned, settings[i].text);
	buf_u8(tuned, 0);
	add_word(out, (const char *)tuned->data);
	/* A bare-metal guest has no other way to learn it where CPUID does not tell. */
	if (!r->is_linux && r->tsc_khz)
		buf_printf(out, "%stsc_khz=%u", out->len ? " " : "", r->tsc_khz);
	add_word(out, r->extra);
	add_word(out, r->append);
	buf_u8(out, 0);
}
