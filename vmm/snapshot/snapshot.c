/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/snapshot/snapshot.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/outfile.h"
#include "base/signals.h"
#include "base/gmem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define MAGIC "KVMPSNAP"
#define HEADER_LEN 40u
#define HEADER_CRC 32u /* offset */
#define ENTRY_LEN 48u
#define HEAD_MAX (HEADER_LEN + SNAPSHOT_MAX_SECTIONS * ENTRY_LEN)
/* Maximum bytes of RAM in one write. */
#define RUN_MAX (1u << 20)

struct snapshot {
	char *path;
	int fd;
	uint8_t *data; /* everything before RAM, mapped */
	size_t len;
	struct snapshot_table table;
};

static uint64_t page_up(uint64_t v)
{
	return (v + SNAPSHOT_PAGE - 1) & ~(uint64_t)(SNAPSHOT_PAGE - 1);
}

/* Returns whether the section is mapped only when it is needed, and not verified before. */
static bool is_large(const char *name)
{
	return !strncmp(name, "file:", 5) || !strncmp(name, "overlay", 7);
}

static uint32_t crc_of(uint32_t crc, const uint8_t *p, size_t len)
{
	return (uint32_t)crc32_z(crc, p, len);
}

/* -- the table ------------------------------------------------------------------------ */

