/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/rsp_query.h"

#include "vmm/attach/rsp_regs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes of a description that one packet requests: with escapes they must fit into 4 KiB. */
#define XML_CHUNK 0x7f0u
/* Maximum number of packets of one answer. */
#define MAX_PARTS 65536u

static int read_file(struct rsp *r, const char *name, struct buf *out, struct err *e)
{
	size_t done = 0;

	for (unsigned int i = 0; i < MAX_PARTS; i++) {
		char command[128];
		int ret;

		snprintf(command, sizeof(command), "qXfer:features:read:%s:%zx,%x", name, done,
			 XML_CHUNK);
		ret = rsp_request(r, command, e);
		if (ret)
			return ret;
		if (rsp_is_refusal(r) || (r->data.data[0] != 'l' && r->data.data[0] != 'm'))
			return err_set(e, ENOTSUP, "the gdbstub does not describe its registers");
		done += r->data.len - 1;
		if (out->len + r->data.len > RSP_MAX_XML)
			return err_set(e, E2BIG, "the gdbstub's description is too long");
		buf_add(out, r->data.data + 1, r->data.len - 1);
		if (out->failed)
			return err_nomem(e);
		if (r->data.data[0] == 'l')
			return 0;
		if (r->data.len == 1)
			break;
	}
	return err_set(e, EPROTO, "the gdbstub's description does not end");
}

/* Returns whether the stub's name of a file has no character with a meaning in a packet. */
static bool is_file_name(const char *s)
{
	return *s && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			       "-_.") == strlen(s);
}

int rsp_description(struct rsp *r, struct buf *out, struct err *e)
{
	char name[RSP_MAX_INCLUDES][64];
	unsigned int n;
	int ret = read_file(r, "target.xml", out, e);

	n = ret ? 0 : rsp_includes((const char *)out->data, out->len, name);
	for (unsigned int i = 0; !ret && i < n; i++)
		ret = is_file_name(name[i])
			      ? read_file(r, name[i], out, e)
			      : err_set(e, EPROTO, "the gdbstub's description includes no file");
	return ret;
}

/*
 * Adds the identifiers of a list like "m01,02,p1.3" to id[]. Returns their number. Malformed ones
 * are left out.
 */
static unsigned int take_threads(const char *s, char id[RSP_MAX_THREADS][RSP_THREAD_ID],
				 unsigned int n)
{
	while (*s && n < RSP_MAX_THREADS) {
		size_t len = strcspn(s, ",");

		if (len && len < RSP_THREAD_ID && strspn(s, "0123456789abcdefABCDEFp.") >= len) {
			memcpy(id[n], s, len);
			id[n++][len] = '\0';
		}
		s += len + (s[len] == ',');
	}
	return n;
}

int rsp_threads(struct rsp *r, char id[RSP_MAX_THREADS][RSP_THREAD_ID], unsigned int *n,
		struct err *e)
{
	int ret = rsp_request(r, "qfThreadInfo", e);

	*n = 0;
	for (unsigned int i = 0; !ret && i < MAX_PARTS && r->data.len && r->data.data[0] == 'm';
	     i++) {
		*n = take_threads((const char *)r->data.data + 1, id, *n);
		ret = rsp_request(r, "qsThreadInfo", e);
	}
	if (ret)
		return ret;
	return *n ? 0 : err_set(e, ENODEV, "the gdbstub has no vCPU");
}

static int nibble(uint8_t c)
{
	return c >= '0' && c <= '9'			? c - '0'
	       : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
							: -1;
}

/* Converts 2 * len hex digits to len bytes. Returns false if one is not a digit. */
static bool unhex(uint8_t *dst, const uint8_t *hex, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		int high = nibble(hex[2 * i]), low = nibble(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		dst[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static int add_text(struct buf *out, const uint8_t *hex, size_t digits, struct err *e)
{
	uint8_t *room = buf_reserve(out, digits / 2);

	if (out->failed || (digits && !room))
		return err_nomem(e);
	if (out->len + digits / 2 > RSP_MAX_TEXT || !unhex(room, hex, digits / 2))
		return err_set(e, EPROTO, "the gdbstub prints what is no text");
	out->len += digits / 2;
	return 0;
}

int rsp_monitor(struct rsp *r, const char *command, struct buf *out, struct err *e)
{
	struct buf b;
	int ret;

	buf_init(&b);
	buf_printf(&b, "qRcmd,");
	for (const char *c = command; *c; c++)
		buf_printf(&b, "%02x", (unsigned char)*c);
	buf_u8(&b, 0);
	ret = b.failed ? err_nomem(e) : rsp_request(r, (const char *)b.data, e);
	buf_deinit(&b);
	for (unsigned int i = 0; !ret && i < MAX_PARTS; i++) {
		const uint8_t *d = r->data.data;
		size_t len = r->data.len;

		if (len == 2 && d[0] == 'O' && d[1] == 'K')
			return 0;
		if (rsp_is_refusal(r))
			return err_set(e, ENOTSUP, "the gdbstub takes no monitor commands");
		/* The text is in "O" packets; some put it all into the reply. */
		ret = d[0] == 'O' ? add_text(out, d + 1, len - 1, e) : add_text(out, d, len, e);
		if (d[0] != 'O')
			return ret;
		ret = ret ? ret : rsp_reply(r, e);
	}
	return ret ? ret : err_set(e, EPROTO, "the gdbstub prints without an end");
}

int rsp_read_memory(struct rsp *r, uint64_t addr, void *dst, size_t len, struct err *e)
{
	const size_t chunk = r->chunk;
	size_t asked = 0, done = 0;
	bool good = true;

	while (done < (good ? len : asked)) {
		size_t part;
		int ret;

		while (good && asked < len && asked - done < r->window * chunk) {
			char command[64];

			part = len - asked < chunk ? len - asked : chunk;
			snprintf(command, sizeof(command), "m%" PRIx64 ",%zx", addr + asked, part);
			ret = rsp_send(r, command, e);
			if (ret)
				return ret;
			asked += part;
		}
		part = asked - done < chunk ? asked - done : chunk;
		ret = rsp_reply(r, e);
		if (ret)
			return ret;
		/* Replies to the requests that were sent already still come. */
		good = good && r->data.len == 2 * part &&
		       unhex((uint8_t *)dst + done, r->data.data, part);
		done += part;
	}
	return good ? 0 : -EFAULT;
}
