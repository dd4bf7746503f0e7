/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/source.h"

#include "base/cleanup.h"
#include "vmm/bootdisk/cmdline.h"
#include "vmm/dev/disk.h"
#include "vmm/dev/disk_unpack.h"
#include "vmm/image/initrd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define INITRD_MAX (1ull << 30)

/* Reads up to n bytes from the start. Returns their number or -errno. */
static ssize_t read_head(int fd, uint8_t *head, size_t n)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = read(fd, head + have, n - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

/*
 * Replaces the head of a compressed disk image by that of the image. A compressed kernel stays as it
 * is: vmm/image unpacks it. Returns the bytes in head.
 */
static size_t unpacked_head(const char *path, int fd, const struct disk_confine *confine,
			    uint8_t *head, size_t n)
{
	const struct disk_compression *how = disk_format_compression(head, n);
	const struct disk_unpack from = { path, fd, how, confine };
	cleanup_free uint8_t *inner = how ? malloc(IMAGE_HEAD) : NULL;
	struct err ignored = { 0 }; /* a file that cannot be unpacked is no disk */
	enum image_kind kind;
	ssize_t got;

	if (!inner)
		return n;
	got = disk_unpack_head(&from, inner, IMAGE_HEAD, &ignored);
	if (got <= 0)
		return n;
	kind = image_kind(inner, (size_t)got).kind;
	if (kind != IMAGE_DISK && kind != IMAGE_FORMAT && kind != IMAGE_ISO)
		return n;
	memcpy(head, inner, (size_t)got);
	return (size_t)got;
}

int run_source_identify(const char *path, const struct disk_confine *confine,
			struct image_what *what, struct err *e)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	cleanup_free uint8_t *head = malloc(IMAGE_HEAD);
	struct stat st;
	ssize_t n;

	if (!head)
		return err_nomem(e);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, errno, "%s: cannot open: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode) && faccessat(fd, "data", F_OK, 0) == 0 &&
	    faccessat(fd, "kvmprof.json", F_OK, 0) == 0)
		return err_set(e, EISDIR,
			       "%s: is a profile, expected a kernel or a disk image; `kvmprof "
			       "report -i %s` shows what is in it",
			       path, path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, EISDIR,
			       "%s: is a directory, expected a kernel or a disk image; a file "
			       "system of a directory goes beside a kernel",
			       path);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return err_set(e, EINVAL, "%s: neither a regular file nor a disk", path);
	n = read_head(fd, head, IMAGE_HEAD);
	if (n < 0)
		return err_set(e, (int)-n, "%s: cannot read: %s", path, strerror((int)-n));
	if (n == 0)
		return err_set(e, EINVAL,
			       "%s: the file is empty; give a vmlinux, bzImage or disk image",
			       path);
	*what = image_kind(head, unpacked_head(path, fd, confine, head, (size_t)n));
	if (what->kind == IMAGE_KERNEL &&
	    S_ISBLK(st.st_mode)) /* an unknown content is still a disk */
		what->kind = IMAGE_DISK;
	return 0;
}

static int source_read_kernel(struct run_source *s, const struct source_request *q, struct err *e)
{
	struct target_image b = { 0 };
	struct buf bytes, map, name;
	int ret;

	buf_init(&bytes);
	buf_init(&map);
	buf_init(&name);
	ret = diskboot_read_kernel(&s->boot, &bytes, e);
	ret = ret ? ret : file_map_copy(&b.file, bytes.data, bytes.len, e);
	buf_deinit(&bytes);
	if (!ret && diskboot_read_map(&s->boot, &map, &name, NULL) == 0 && !map.failed) {
		b.map = map.data;
		b.map_len = map.len;
	}
	buf_printf(&s->kernel_name, "%s:%s", q->image, s->boot.entry.kernel.path);
	buf_u8(&s->kernel_name, 0);
	buf_printf(&s->map_name, "%s:%s", q->image, name.len ? (const char *)name.data : "");
	buf_u8(&s->map_name, 0);
	if (s->kernel_name.failed || s->map_name.failed || name.failed)
		ret = ret ? ret : err_nomem(e);
	if (ret) {
		file_map_close(&b.file);
	} else {
		b.name = (const char *)s->kernel_name.data;
		b.map_name = (const char *)s->map_name.data;
		ret = kernel_open_bytes(&s->image, &s->target, &b, q->symbols, e);
	}
	buf_deinit(&map);
	buf_deinit(&name);
	return ret;
}