static bool good_name(const char name[SNAPSHOT_NAME])
{
	size_t n = strnlen(name, SNAPSHOT_NAME);

	for (size_t i = 0; i < n; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	for (size_t i = n; i < SNAPSHOT_NAME; i++)
		if (name[i])
			return false;
	return n > 0 && n < SNAPSHOT_NAME;
}

static const struct snapshot_section *snapshot_find_section(const struct snapshot_table *t,
							    const char *name)
{
	for (unsigned int i = 0; i < t->n; i++)
		if (!strcmp(t->at[i].name, name))
			return &t->at[i];
	return NULL;
}

/* Parses one entry of the table. *end: where the preceding section ends in the file; updated. */
static int parse_section(struct snapshot_table *t, const char *path, struct cursor *c,
			 uint64_t *end, struct err *e)
{
	struct snapshot_section s = { 0 };
	const uint8_t *name = cursor_bytes(c, SNAPSHOT_NAME);

	if (name)
		memcpy(s.name, name, SNAPSHOT_NAME);
	s.version = cursor_u32(c);
	s.crc = cursor_u32(c);
	s.off = cursor_u64(c);
	s.len = cursor_u64(c);
	if (c->bad || !good_name(s.name))
		return err_set(e, EINVAL, "%s: section %u of the snapshot has no name", path, t->n);
	if (snapshot_find_section(t, s.name))
		return err_set(e, EINVAL, "%s: the snapshot has two sections '%s'", path, s.name);
	if (s.len > (is_large(s.name) ? SNAPSHOT_MAX_FILE : SNAPSHOT_MAX_SECTION))
		return err_set(e, EINVAL, "%s: section '%s' has %" PRIu64 " bytes, too many", path,
			       s.name, s.len);
	if (s.off % SNAPSHOT_PAGE || s.off < *end || s.off > t->ram_off ||
	    s.len > t->ram_off - s.off)
		return err_set(e, EINVAL,
			       "%s: section '%s' has the place 0x%" PRIx64 " and %" PRIu64
			       " bytes, which is not valid",
			       path, s.name, s.off, s.len);
	*end = s.off + s.len;
	t->at[t->n++] = s;
	return 0;
}

int snapshot_parse(struct snapshot_table *out, const char *path, const uint8_t *data, size_t len,
		   uint64_t file_len, struct err *e)
{
	cleanup_free struct snapshot_table *t = calloc(1, sizeof(*t));
	static const uint8_t none[4];
	uint32_t version, n, crc, found;
	const uint8_t *magic;
	struct cursor c;
	uint64_t end;
	int ret = 0;

	if (!t)
		return err_nomem(e);
	cursor_init(&c, data, len);
	magic = cursor_bytes(&c, 8);
	if (!magic || memcmp(magic, MAGIC, 8))
		return err_set(e, EINVAL, "%s is not a snapshot of kvmprof", path);
	version = cursor_u32(&c);
	if (version != SNAPSHOT_VERSION)
		return err_set(e, ENOTSUP,
			       "%s: a snapshot of version %u; this kvmprof reads version %u: save "
			       "it again",
			       path, version, SNAPSHOT_VERSION);
	n = cursor_u32(&c);
	t->ram_off = cursor_u64(&c);
	t->ram_len = cursor_u64(&c);
	crc = cursor_u32(&c);
	cursor_skip(&c, 4);
	end = HEADER_LEN + (uint64_t)n * ENTRY_LEN;
	if (c.bad || n > SNAPSHOT_MAX_SECTIONS || end > len)
		return err_set(e, EINVAL, "%s: the snapshot ends in its table of %u sections", path,
			       n);
	found = crc_of(0, data, HEADER_CRC);
	found = crc_of(found, none, sizeof(none));
	found = crc_of(found, data + HEADER_CRC + 4, (size_t)end - HEADER_CRC - 4);
	if (found != crc)
		return err_set(e, EINVAL,
			       "%s: the snapshot's table is damaged (checksum %08x, expected %08x)",
			       path, found, crc);
	if (t->ram_off % SNAPSHOT_PAGE || t->ram_len % SNAPSHOT_PAGE || t->ram_off < end ||
	    !t->ram_len || t->ram_len > SNAPSHOT_MAX_RAM || t->ram_off > SNAPSHOT_MAX_RAM ||
	    file_len != t->ram_off + t->ram_len)
		return err_set(e, EINVAL,
			       "%s: the snapshot has %" PRIu64 " bytes, and should have %" PRIu64
			       ": it was cut off",
			       path, file_len, t->ram_off + t->ram_len);
	while (!ret && t->n < n)
		ret = parse_section(t, path, &c, &end, e);
	if (!ret)
		*out = *t;
	return ret;
}

/* -- reading -------------------------------------------------------------------------- */

static int check_section(const struct snapshot *s, const struct snapshot_section *at, struct err *e)
{
	uint32_t found = crc_of(0, s->data + at->off, (size_t)at->len);

	return found == at->crc
		       ? 0
		       : err_set(e, EINVAL,
				 "%s: section '%s' is damaged (checksum %08x, expected %08x)",
				 s->path, at->name, found, at->crc);
}

static int check_sections(const struct snapshot *s, struct err *e)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < s->table.n; i++)
		if (!is_large(s->table.at[i].name))
			ret = check_section(s, &s->table.at[i], e);
	return ret;
}

static int open_file(struct snapshot *s, struct err *e)
{
	uint8_t head[HEAD_MAX];
	struct stat st;
	ssize_t n;
	void *p;
	int ret;

	s->fd = file_open_regular(s->path, &st, e);
	if (s->fd < 0)
		return s->fd;
	n = pread(s->fd, head, sizeof(head), 0);
	if (n < 0)
		return err_set(e, errno, "%s: %s", s->path, strerror(errno));
	ret = snapshot_parse(&s->table, s->path, head, (size_t)n, (uint64_t)st.st_size, e);
	if (ret)
		return ret;
	s->len = (size_t)s->table.ram_off;
	p = mmap(NULL, s->len, PROT_READ, MAP_PRIVATE, s->fd, 0);
	if (p == MAP_FAILED)
		return err_set(e, errno, "%s: cannot map it: %s", s->path, strerror(errno));
	s->data = p;
	return check_sections(s, e);
}

bool snapshot_is_file(const char *path)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[sizeof(MAGIC) - 1];

	return fd >= 0 && read(fd, head, sizeof(head)) == (ssize_t)sizeof(head) &&
	       !memcmp(head, MAGIC, sizeof(head));
}

