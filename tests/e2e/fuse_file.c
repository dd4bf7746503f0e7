/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuse_file: a file system with one file, "memory", whose server can stop answering reads.
 *
 *     fuse_file DIRECTORY BYTES
 *
 * It needs root and /dev/fuse, and mounts itself; status 77 with a line where that is refused. Commands come one a line on
 * stdin, and each is answered by one line on stdout: "dead" keeps reads waiting until "alive", which answers them; "asked" is answered by
 * the process numbers of those that read since the last one. It ends with its standard input. The protocol is that of linux/fuse.h 7.31.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILE_ID 2u
#define MAX_WRITE 131072u
#define MAX_WAITING 1024u
#define SKIPPED 77

static int fuse;
static uint8_t *bytes;
static uint64_t size;
static bool dead;

/* A read that is not answered yet. */
struct waiting {
	uint64_t unique, offset;
	uint32_t size;
};
static struct waiting waiting[MAX_WAITING];
static unsigned int nwaiting;
static uint32_t asked[MAX_WAITING];
static unsigned int nasked;

static void reply(uint64_t unique, int error, const void *data, size_t len)
{
	struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + len),
					.error = -error,
					.unique = unique };
	struct iovec part[2] = { { &head, sizeof(head) }, { (void *)(uintptr_t)data, len } };

	/* ENOENT: whoever asked is gone. */
	(void)!writev(fuse, part, len ? 2 : 1);
}

static struct fuse_attr attributes(uint64_t id)
{
	return (struct fuse_attr){ .ino = id,
				   .size = id == FILE_ID ? size : 0,
				   .blocks = id == FILE_ID ? size / 512 : 0,
				   .mode = id == FILE_ID ? S_IFREG | 0600 : S_IFDIR | 0700,
				   .nlink = 1,
				   .blksize = 4096 };
}

static void answer_read(const struct waiting *r)
{
	uint64_t left = r->offset < size ? size - r->offset : 0;

	reply(r->unique, 0, bytes + (left ? r->offset : 0), left < r->size ? left : r->size);
}

static void take_read(const struct fuse_in_header *h, const struct fuse_read_in *in)
{
	const struct waiting r = { h->unique, in->offset, in->size };

	if (nasked < MAX_WAITING)
		asked[nasked++] = h->pid;
	if (!dead)
		answer_read(&r);
	else if (nwaiting < MAX_WAITING)
		waiting[nwaiting++] = r;
}

static void take_write(const struct fuse_in_header *h, const struct fuse_write_in *in)
{
	const struct fuse_write_out out = { .size = in->size };

	if (in->offset > size || in->size > size - in->offset) {
		reply(h->unique, EFBIG, NULL, 0);
		return;
	}
	memcpy(bytes + in->offset, in + 1, in->size);
	reply(h->unique, 0, &out, sizeof(out));
}

static void take_lookup(const struct fuse_in_header *h, const char *name)
{
	const struct fuse_entry_out out = { .nodeid = FILE_ID,
					    .entry_valid = 3600,
					    .attr_valid = 3600,
					    .attr = attributes(FILE_ID) };

	if (h->nodeid != FUSE_ROOT_ID || strcmp(name, "memory"))
		reply(h->unique, ENOENT, NULL, 0);
	else
		reply(h->unique, 0, &out, sizeof(out));
}

static void take(const struct fuse_in_header *h)
{
	const void *in = h + 1;
	const struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
					    .minor = 31,
					    .max_write = MAX_WRITE };
	const struct fuse_attr_out attr = { .attr_valid = 3600, .attr = attributes(h->nodeid) };
	const struct fuse_open_out opened = { .open_flags = FOPEN_KEEP_CACHE };

	switch (h->opcode) {
	case FUSE_INIT:
		reply(h->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		take_lookup(h, in);
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		reply(h->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		reply(h->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		take_read(h, in);
		break;
	case FUSE_WRITE:
		take_write(h, in);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_FSYNC:
		reply(h->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET: /* these have no answer */
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(h->unique, ENOSYS, NULL, 0);
	}
}

static void obey(char *line)
{
	line[strcspn(line, "\n")] = 0;
	if (!strcmp(line, "asked")) {
		for (unsigned int i = 0; i < nasked; i++)
			printf("%u ", asked[i]);
		printf("\n");
		nasked = 0;
		return;
	}
	dead = !strcmp(line, "dead");
	while (!dead && nwaiting)
		answer_read(&waiting[--nwaiting]);
	printf("ok\n");
}

static void serve(void)
{
	static _Alignas(8) uint8_t request[MAX_WRITE + 4096];
	struct pollfd p[2] = { { .fd = fuse, .events = POLLIN },
			       { .fd = STDIN_FILENO, .events = POLLIN } };
	char line[64];

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
		if (p[0].revents) {
			ssize_t n = read(fuse, request, sizeof(request));

			if (n < 0 && errno == ENODEV) /* it was unmounted */
				return;
			if (n >= (ssize_t)sizeof(struct fuse_in_header))
				take((const struct fuse_in_header *)request);
		}
		if (p[1].revents) {
			if (!fgets(line, sizeof(line), stdin))
				return;
			obey(line);
		}
	}
}

int main(int argc, char **argv)
{
	char options[128];

	if (argc != 3)
		return 2;
	size = strtoull(argv[2], NULL, 0);
	bytes = calloc(1, size);
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (!bytes || fuse < 0 ||
	    mount("kvmprof-test", argv[1], "fuse.kvmprof-test", MS_NOSUID | MS_NODEV, options) <
		    0) {
		printf("%s\n", strerror(errno));
		return SKIPPED;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ok\n");
	serve();
	umount2(argv[1], MNT_DETACH);
	return 0;
}
