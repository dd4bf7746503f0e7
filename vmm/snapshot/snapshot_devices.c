/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/snapshot/snapshot_devices.h"

#include "base/cleanup.h"
#include "vmm/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Bits of the network's flags. */
enum { NET_LOOPBACK = 1, NET_RESTRICTED = 2 };

/* -- bytes ---------------------------------------------------------------------------- */

static void put_text(struct buf *out, const char *s)
{
	size_t len = s ? strlen(s) : 0;

	buf_u16(out, (uint16_t)len);
	buf_add(out, s, len);
}

/*
 * Reads a text into out, whose size cap includes the NUL. Sets in->bad if it does not fit or
 * contains a NUL.
 */
static void take_text(struct cursor *in, char *out, size_t cap)
{
	uint16_t len = cursor_u16(in);
	const uint8_t *p = len < cap ? cursor_bytes(in, len) : NULL;

	if (!p || memchr(p, 0, len)) {
		in->bad = true;
		return;
	}
	memcpy(out, p, len);
	out[len] = '\0';
}

static unsigned int take_count(struct cursor *in, unsigned int max)
{
	uint32_t n = cursor_u32(in);

	if (n <= max)
		return n;
	in->bad = true;
	return 0;
}

static void take_disk(struct cursor *in, struct snapshot_disk *d)
{
	take_text(in, d->path, sizeof(d->path));
	take_text(in, d->serial, sizeof(d->serial));
	d->read_only = cursor_u8(in) & 1;
	d->id.size = cursor_u64(in);
	d->id.stamp = cursor_u64(in);
	d->id.check = cursor_u32(in);
	if (d->path[0] != '/')
		in->bad = true;
}

static void take_share(struct cursor *in, struct snapshot_share *s)
{
	take_text(in, s->dir, sizeof(s->dir));
	take_text(in, s->tag, sizeof(s->tag));
	s->read_only = cursor_u8(in) & 1;
	if (s->dir[0] != '/' || !s->tag[0])
		in->bad = true;
}

static void take_net(struct cursor *in, struct snapshot_devices *d)
{
	struct net_config *net = &d->net;
	uint8_t kind = cursor_u8(in), flags = cursor_u8(in);

	take_text(in, d->tap, sizeof(d->tap));
	net->nforwards = take_count(in, NET_MAX_FORWARDS);
	for (unsigned int i = 0; i < net->nforwards; i++) {
		net->forward[i].udp = cursor_u8(in) & 1;
		net->forward[i].host = cursor_u16(in);
		net->forward[i].guest = cursor_u16(in);
	}
	net->kind = (enum net_kind)kind;
	net->host_loopback = flags & NET_LOOPBACK;
	net->restricted = flags & NET_RESTRICTED;
	if (kind > NET_TAP || flags > (NET_LOOPBACK | NET_RESTRICTED) ||
	    (kind == NET_TAP) != (d->tap[0] != '\0'))
		in->bad = true;
}

int snapshot_devices_parse(struct snapshot_devices *out, struct cursor *in, struct err *e)
{
	memset(out, 0, sizeof(*out));
	out->net.tap = out->tap;
	out->ndisks = take_count(in, VM_MAX_DISKS);
	for (unsigned int i = 0; i < out->ndisks; i++)
		take_disk(in, &out->disk[i]);
	out->nshares = take_count(in, VM_MAX_SHARES);
	for (unsigned int i = 0; i < out->nshares; i++)
		take_share(in, &out->share[i]);
	take_net(in, out);
	return in->bad || cursor_left(in)
		       ? err_set(e, EINVAL, "the snapshot's data of disks and shares are damaged")
		       : 0;
}

int snapshot_devices(const struct snapshot *s, struct snapshot_devices *out, struct err *e)
{
	struct cursor in;
	int ret = snapshot_find(s, SNAPSHOT_DEVICES, SNAPSHOT_DEVICES_VERSION, &in, e);

	return ret ? ret : snapshot_devices_parse(out, &in, e);
}

void snapshot_devices_configure(const struct snapshot_devices *d, struct vm_config *cfg)
{
	cfg->nshares = d->nshares;
	for (unsigned int i = 0; i < d->nshares; i++)
		cfg->share[i] = (struct vm_share){ d->share[i].dir, d->share[i].tag,
						   d->share[i].read_only };
	cfg->net = d->net;
}

/* -- saving --------------------------------------------------------------------------- */

static int save_disk(const struct vm_disk *d, struct buf *out, struct err *e)
{
	const char *path = disk_path(d->disk);
	cleanup_free char *whole = realpath(path, NULL);
	struct disk_identity id;
	int ret;

	if (disk_is_writable(d->disk))
		return err_set(e, ENOTSUP,
			       "%s: the guest changes this image itself, and would find it changed "
			       "when it continues: drop 'writable'",
			       path);
	if (!whole)
		return err_set(e, ENOTSUP,
			       "%s: the image of a disk does not exist any more (%s), so no run "
			       "could continue from the snapshot",
			       path, strerror(errno));
	ret = disk_identify(d->disk, &id, e);
	if (ret)
		return ret;
	put_text(out, whole);
	put_text(out, d->serial);
	buf_u8(out, disk_is_read_only(d->disk));
	buf_u64(out, id.size);
	buf_u64(out, id.stamp);
	buf_u32(out, id.check);
	return 0;
}