/* Reads the other parts of a unified kernel image, whose kernel is s->target. */
static int source_look_into_uki(struct run_source *s, struct err *e)
{
	static const char *const names[] = { "PRETTY_NAME", "NAME", "ID", NULL };
	const uint8_t *file = s->target.file.data;
	const struct uki *u = &s->uki;
	size_t len = s->target.file.len;

	if (!file || uki_parse(&s->uki, s->target.name, file, len, len, e))
		return 0;
	s->is_uki = true;
	uki_text(file + u->at[UKI_CMDLINE].off, (size_t)u->at[UKI_CMDLINE].len, &s->uki_cmdline);
	uki_text(file + u->at[UKI_UNAME].off, (size_t)u->at[UKI_UNAME].len, &s->uki_release);
	osrel_first((const char *)file + u->at[UKI_OSREL].off, (size_t)u->at[UKI_OSREL].len, names,
		    s->uki_os);
	return s->uki_cmdline.failed || s->uki_release.failed ? err_nomem(e) : 0;
}

static int source_add_section(const struct run_source *s, enum uki_section kind, struct buf *out,
			      struct err *e)
{
	/* Consecutive archives begin at multiples of 4. */
	buf_align(out, 4);
	if (s->uki.at[kind].len > INITRD_MAX - out->len)
		return err_set(e, EFBIG, "%s: more than %llu bytes of initrds", s->target.name,
			       INITRD_MAX);
	if (s->uki.at[kind].len)
		buf_add(out, s->target.file.data + s->uki.at[kind].off,
			(size_t)s->uki.at[kind].len);
	return 0;
}

/*
 * Joins the RAM disks as the stub passes them on: microcode, the image's own, then those of the
 * disk's entry if the kernel is the disk's.
 */
static int source_read_initrd(struct run_source *s, bool of_disk, struct err *e)
{
	struct buf bytes;
	int ret = 0;

	buf_init(&bytes);
	if (s->is_uki) {
		ret = source_add_section(s, UKI_UCODE, &bytes, e);
		ret = ret ? ret : source_add_section(s, UKI_INITRD, &bytes, e);
	}
	if (!ret && of_disk)
		ret = diskboot_read_initrd(&s->boot, &bytes, e);
	if (!ret && bytes.failed)
		ret = err_nomem(e);
	if (!ret && bytes.len)
		ret = file_map_copy(&s->initrd, bytes.data, bytes.len, e);
	buf_deinit(&bytes);
	return ret;
}

/* Implements struct disk_reader. */
static int source_read_disk(void *disk, uint64_t off, void *dst, size_t len)
{
	struct iovec iov = { .iov_base = dst, .iov_len = len };

	return disk_readv(disk, off, &iov, 1);
}

static int source_open_disk(struct run_source *s, const struct source_request *q, struct err *e)
{
	struct disk_config dc = {
		.path = q->image,
		.write = q->writable ? DISK_WRITABLE : DISK_OVERLAY,
	};
	struct diskboot_root root = { .layout = &s->boot.layout,
				      .given = q->root,
				      .name = q->disk ? q->disk : "/dev/vda" };
	struct disk_reader reader;
	bool own = q->kernel == NULL; /* the kernel is on the disk */
	const char *options;
	int ret = run_disks_add(&s->disks, &dc, NULL, e);

	s->disk = ret ? NULL : s->disks.at[s->disks.n - 1].disk;
	if (ret)
		return ret;
	reader = (struct disk_reader){ .read = source_read_disk, .disk = s->disk };
	if (strcmp(disk_format(s->disk), "raw") != 0 || disk_compression(s->disk))
		reader.size = disk_size(s->disk);
	ret = diskboot_open(&s->boot, &reader, q->image, e);
	if (ret)
		return ret;
	if (own && s->boot.entry.source == DISKBOOT_NONE)
		return diskboot_explain_none(&s->boot, q->image, e);
	ret = own ? source_read_kernel(s, q, e)
		  : kernel_open(&s->image, &s->target, q->kernel, q->symbols, e);
	if (ret)
		return ret;
	/* The entry's initrd contains the modules of its own kernel only. */
	ret = source_look_into_uki(s, e);
	if (!ret && !q->initrd)
		ret = source_read_initrd(s, own, e);
	if (ret) {
		target_close(&s->target);
		return ret;
	}
	options = s->boot.entry.options;
	if (s->is_uki && (!options || !*options))
		options = (const char *)s->uki_cmdline.data;
	root.initrd = s->initrd.data || q->initrd;
	if (s->boot.root_fs < s->boot.nfs)
		root.found = s->boot.fs[s->boot.root_fs].part;
	diskboot_cmdline(options ? options : "", &root, &s->cmdline, &s->note);
	diskboot_entry_text(&s->boot, &s->why);
	buf_u8(&s->why, 0);
	return s->cmdline.failed || s->note.failed || s->why.failed ? err_nomem(e) : 0;
}

