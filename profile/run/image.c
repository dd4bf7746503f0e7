/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/run/image.h"

#include "base/cleanup.h"
#include "vmm/bootdisk/cmdline.h"
#include "vmm/boot/initrd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define INITRD_MAX (1ull << 30)

/* Up to n bytes from the beginning, or -errno. */
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

int run_image_look(const char *path, struct image_what *what, struct err *e)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	cleanup_free uint8_t *head = malloc(IMAGE_HEAD);
	struct stat st;
	ssize_t n;

	if (!head)
		return err_set(e, ENOMEM, "out of memory");
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, errno, "%s: cannot open: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(e, EISDIR,
			       "%s: is a directory, expected a kernel or a disk image; a file "
			       "system of a directory goes beside a kernel",
			       path);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return err_set(e, EINVAL, "%s: not a regular file, and no disk", path);
	n = read_head(fd, head, IMAGE_HEAD);
	if (n < 0)
		return err_set(e, (int)-n, "%s: cannot read: %s", path, strerror((int)-n));
	if (n == 0)
		return err_set(e, EINVAL,
			       "%s: the file is empty; give a vmlinux, bzImage or disk image",
			       path);
	*what = image_kind(head, (size_t)n);
	if (what->kind == IMAGE_KERNEL &&
	    S_ISBLK(st.st_mode)) /* with something on it that we don't know */
		what->kind = IMAGE_DISK;
	return 0;
}

static int read_kernel(struct run_image *r, const struct run_options *o, struct target *t,
		       struct err *e)
{
	struct target_bytes b = { 0 };
	struct buf bytes, map, name;
	int ret;

	buf_init(&bytes);
	buf_init(&map);
	buf_init(&name);
	ret = diskboot_read_kernel(&r->boot, &bytes, e);
	ret = ret ? ret : file_map_copy(&b.file, bytes.data, bytes.len, e);
	buf_deinit(&bytes);
	if (!ret && diskboot_read_map(&r->boot, &map, &name, NULL) == 0 && !map.failed) {
		b.map = map.data;
		b.map_len = map.len;
	}
	buf_printf(&r->kernel_name, "%s:%s", o->image, r->boot.entry.kernel.path);
	buf_u8(&r->kernel_name, 0);
	buf_printf(&r->map_name, "%s:%s", o->image, name.len ? (const char *)name.data : "");
	buf_u8(&r->map_name, 0);
	if (r->kernel_name.failed || r->map_name.failed || name.failed)
		ret = ret ? ret : err_set(e, ENOMEM, "out of memory");
	if (ret) {
		file_map_close(&b.file);
	} else {
		b.name = (const char *)r->kernel_name.data;
		b.map_name = (const char *)r->map_name.data;
		ret = target_open_bytes(t, &b, o->symbols, e);
	}
	buf_deinit(&map);
	buf_deinit(&name);
	return ret;
}

/* What a unified kernel image has besides the kernel; t: what was made of it. */
static int look_into_uki(struct run_image *r, const struct target *t, struct err *e)
{
	static const char *const names[] = { "PRETTY_NAME", "NAME", "ID", NULL };
	const uint8_t *file = t->file.data;
	const struct uki *u = &r->uki;
	size_t len = t->file.len;

	if (!file || uki_parse(&r->uki, t->name, file, len, len, e))
		return 0;
	r->is_uki = true;
	uki_text(file + u->at[UKI_CMDLINE].off, (size_t)u->at[UKI_CMDLINE].len, &r->uki_cmdline);
	uki_text(file + u->at[UKI_UNAME].off, (size_t)u->at[UKI_UNAME].len, &r->uki_release);
	osrel_first((const char *)file + u->at[UKI_OSREL].off, (size_t)u->at[UKI_OSREL].len, names,
		    r->uki_os);
	return r->uki_cmdline.failed || r->uki_release.failed ? err_set(e, ENOMEM, "out of memory")
							      : 0;
}

static int add_section(const struct run_image *r, const struct target *t, enum uki_section kind,
		       struct buf *out, struct err *e)
{
	/* Archives in a row begin at multiples of 4. */
	buf_align(out, 4);
	if (r->uki.at[kind].len > INITRD_MAX - out->len)
		return err_set(e, EFBIG, "%s: more than %llu bytes of initrds", t->name,
			       INITRD_MAX);
	if (r->uki.at[kind].len)
		buf_add(out, t->file.data + r->uki.at[kind].off, (size_t)r->uki.at[kind].len);
	return 0;
}

/*
 * As the stub hands them on: microcode, the image's own, then those of the disk's entry; where
 * the kernel is the disk's.
 */
static int read_initrd(const struct run_image *r, const struct target *t, bool of_disk,
		       struct file_map *initrd, struct err *e)
{
	struct buf bytes;
	int ret = 0;

	buf_init(&bytes);
	if (r->is_uki) {
		ret = add_section(r, t, UKI_UCODE, &bytes, e);
		ret = ret ? ret : add_section(r, t, UKI_INITRD, &bytes, e);
	}
	if (!ret && of_disk)
		ret = diskboot_read_initrd(&r->boot, &bytes, e);
	if (!ret && bytes.failed)
		ret = err_set(e, ENOMEM, "out of memory");
	if (!ret && bytes.len)
		ret = file_map_copy(initrd, bytes.data, bytes.len, e);
	buf_deinit(&bytes);
	return ret;
}