static void save_net(const struct net_config *net, struct buf *out)
{
	buf_u8(out, (uint8_t)net->kind);
	buf_u8(out,
	       (net->host_loopback ? NET_LOOPBACK : 0) | (net->restricted ? NET_RESTRICTED : 0));
	put_text(out, net->kind == NET_TAP ? net->tap : NULL);
	buf_u32(out, net->nforwards);
	for (unsigned int i = 0; i < net->nforwards; i++) {
		buf_u8(out, net->forward[i].udp);
		buf_u16(out, net->forward[i].host);
		buf_u16(out, net->forward[i].guest);
	}
}

int snapshot_devices_save(const struct vm_config *cfg, struct buf *out, struct err *e)
{
	int ret = 0;

	buf_u32(out, cfg->ndisks);
	for (unsigned int i = 0; !ret && i < cfg->ndisks; i++)
		ret = save_disk(&cfg->disk[i], out, e);
	if (ret)
		return ret;
	buf_u32(out, cfg->nshares);
	for (unsigned int i = 0; i < cfg->nshares; i++) {
		put_text(out, cfg->share[i].dir);
		put_text(out, cfg->share[i].tag);
		buf_u8(out, cfg->share[i].read_only);
	}
	save_net(&cfg->net, out);
	return 0;
}

/* Uses a memory file, because length and checksum precede the bytes in the file. */
int snapshot_overlay_save(const struct disk *d, struct file_map *out, struct err *e)
{
	cleanup_close int fd = memfd_create("kvmprof-snapshot", MFD_CLOEXEC);
	off_t len;
	void *p;
	int ret;

	if (fd < 0)
		return err_set(e, errno, "memfd_create: %s", strerror(errno));
	ret = disk_overlay_save(d, fd, e);
	if (ret)
		return ret;
	len = lseek(fd, 0, SEEK_CUR);
	p = len > 0 ? mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (p == MAP_FAILED)
		return err_set(e, errno, "%s: cannot save what was written to it: %s", disk_path(d),
			       strerror(errno));
	*out = (struct file_map){ .data = p, .len = (size_t)len };
	return 0;
}

/* -- going on ------------------------------------------------------------------------- */

static void put_time(char *out, size_t len, uint64_t stamp)
{
	time_t t = (time_t)(stamp / 1000000000u);
	struct tm tm;

	if (!stamp || !localtime_r(&t, &tm) || !strftime(out, len, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(out, len, "unknown");
}

int snapshot_disk_check(const struct snapshot_disk *was, unsigned int i, const struct disk *now,
			const char *from, struct err *e)
{
	struct disk_identity id;
	char then[32], since[32];
	int ret = disk_identify(now, &id, e);

	if (ret)
		return ret;
	if (id.size != was->id.size)
		return err_set(e, ESTALE,
			       "%s: %s is not the image of its disk vd%c: it has %" PRIu64
			       " bytes, that one had %" PRIu64,
			       from, disk_path(now), 'a' + (char)i, id.size, was->id.size);
	put_time(then, sizeof(then), was->id.stamp);
	put_time(since, sizeof(since), id.stamp);
	if (id.stamp != was->id.stamp)
		return err_set(e, ESTALE,
			       "%s: %s, the image of its disk vd%c, was changed since the snapshot "
			       "was saved (at %s; then its time was %s): save it again (a copy has "
			       "to keep the time: cp -p)",
			       from, disk_path(now), 'a' + (char)i, since, then);
	if (id.check != was->id.check)
		return err_set(e, ESTALE,
			       "%s: %s is not the image of its disk vd%c: its contents differ "
			       "(checksum %08x, then %08x)",
			       from, disk_path(now), 'a' + (char)i, id.check, was->id.check);
	return 0;
}

int snapshot_overlays_restore(const struct snapshot *s, const struct vm_config *cfg, struct err *e)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < cfg->ndisks; i++) {
		char name[SNAPSHOT_NAME];
		struct cursor in;

		snprintf(name, sizeof(name), "overlay.%u", i);
		ret = snapshot_find_large(s, name, SNAPSHOT_OVERLAY_VERSION, &in, e);
		ret = ret ? ret : disk_overlay_restore(cfg->disk[i].disk, &in, e);
		if (!ret && cursor_left(&in))
			ret = err_set(e, EINVAL, "%s: section '%s' has %zu bytes too many",
				      snapshot_path(s), name, cursor_left(&in));
	}
	return ret;
}
