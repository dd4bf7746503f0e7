/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/options/devices.h"

#include "base/number.h"

#include <errno.h>
#include <string.h>

#define OPTION_STRUCT struct run_options

static bool parse_port(const char **s, uint16_t *out)
{
	uint64_t v;

	if (!number_digits(s, UINT16_MAX, &v))
		return false;
	*out = (uint16_t)v;
	return v > 0;
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

/* A word up to a comma or the end. */
static bool is_next(const char **s, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*s, word, n) || ((*s)[n] && (*s)[n] != ','))
		return false;
	*s += n;
	return true;
}

static int parse_tap(struct run_options *o, const char *name, struct err *e)
{
	size_t n = strlen(name);

	if (!n || n >= sizeof(o->net_tap) || strpbrk(name, ",/ "))
		return err_set(e, EINVAL, "tap=%.150s: expected tap=NAME of up to 15 bytes", name);
	memcpy(o->net_tap, name, n + 1);
	o->net.kind = NET_TAP;
	return 0;
}

static int parse_net(void *at, char *arg, struct err *e)
{
	struct run_options *o = at;
	const char *s = arg + 4;

	if (o->net.kind != NET_NONE)
		return err_set(e, EINVAL, "%.150s: there is one network card", arg);
	if (!strncmp(arg, "tap=", 4))
		return parse_tap(o, s, e);
	if (strncmp(arg, "user", 4) || (*s && *s != ','))
		return -EINVAL;
	o->net.kind = NET_USER;
	while (*s) {
		if (is_next(&s, ",host-loopback")) {
			o->net.host_loopback = true;
			continue;
		}
		if (is_next(&s, ",restrict")) {
			o->net.restricted = true;
			continue;
		}
		if (strncmp(s, ",hostfwd=", 9))
			return err_set(e, EINVAL,
				       "%.150s: after user comes ,hostfwd=tcp:PORT-:PORT, "
				       ",host-loopback or ,restrict",
				       arg);
		s += 9;
		if (o->net.nforwards == NET_MAX_FORWARDS)
			return err_set(e, E2BIG, "more than %u hostfwd", NET_MAX_FORWARDS);
		if (!parse_forward(&s, &o->net.forward[o->net.nforwards++]))
			return err_set(e, EINVAL,
				       "%.150s: expected hostfwd=tcp:PORT-:PORT, the host's and "
				       "the guest's from 1 to 65535",
				       arg);
	}
	if (o->net.restricted && o->net.host_loopback)
		return err_set(e, EINVAL, "%.150s: restrict and host-loopback exclude each other",
			       arg);
	return 0;
}

static const char *const transports[] = { "pci", "mmio", NULL };

const struct option_row run_device_rows[] = {
	{ "virtio", 0, "WAY",
	  "how the guest finds virtio devices: pci (default), or mmio\n"
	  "for kernels without PCI",
	  OPTION_WORD(virtio_mmio, transports) },
	{ "rng", 0, NULL, "a virtio device with the host's random numbers", OPTION_PUT(rng, true) },
	{ "virtio-console", 0, NULL, "console on hvc0: an exit for each line, not for each byte",
	  OPTION_PUT(virtio_console, true) },
	{ "net", 0, "WAY",
	  "a network card: user (TCP/IP in kvmprof; with\n"
	  ",hostfwd=tcp:PORT-:PORT from the host's to the guest's;\n"
	  ",host-loopback: 10.0.2.2 is the host's 127.0.0.1;\n"
	  ",restrict: nothing but hostfwd gets in or out), or\n"
	  "tap=NAME, an interface of the host",
	  OPTION_CALL(parse_net, "user or tap=NAME") },
	{ 0 },
};

void run_options_devices(const struct run_options *o, struct vm_config *cfg)
{
	cfg->transport = o->virtio_mmio ? VM_VIRTIO_MMIO : VM_VIRTIO_PCI;
	cfg->rng = o->rng;
	cfg->virtio_console = o->virtio_console;
	cfg->net = o->net;
	cfg->net.tap = o->net_tap;
}
