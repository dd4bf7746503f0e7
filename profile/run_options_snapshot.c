/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/run_options_snapshot.h"

#include "profile/run_options.h"

#include <string.h>

#define CONSOLE "console:"

static int take_marker(struct run_options *o, const char *arg)
{
	const char *colon = strchr(arg, ':');

	if (!strncmp(arg, CONSOLE, strlen(CONSOLE)))
		o->snapshot.on = arg + strlen(CONSOLE);
	else if (colon || !*arg)
		return run_options_wrong(
			o, "--at %s: expected SYMBOL, SYMBOL+OFFSET, 0xADDRESS or console:REGEX",
			arg);
	else
		o->snapshot.at = arg;
	return -1;
}

int run_options_snapshot(struct run_options *o, int opt, const char *arg)
{
	switch (opt) {
	case OPT_SNAPSHOT:
		o->snapshot.from = arg;
		break;
	case OPT_SNAPSHOT_SAVE:
		o->snapshot.save = arg;
		break;
	case OPT_SNAPSHOT_AT:
		o->snapshot.at = arg;
		break;
	case OPT_SNAPSHOT_ON:
		o->snapshot.on = arg;
		break;
	case OPT_SNAPSHOT_MARKER:
		return take_marker(o, arg);
	default: /* OPT_SNAPSHOT_CONTINUE */
		o->snapshot.go_on = true;
		return -1;
	}
	return *arg ? -1 : run_options_wrong(o, "an option of snapshots has an empty value");
}

/* What the snapshot has already, and nobody can change any more; NULL: nothing of it is given. */
static const char *contradicted(const struct run_options *o)
{
	const struct {
		bool given;
		const char *what;
	} fixed[] = {
		{ o->image, "an IMAGE" },
		{ o->mem_given, "--memory" },
		{ o->vcpus_given, "--vcpus" },
		{ o->boot == BOOT_WAY_BZIMAGE, "--boot" },
		{ o->initrd, "--initrd" },
		{ o->append, "--append" },
		{ o->cmdline, "--cmdline" },
		{ !o->tune, "--no-tune" },
		{ o->virtio_mmio, "--virtio" },
		{ o->rng, "--rng" },
		{ o->virtio_console, "--virtio-console" },
		{ o->disk.n != 0, "--disk" },
		{ o->disk.writable, "--writable" },
		{ exec_any(&o->exec), "--exec and what belongs to it" },
		{ o->domain, "--domain" },
	};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (fixed[i].given)
			return fixed[i].what;
	return NULL;
}

int run_options_snapshot_check(const struct run_options *o)
{
	const struct run_snapshot_options *s = &o->snapshot;
	const char *what = s->from ? contradicted(o) : NULL;

	if (what)
		return run_options_wrong(
			o, "--snapshot has its machine and kernel already: drop %s", what);
	if (!s->save && (s->at || s->on))
		return run_options_wrong(o, "%s says when to save: add --snapshot-save FILE",
					 s->at ? "--snapshot-at" : "--snapshot-on");
	if (!s->save && s->go_on)
		return run_options_wrong(o, "--snapshot-continue needs --snapshot-save FILE");
	if (s->save && !s->at && !s->on)
		return run_options_wrong(
			o, "--snapshot-save %s: say when, by --snapshot-at or --snapshot-on",
			s->save);
	if (s->at && s->on)
		return run_options_wrong(o,
					 "--snapshot-at and --snapshot-on: one of them is enough");
	return -1;
}
