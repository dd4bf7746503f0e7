/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/snapshot_resources.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static bool is_plain(const char *s)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("/._-+=:,@%", *s))
			return false;
	return true;
}

void snapshot_resources_word(struct buf *out, const char *text)
{
	bool plain = *text && is_plain(text);

	if (!plain)
		buf_u8(out, '\'');
	for (; *text; text++)
		if (*text == '\'')
			buf_add(out, "'\\''", 4);
		else /* the file may try to write to the terminal */
			buf_u8(out, iscntrl((unsigned char)*text) ? '?' : (uint8_t)*text);
	if (!plain)
		buf_u8(out, '\'');
}

/* In a --disk a comma in the name is written twice. */
static void put_disk(struct buf *out, const char *path)
{
	struct buf b;

	buf_init(&b);
	for (; *path; path++)
		buf_add(&b, *path == ',' ? ",," : path, *path == ',' ? 2 : 1);
	buf_u8(&b, 0);
	buf_printf(out, " --disk ");
	if (b.failed)
		out->failed = true;
	else
		snapshot_resources_word(out, (const char *)b.data);
	buf_deinit(&b);
}

static void put_net(struct buf *out, const struct net_config *net)
{
	buf_printf(out, " --net ");
	if (net->kind == NET_TAP) {
		buf_printf(out, "tap=");
		snapshot_resources_word(out, net->tap);
		return;
	}
	buf_printf(out, "user%s%s", net->restricted ? ",restrict" : "",
		   net->host_loopback ? ",host-loopback" : "");
	for (unsigned int i = 0; i < net->nforwards; i++)
		buf_printf(out, ",hostfwd=%s:%u-:%u", net->forward[i].udp ? "udp" : "tcp",
			   net->forward[i].host, net->forward[i].guest);
}

void snapshot_resources_options(const struct snapshot_devices *d,
				const struct snapshot_given *given, struct buf *out)
{
	for (unsigned int i = 0; !given->ndisks && i < d->ndisks; i++)
		put_disk(out, d->disk[i].path);
	for (unsigned int i = 0; !given->nshares && i < d->nshares; i++) {
		buf_printf(out, " --share ");
		snapshot_resources_word(out, d->share[i].dir);
		if (d->share[i].read_only)
			buf_printf(out, ",ro");
	}
	if (!given->net && d->net.kind != NET_NONE)
		put_net(out, &d->net);
}

static int check_number(const char *from, const char *what, const char *option, unsigned int has,
			unsigned int given, struct err *e)
{
	if (!given || given == has)
		return 0;
	if (!has)
		return err_set(e, EINVAL, "%s: its machine has no %s: drop %s", from, what, option);
	return err_set(e, EINVAL, "%s has %u %ss: give %s for each, in order", from, has, what,
		       option);
}

int snapshot_resources_check(const struct snapshot_devices *d, const struct snapshot_given *given,
			     const char *from, struct err *e)
{
	struct buf b;
	int ret = check_number(from, "disk", "--disk PATH", d->ndisks, given->ndisks, e);

	if (ret)
		return ret;
	ret = check_number(from, "share", "--share DIR", d->nshares, given->nshares, e);
	if (ret)
		return ret;
	if (given->net && d->net.kind == NET_NONE)
		return err_set(e, EINVAL, "%s: its machine has no network card: drop --net", from);
	if (given->trust)
		return 0;
	buf_init(&b);
	snapshot_resources_options(d, given, &b);
	buf_u8(&b, 0);
	if (b.failed)
		ret = err_nomem(e);
	else if (b.len > 1)
		ret = err_set(e, EACCES,
			      "%s uses what it names of this host only if that is given again "
			      "(--snapshot-trust allows all of it, for a file of your own):%s",
			      from, (const char *)b.data);
	buf_deinit(&b);
	return ret;
}