int snapshot_open(struct snapshot **out, const char *path, struct err *e)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	int ret;

	if (!s || !(s->path = strdup(path))) {
		free(s);
		return err_nomem(e);
	}
	s->fd = -1;
	ret = open_file(s, e);
	if (ret)
		snapshot_close(s);
	else
		*out = s;
	return ret;
}

void snapshot_close(struct snapshot *s)
{
	if (!s)
		return;
	if (s->data)
		munmap(s->data, s->len);
	if (s->fd >= 0)
		close(s->fd);
	free(s->path);
	free(s);
}

const char *snapshot_path(const struct snapshot *s)
{
	return s->path;
}

int snapshot_find(const struct snapshot *s, const char *name, uint32_t version, struct cursor *out,
		  struct err *e)
{
	const struct snapshot_section *at = snapshot_find_section(&s->table, name);

	if (!at)
		return err_set(e, ENOENT, "%s: the snapshot has no section '%s'", s->path, name);
	if (at->version != version)
		return err_set(e, ENOTSUP,
			       "%s: section '%s' has version %u; this kvmprof reads version %u: "
			       "save the snapshot again",
			       s->path, name, at->version, version);
	cursor_init(out, s->data + at->off, (size_t)at->len);
	return 0;
}

int snapshot_find_large(const struct snapshot *s, const char *name, uint32_t version,
			struct cursor *out, struct err *e)
{
	const struct snapshot_section *at = snapshot_find_section(&s->table, name);
	int ret = snapshot_find(s, name, version, out, e);

	return ret ? ret : check_section(s, at, e);
}

int snapshot_map(const struct snapshot *s, const char *name, struct file_map *out, struct err *e)
{
	const struct snapshot_section *at = snapshot_find_section(&s->table, name);
	void *p;

	if (!at)
		return err_set(e, ENOENT, "%s: the snapshot has no section '%s'", s->path, name);
	if (!at->len)
		return err_set(e, EINVAL, "%s: section '%s' is empty", s->path, name);
	p = mmap(NULL, (size_t)at->len, PROT_READ, MAP_PRIVATE, s->fd, (off_t)at->off);
	if (p == MAP_FAILED)
		return err_set(e, errno, "%s: cannot map section '%s': %s", s->path, name,
			       strerror(errno));
	*out = (struct file_map){ .data = p, .len = (size_t)at->len };
	return 0;
}

static int check_size(const struct snapshot *s, const struct gmem *mem, struct err *e)
{
	return gmem_size(mem) == s->table.ram_len
		       ? 0
		       : err_set(e, EINVAL,
				 "%s: the snapshot has %" PRIu64
				 " MiB of memory, the machine %" PRIu64,
				 s->path, s->table.ram_len >> 20, gmem_size(mem) >> 20);
}

int snapshot_map_ram(const struct snapshot *s, struct gmem *mem, struct err *e)
{
	uint64_t off = s->table.ram_off;
	int ret = check_size(s, mem, e);

	if (ret)
		return ret;
	for (unsigned int i = 0; i < mem->n; i++) {
		const struct gmem_region *r = &mem->region[i];

		if (mmap(r->host, r->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, s->fd, (off_t)off) == MAP_FAILED)
			return err_set(e, errno, "%s: cannot map its memory: %s", s->path,
				       strerror(errno));
		(void)madvise(r->host, r->size, MADV_DONTDUMP);
		off += r->size;
	}
	return 0;
}

/* Copies the data of the file in [off, off + len) to p, skipping holes. */
static int read_region(int fd, uint8_t *p, uint64_t off, uint64_t len)
{
	uint64_t at = off, end = off + len;

	while (at < end) {
		off_t from = lseek(fd, (off_t)at, SEEK_DATA), to;

		if (from < 0 && errno == ENXIO)
			return 0;
		to = from < 0 ? -1 : lseek(fd, from, SEEK_HOLE);
		if (to < 0)
			return -errno;
		if ((uint64_t)to > end)
			to = (off_t)end;
		for (at = (uint64_t)from; at < (uint64_t)to;) {
			ssize_t n = pread(fd, p + (at - off), (size_t)to - at, (off_t)at);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return n ? -errno : -EIO;
			at += (uint64_t)n;
		}
	}
	return 0;
}

