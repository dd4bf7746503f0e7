/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/options/devices.h"

#include <stdlib.h>
#include <string.h>

static bool parse_port(const char **s, uint16_t *out)
{
	unsigned long v;
	char *end;

	if (**s < '0' || **s > '9') /* strtoul takes blanks and signs */
		return false;
	v = strtoul(*s, &end, 10);
	*s = end;
	*out = (uint16_t)v;
	return v > 0 && v <= UINT16_MAX;
}

/* tcp:PORT-:PORT or udp:..., up to a comma or the end; as QEMU has it without addresses. */
static bool parse_forward(const char **s, struct net_forward *f)
{
	f->udp = !strncmp(*s, "udp:", 4);
	if (!f->udp && strncmp(*s, "tcp:", 4))
		return false;
	*s += 4;
	if (**s == ':') /* with an empty host address, too */
		++*s;
	if (!parse_port(s, &f->host) || strncmp(*s, "-:", 2))
		return false;
	*s += 2;
	return parse_port(s, &f->guest) && (!**s || **s == ',');
}

static int take_net(struct run_options *o, const char *arg)
{
	static const char forward[] = ",hostfwd=";
	const char *s = arg + 4;

	if (o->net.kind != NET_NONE)
		return run_options_wrong(o, "--net %s: there is one network card", arg);
	if (!strncmp(arg, "tap=", 4)) {
		size_t n = strlen(s);

		if (!n || n >= sizeof(o->net_tap) || strpbrk(s, ",/ "))
			return run_options_wrong(o, "--net %s: expected tap=NAME of up to 15 bytes",
						 arg);
		memcpy(o->net_tap, s, n + 1);
		o->net.kind = NET_TAP;
		return -1;
	}
	if (strncmp(arg, "user", 4) || (*s && *s != ','))
		return run_options_wrong(o, "--net %s: expected user or tap=NAME", arg);
	o->net.kind = NET_USER;
	while (*s) {
		if (strncmp(s, forward, sizeof(forward) - 1))
			return run_options_wrong(
				o, "--net %s: after user comes ,hostfwd=tcp:PORT-:PORT", arg);
		s += sizeof(forward) - 1;
		if (o->net.nforwards == NET_MAX_FORWARDS)
			return run_options_wrong(o, "--net: more than %u hostfwd",
						 NET_MAX_FORWARDS);
		if (!parse_forward(&s, &o->net.forward[o->net.nforwards++]))
			return run_options_wrong(o,
						 "--net %s: expected hostfwd=tcp:PORT-:PORT, the "
						 "host's and the guest's from 1 to 65535",
						 arg);
	}
	return -1;
}

int run_options_take_device(struct run_options *o, int opt, const char *arg)
{
	switch (opt) {
	case OPT_VIRTIO:
		if (!strcmp(arg, "mmio"))
			o->virtio_mmio = true;
		else if (!strcmp(arg, "pci"))
			o->virtio_mmio = false;
		else
			return run_options_wrong(o, "--virtio %s: expected pci or mmio", arg);
		return -1;
	case OPT_RNG:
		o->rng = true;
		return -1;
	case OPT_NET:
		return take_net(o, arg);
	default: /* OPT_VIRTIO_CONSOLE */
		o->virtio_console = true;
		return -1;
	}
}

void run_options_devices(const struct run_options *o, struct vm_config *cfg)
{
	cfg->transport = o->virtio_mmio ? VM_VIRTIO_MMIO : VM_VIRTIO_PCI;
	cfg->rng = o->rng;
	cfg->virtio_console = o->virtio_console;
	cfg->net = o->net;
	cfg->net.tap = o->net_tap;
}