static int open_disk(struct run_image *r, const struct run_options *o, struct run_disks *disks,
		     struct target *t, struct file_map *initrd, struct err *e)
{
	struct disk_config dc = {
		.path = o->image,
		.write = o->disk.writable ? DISK_WRITABLE : DISK_OVERLAY,
	};
	struct diskboot_root root = { .layout = &r->boot.layout, .given = o->root };
	bool own = o->kernel == NULL; /* the kernel is the disk's */
	const char *options;
	int ret = run_disks_add(disks, &dc, NULL, e);

	r->disk = ret ? NULL : disks->at[disks->n - 1].disk;
	ret = ret ? ret : diskboot_open(&r->boot, r->disk, o->image, e);
	if (ret)
		return ret;
	if (own && r->boot.entry.source == DISKBOOT_NONE)
		return diskboot_none(&r->boot, o->image, e);
	ret = own ? read_kernel(r, o, t, e) : target_open(t, o->kernel, o->symbols, e);
	if (ret)
		return ret;
	/* The entry's initrd has the modules of its own kernel, not of another. */
	ret = look_into_uki(r, t, e);
	if (!ret && !o->initrd)
		ret = read_initrd(r, t, own, initrd, e);
	if (ret) {
		target_close(t);
		return ret;
	}
	options = r->boot.entry.options;
	if (r->is_uki && (!options || !*options))
		options = (const char *)r->uki_cmdline.data;
	root.initrd = initrd->data || o->initrd;
	if (r->boot.root_fs < r->boot.nfs)
		root.found = r->boot.fs[r->boot.root_fs].part;
	diskboot_cmdline(options ? options : "", &root, &r->cmdline, &r->note);
	diskboot_why(&r->boot, &r->why);
	buf_u8(&r->why, 0);
	return r->cmdline.failed || r->note.failed || r->why.failed
		       ? err_set(e, ENOMEM, "out of memory")
		       : 0;
}

static int open_kernel(struct run_image *r, const char *image, const struct run_options *o,
		       struct target *t, struct file_map *initrd, struct err *e)
{
	int ret = target_open(t, image, o->symbols, e);

	if (ret)
		return ret;
	ret = look_into_uki(r, t, e);
	if (!ret && r->is_uki && !o->initrd)
		ret = read_initrd(r, t, false, initrd, e);
	if (r->is_uki)
		buf_printf(&r->cmdline, "%s%c", (const char *)r->uki_cmdline.data, 0);
	if (!ret && r->cmdline.failed)
		ret = err_set(e, ENOMEM, "out of memory");
	if (ret)
		target_close(t);
	return ret;
}

int run_image_open(struct run_image *r, const struct run_options *o, struct run_disks *disks,
		   struct target *t, struct file_map *initrd, struct err *e)
{
	const char *image = o->image ? o->image : o->kernel;
	struct image_what what = { .kind = IMAGE_KERNEL };
	int ret = image ? run_image_look(image, &what, e) : 0;

	if (ret)
		return ret;
	if (what.advice)
		return err_set(e, EINVAL, "%s: this is %s; %s", image, what.name, what.advice);
	if (what.kind == IMAGE_DISK || what.kind == IMAGE_FORMAT) {
		if (!o->image)
			return err_set(
				e, EINVAL,
				"--kernel %s: this is %s; give it as IMAGE, without --kernel",
				image, what.name);
		ret = open_disk(r, o, disks, t, initrd, e);
	} else if (o->image && o->kernel) {
		return err_set(e, EINVAL,
			       "%s: --kernel takes the place of a disk's kernel, and this is no "
			       "disk: leave one of the two out",
			       image);
	} else if (o->root) {
		return err_set(e, EINVAL,
			       "%s: --root goes with a disk image; for a kernel say --append "
			       "root=%s",
			       image ? image : TARGET_DEMO_NAME, o->root);
	} else if (o->disk.writable) {
		return err_set(e, EINVAL,
			       "%s: --writable goes with a disk image; for --disk say --disk "
			       "PATH,writable",
			       image ? image : TARGET_DEMO_NAME);
	} else {
		ret = open_kernel(r, image, o, t, initrd, e);
	}
	if (!ret && o->initrd)
		ret = file_map_open(initrd, o->initrd, INITRD_MAX, e);
	return ret;
}

void run_image_close(struct run_image *r)
{
	diskboot_close(&r->boot);
	buf_deinit(&r->kernel_name);
	buf_deinit(&r->map_name);
	buf_deinit(&r->cmdline);
	buf_deinit(&r->note);
	buf_deinit(&r->why);
	buf_deinit(&r->uki_cmdline);
	buf_deinit(&r->uki_release);
	memset(r, 0, sizeof(*r));
}

int run_image_unpack(struct file_map *initrd, struct err *e)
{
	struct file_map plain = { 0 };
	struct buf out;
	int ret;

	if (!initrd->data)
		return 0;
	buf_init(&out);
	ret = initrd_unpack(initrd->data, initrd->len, &out);
	if (ret < 0)
		err_set(e, ENOMEM, "out of memory for the initial RAM disk");
	else if (ret)
		ret = file_map_copy(&plain, out.data, out.len, e);
	buf_deinit(&out);
	if (plain.data) {
		file_map_close(initrd);
		*initrd = plain;
	}
	return ret;
}