int snapshot_read_ram(const struct snapshot *s, struct gmem *mem, struct err *e)
{
	uint64_t off = s->table.ram_off;
	int ret = check_size(s, mem, e);

	for (unsigned int i = 0; !ret && i < mem->n; i++) {
		const struct gmem_region *r = &mem->region[i];

		ret = read_region(s->fd, r->host, off, r->size);
		if (ret)
			return err_set(e, -ret, "%s: cannot read its memory: %s", s->path,
				       strerror(-ret));
		off += r->size;
	}
	return ret;
}

/* -- writing -------------------------------------------------------------------------- */

int snapshot_add(struct snapshot_writer *w, const struct snapshot_blob *b, struct err *e)
{
	struct snapshot_section *s = &w->table.at[w->table.n];

	if (w->table.n == SNAPSHOT_MAX_SECTIONS || strlen(b->name) >= SNAPSHOT_NAME ||
	    snapshot_find_section(&w->table, b->name))
		return err_set(e, EINVAL, "no room for section '%s' in a snapshot", b->name);
	if (b->len > (is_large(b->name) ? SNAPSHOT_MAX_FILE : SNAPSHOT_MAX_SECTION))
		return err_set(e, EFBIG,
			       "section '%s' of a snapshot would have %zu bytes, too many", b->name,
			       b->len);
	memset(s->name, 0, sizeof(s->name));
	memcpy(s->name, b->name, strlen(b->name));
	s->version = b->version;
	s->len = b->len;
	s->crc = crc_of(0, b->data, b->len);
	w->blob[w->table.n++] = *b;
	return 0;
}