static int source_open_kernel(struct run_source *s, const char *image,
			      const struct source_request *q, struct err *e)
{
	int ret = kernel_open(&s->image, &s->target, image, q->symbols, e);

	if (ret)
		return ret;
	ret = source_look_into_uki(s, e);
	if (!ret && s->is_uki && !q->initrd)
		ret = source_read_initrd(s, false, e);
	if (s->is_uki)
		buf_printf(&s->cmdline, "%s%c", (const char *)s->uki_cmdline.data, 0);
	if (!ret && s->cmdline.failed)
		ret = err_nomem(e);
	if (ret)
		target_close(&s->target);
	return ret;
}

int run_source_of_image(struct run_source *s, const struct source_request *q, struct err *e)
{
	const char *image = q->image ? q->image : q->kernel;
	struct image_what what = { .kind = IMAGE_KERNEL };
	int ret = image ? run_source_identify(image, s->disks.confine, &what, e) : 0;

	if (ret)
		return ret;
	if (what.advice)
		return err_set(e, EINVAL, "%s: this is %s; %s", image, what.name, what.advice);
	if (what.kind == IMAGE_DISK || what.kind == IMAGE_FORMAT) {
		if (!q->image)
			return err_set(
				e, EINVAL,
				"--kernel %s: this is %s; give it as IMAGE, without --kernel",
				image, what.name);
		ret = source_open_disk(s, q, e);
	} else if (q->image && q->kernel) {
		return err_set(e, EINVAL,
			       "%s: --kernel replaces the kernel of a disk, but this is not a "
			       "disk: drop one of the two",
			       image);
	} else if (q->root) {
		return err_set(e, EINVAL,
			       "%s: --root goes with a disk image; for a kernel say --append "
			       "root=%s",
			       image ? image : KERNEL_DEMO_NAME, q->root);
	} else if (q->writable) {
		return err_set(e, EINVAL,
			       "%s: --writable goes with a disk image; for --disk say --disk "
			       "PATH,writable",
			       image ? image : KERNEL_DEMO_NAME);
	} else {
		ret = source_open_kernel(s, image, q, e);
	}
	if (!ret && q->initrd)
		ret = file_map_open(&s->initrd, q->initrd, INITRD_MAX, e);
	return ret;
}

int run_source_of_running(struct run_source *s, const struct source_request *q, const char *name,
			  struct err *e)
{
	if (q->image)
		return kernel_open(&s->image, &s->target, q->image, q->symbols, e);
	target_open_running(&s->target, name);
	return 0;
}

int run_source_choose_protocol(struct run_source *s, enum boot_protocol asked, struct err *e)
{
	const struct boot_image *image = &s->image;
	int ret = protocol_of_image(image, s->target.name, asked, &s->way, e);

	s->moves = image->kind == BOOT_BZIMAGE &&
		   (s->way == BOOT_PROTOCOL_BZIMAGE || s->way == BOOT_PROTOCOL_LINUX32);
	return ret;
}

int run_source_unpack_initrd(struct run_source *s, struct err *e)
{
	struct file_map plain = { 0 };
	struct buf out;
	int ret;

	if (!s->initrd.data)
		return 0;
	buf_init(&out);
	ret = initrd_unpack(s->initrd.data, s->initrd.len, &out);
	if (ret < 0)
		err_set(e, ENOMEM, "out of memory for the initial RAM disk");
	else if (ret)
		ret = file_map_copy(&plain, out.data, out.len, e);
	buf_deinit(&out);
	if (plain.data) {
		file_map_close(&s->initrd);
		s->initrd = plain;
	}
	return ret;
}

int run_source_close(struct run_source *s, struct err *e)
{
	int ret;

	file_map_close(&s->initrd);
	target_close(&s->target);
	diskboot_close(&s->boot);
	buf_deinit(&s->kernel_name);
	buf_deinit(&s->map_name);
	buf_deinit(&s->cmdline);
	buf_deinit(&s->note);
	buf_deinit(&s->why);
	buf_deinit(&s->uki_cmdline);
	buf_deinit(&s->uki_release);
	ret = run_disks_close(&s->disks, e);
	memset(s, 0, sizeof(*s));
	return ret;
}
