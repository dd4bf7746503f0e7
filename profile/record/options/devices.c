/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/options/devices.h"

#include "base/number.h"
#include "vmm/config.h"
#include "vmm/dev/rate.h"

#include <errno.h>
#include <string.h>

#define OPTION_STRUCT struct run_options

#define RATE_LONGEST 31u

/*
 * Copies the value after "WORD=" without "/s". Returns false if it is another setting, or if it is
 * too long.
 */
static bool value_of(const char *setting, size_t len, const char *word, char out[RATE_LONGEST + 1])
{
	size_t n = strlen(word);

	if (len <= n || strncmp(setting, word, n) || setting[n] != '=' ||
	    len - n - 1 > RATE_LONGEST)
		return false;
	len -= n + 1;
	if (len > 2 && !strncmp(setting + n + 1 + len - 2, "/s", 2))
		len -= 2;
	memcpy(out, setting + n + 1, len);
	out[len] = 0;
	return true;
}

int run_options_rate_parse(struct rate_limit *out, const char *setting, size_t len,
			   const char *name, struct err *e)
{
	char value[RATE_LONGEST + 1];
	uint64_t v;

	if (value_of(setting, len, "rate", value)) {
		if (!number_size(value, &v) || v < RATE_LEAST_BYTES)
			return err_set(e, EINVAL,
				       "rate=%s: expected bytes a second, such as 10M or 512K, at "
				       "least 4K",
				       value);
		out->bytes = v;
		return 1;
	}
	if (!value_of(setting, len, name, value))
		return 0;
	if (!number_whole(value, 1, 1000000000, &v))
		return err_set(e, EINVAL, "%s=%s: expected a number of operations a second, from 1",
			       name, value);
	out->operations = v;
	return 1;
}

static bool parse_port(const char **s, uint16_t *out)
{
	uint64_t v;

	if (!number_digits(s, UINT16_MAX, &v))
		return false;
	*out = (uint16_t)v;
	return v > 0;
}

/*
 * Parses "tcp:PORT-:PORT" or "udp:...", up to a comma or the end, as in QEMU but without addresses.
 */
static bool parse_forward(const char **s, struct net_forward *f)
{
	f->udp = !strncmp(*s, "udp:", 4);
	if (!f->udp && strncmp(*s, "tcp:", 4))
		return false;
	*s += 4;
	if (**s == ':') /* an empty host address is accepted, too */
		++*s;
	if (!parse_port(s, &f->host) || strncmp(*s, "-:", 2))
		return false;
	*s += 2;
	return parse_port(s, &f->guest) && (!**s || **s == ',');
}

/* Returns whether the word is next, up to a comma or the end, and skips it. */
static bool is_next(const char **s, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*s, word, n) || ((*s)[n] && (*s)[n] != ','))
		return false;
	*s += n;
	return true;
}

/*
 * Parses a limit after a comma. Returns 1 with *s behind it, 0 if there is another setting, or
 * -EINVAL.
 */
static int parse_limit(const char **s, struct rate_limit *limit, struct err *e)
{
	size_t n = **s == ',' ? strcspn(*s + 1, ",") : 0;
	int ret = n ? run_options_rate_parse(limit, *s + 1, n, "pps", e) : 0;

	if (ret > 0)
		*s += 1 + n;
	return ret;
}

static int parse_tap(struct run_options *o, const char *name, struct err *e)
{
	size_t n = strcspn(name, ",");
	const char *rest = name + n;
	int ret = 1;

	if (!n || n >= sizeof(o->net_tap) || strcspn(name, "/ ") < n)
		return err_set(e, EINVAL, "tap=%.150s: expected tap=NAME of up to 15 bytes", name);
	memcpy(o->net_tap, name, n);
	o->net_tap[n] = '\0';
	while (*rest && ret > 0)
		ret = parse_limit(&rest, &o->net.limit, e);
	if (!ret)
		return err_set(e, EINVAL,
			       "tap=%.150s: after the name comes ,rate=SIZE or ,pps=NUMBER", name);
	o->net.kind = NET_TAP;
	return ret < 0 ? ret : 0;
}

static int parse_net(void *at, char *arg, struct err *e)
{
	struct run_options *o = at;
	const char *s = arg + 4;
	int ret;

	if (o->net.kind != NET_NONE)
		return err_set(e, EINVAL,
			       "%.150s: a guest has one network card at most: give --net once",
			       arg);
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
		ret = parse_limit(&s, &o->net.limit, e);
		if (ret < 0)
			return ret;
		if (ret)
			continue;
		if (strncmp(s, ",hostfwd=", 9))
			return err_set(e, EINVAL,
				       "%.150s: expected after user: ,hostfwd=tcp:PORT-:PORT, "
				       ",host-loopback, ,restrict, ,rate=SIZE or ,pps=NUMBER",
				       arg);
		s += 9;
		if (o->net.nforwards == NET_MAX_FORWARDS)
			return err_set(e, E2BIG, "more than %u hostfwd rules", NET_MAX_FORWARDS);
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
	  "a network card: user (TCP/IP in a separate process; with\n"
	  ",hostfwd=tcp:PORT-:PORT from the host's to the guest's;\n"
	  ",host-loopback: 10.0.2.2 is the host's 127.0.0.1;\n"
	  ",restrict: nothing but hostfwd gets in or out), or\n"
	  "tap=NAME, an interface of the host; both with ,rate=SIZE\n"
	  "and ,pps=N: limits in bytes and packets per second in\n"
	  "each direction",
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