static int write_at(int fd, const uint8_t *p, size_t len, uint64_t off)
{
	while (len) {
		ssize_t n = pwrite(fd, p, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static bool page_is_zero(const uint8_t *p)
{
	uint64_t first;

	memcpy(&first, p, sizeof(first));
	return !first && !memcmp(p, p + sizeof(first), SNAPSHOT_PAGE - sizeof(first));
}

/* Writes a region; pages of zeros remain holes. */
static int write_region(int fd, const struct gmem_region *r, uint64_t off)
{
	uint64_t at = 0;

	while (at < r->size) {
		uint64_t from;
		int ret;

		while (at < r->size && page_is_zero(r->host + at))
			at += SNAPSHOT_PAGE;
		from = at;
		while (at < r->size && at - from < RUN_MAX && !page_is_zero(r->host + at))
			at += SNAPSHOT_PAGE;
		ret = write_at(fd, r->host + from, (size_t)(at - from), off + from);
		if (ret)
			return ret;
	}
	return 0;
}

static int write_head(int fd, struct snapshot_table *t)
{
	struct buf b;
	int ret;

	buf_init(&b);
	buf_add(&b, MAGIC, 8);
	buf_u32(&b, SNAPSHOT_VERSION);
	buf_u32(&b, t->n);
	buf_u64(&b, t->ram_off);
	buf_u64(&b, t->ram_len);
	buf_u32(&b, 0);
	buf_u32(&b, 0);
	for (unsigned int i = 0; i < t->n; i++) {
		const struct snapshot_section *s = &t->at[i];

		buf_add(&b, s->name, sizeof(s->name));
		buf_u32(&b, s->version);
		buf_u32(&b, s->crc);
		buf_u64(&b, s->off);
		buf_u64(&b, s->len);
	}
	if (!b.failed)
		buf_put32(&b, HEADER_CRC, crc_of(0, b.data, b.len));
	ret = b.failed ? -ENOMEM : write_at(fd, b.data, b.len, 0);
	buf_deinit(&b);
	return ret;
}

static int write_all(struct snapshot_writer *w, const struct gmem *mem, int fd)
{
	struct snapshot_table *t = &w->table;
	uint64_t off = page_up(HEADER_LEN + (uint64_t)t->n * ENTRY_LEN);
	int ret = 0;

	for (unsigned int i = 0; !ret && i < t->n; i++) {
		t->at[i].off = off;
		ret = write_at(fd, w->blob[i].data, w->blob[i].len, off);
		off = page_up(off + t->at[i].len);
	}
	t->ram_off = off;
	t->ram_len = gmem_size(mem);
	if (!ret && ftruncate(fd, (off_t)(off + t->ram_len)) < 0)
		ret = -errno;
	for (unsigned int i = 0; !ret && i < mem->n; i++) {
		ret = write_region(fd, &mem->region[i], off);
		off += mem->region[i].size;
	}
	/* The header is written last: a file without it is not a snapshot. */
	return ret ? ret : write_head(fd, t);
}

/* -- the file ------------------------------------------------------------------------- */

/*
 * Opens a file without a name where the file system supports that; else one with a temporary name.
 */
static int open_new(struct snapshot_file *f)
{
	cleanup_free char *dir = strdup(f->path);
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (!dir)
		return -ENOMEM;
	if (slash)
		slash[slash == dir] = '\0';
	f->fd = open(slash ? dir : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (f->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		f->fd = open(f->tmp, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
		f->named = f->fd >= 0;
		if (f->named)
			f->noted = signals_remove(f->tmp);
	}
	return f->fd < 0 ? -errno : 0;
}

static int snapshot_failed(const char *path, int ret, struct err *e)
{
	return err_set(e, -ret, "cannot write the snapshot %s: %s", path, strerror(-ret));
}

int snapshot_file_open(struct snapshot_file *f, const char *path, struct err *e)
{
	/* If path is a link, its target is replaced. */
	struct snapshot_file new = { .fd = -1, .noted = -1, .path = outfile_target(path) };
	int ret = outfile_check(path, OUTFILE_REGULAR, e);

	if (ret) {
		free(new.path);
		return ret;
	}
	if (!new.path || asprintf(&new.tmp, "%s.new.%d", new.path, (int)getpid()) < 0)
		new.tmp = NULL;
	ret = new.tmp ? open_new(&new) : -ENOMEM;
	if (ret) {
		snapshot_file_close(&new);
		return snapshot_failed(path, ret, e);
	}
	*f = new;
	return 0;
}

/*
 * Gives the file its name. A file without a name cannot replace an existing name, so it is linked
 * to a temporary name and then renamed.
 */
int snapshot_file_publish(struct snapshot_file *f, struct err *e)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
	if (!f->named && linkat(AT_FDCWD, self, AT_FDCWD, f->tmp, AT_SYMLINK_FOLLOW) < 0)
		return snapshot_failed(f->path, -errno, e);
	f->named = true;
	if (rename(f->tmp, f->path) < 0)
		return snapshot_failed(f->path, -errno, e);
	f->named = false;
	return 0;
}

void snapshot_file_close(struct snapshot_file *f)
{
	if (f->named)
		unlink(f->tmp);
	signals_keep(f->noted);
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	free(f->tmp);
	*f = (struct snapshot_file)SNAPSHOT_FILE_NONE;
}

int snapshot_write(struct snapshot_writer *w, const struct gmem *mem, const struct snapshot_file *f,
		   struct err *e)
{
	int ret = write_all(w, mem, f->fd);

	/* Without this, a crash of the host could leave an empty file in place of the old one. */
	if (!ret && fsync(f->fd) < 0 &&
	    errno != EINVAL) /* EINVAL: the file system has no fsync(2) */
		ret = -errno;
	return ret ? snapshot_failed(f->path, ret, e) : 0;
}
