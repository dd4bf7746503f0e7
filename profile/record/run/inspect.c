/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/inspect.h"

#include "base/json.h"
#include "profile/record/guest/image_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int inspect_open(struct inspect *in, const char *path, struct err *e)
{
	const struct source_request request = { .image = path };
	int ret;

	memset(in, 0, sizeof(*in));
	in->path = path;
	run_disks_confine(&in->source.disks, NULL);
	ret = run_source_identify(path, in->source.disks.confine, &in->what, e);
	if (ret)
		return ret;
	ret = run_source_of_image(&in->source, &request, e);
	in->have_kernel = !ret;
	return ret;
}

void inspect_close(struct inspect *in)
{
	run_source_close(&in->source, NULL);
	in->have_kernel = false;
}

/* A line whose values come from the file: "name       value". */
__attribute__((format(printf, 3, 4))) static void line(struct buf *out, const char *name,
						       const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (!text) {
		out->failed = true;
		return;
	}
	for (char *s = text; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
	buf_printf(out, "%-12s %s\n", name, text);
	free(text);
}

static void format_size(char *to, size_t cap, uint64_t bytes)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)bytes;
	unsigned int u = 0;

	while (v >= 1024 && u + 1 < sizeof(units) / sizeof(units[0])) {
		v /= 1024;
		u++;
	}
	snprintf(to, cap, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

static void hex_id(const struct kimage *k, char out[2 * KIMAGE_BUILD_ID_MAX + 1])
{
	out[0] = 0;
	for (unsigned int i = 0; i < k->build_id_len; i++)
		snprintf(out + 2 * i, 3, "%02x", k->build_id[i]);
}

static bool has_types(const struct target *t)
{
	return t->linux_facts.have_task;
}

/*
 * Returns the first instruction's address, or 0: the entry of a decompressor is not the kernel's.
 */
static uint64_t entry_of(const struct boot_image *b, enum boot_protocol way)
{
	return way == BOOT_PROTOCOL_MULTIBOOT	 ? b->mb_entry
	       : way == BOOT_PROTOCOL_PVH	 ? b->pvh_entry
	       : way == BOOT_PROTOCOL_MULTIBOOT2 ? b->mb2_entry
						 : b->entry;
}

/*
 * Returns the entry that --boot=auto chooses, or BOOT_PROTOCOL_AUTO with the reason why there is none.
 */
static enum boot_protocol way_of(const struct boot_image *b, const char *name, struct err *why)
{
	enum boot_protocol way = BOOT_PROTOCOL_AUTO;

	protocol_of_image(b, name, BOOT_PROTOCOL_AUTO, &way, why);
	return way;
}

static void print_ways(const struct boot_image *b, const char *name, struct buf *out)
{
	static const char *const how[] = {
		[BOOT_PROTOCOL_VMLINUX] = "directly in 64-bit mode",
		[BOOT_PROTOCOL_BZIMAGE] = "in 64-bit mode, its decompressor first",
		[BOOT_PROTOCOL_LINUX32] = "in 32-bit mode, as boot loaders enter a Linux",
		[BOOT_PROTOCOL_LINUX16] =
			"in real mode, at its setup code, for which there is no BIOS",
		[BOOT_PROTOCOL_MULTIBOOT] = "in 32-bit mode, with multiboot information",
		[BOOT_PROTOCOL_PVH] = "in 32-bit mode, with PVH start information",
		[BOOT_PROTOCOL_MULTIBOOT2] = "in 32-bit mode, with multiboot2 information",
	};
	struct err why = { 0 };
	enum boot_protocol way = way_of(b, name, &why);
	struct buf more;

	if (way == BOOT_PROTOCOL_AUTO) {
		line(out, "boots by", "nothing: %s", why.text);
		return;
	}
	buf_init(&more);
	for (enum boot_protocol i = BOOT_PROTOCOL_VMLINUX; i < BOOT_PROTOCOL_AUTO; i++)
		if (i != way && i != BOOT_PROTOCOL_LINUX16 && protocol_image_has(b, i))
			buf_printf(&more, "%s%s", more.len ? ", " : "", protocol_name(i));
	buf_u8(&more, 0);
	line(out, "boots by", "%s: %s", protocol_name(way), how[way]);
	if (more.len > 1 && !more.failed)
		line(out, "", "(--boot also takes %s)", (const char *)more.data);
	buf_deinit(&more);
	line(out, "entry", "0x%" PRIx64, entry_of(b, way));
}

static void print_check(const struct target *t, struct buf *out)
{
	struct image_check c;

	image_check(t, &c);
	for (unsigned int i = 0; i < c.n; i++)
		line(out, image_check_title((enum image_check_what)i), "%s: %s",
		     image_check_answer_name(c.row[i].answer), c.row[i].text);
}

static void print_kernel(const struct inspect *in, struct buf *out)
{
	const struct target *t = &in->source.target;
	const struct boot_image *b = &in->source.image;
	const struct kimage *k = &t->kernel;
	char id[2 * KIMAGE_BUILD_ID_MAX + 1];

	hex_id(k, id);
	line(out, "kernel", "%s", t->name);
	if (*k->banner || *b->version)
		line(out, "version", "%s", *k->banner ? k->banner : b->version);
	line(out, "compression", "%s", b->compression ? b->compression : "none");
	print_ways(b, t->name, out);
	for (unsigned int i = 0; i < b->nseg; i++)
		line(out, i ? "" : "segments", "0x%09" PRIx64 " to 0x%09" PRIx64, b->seg[i].gpa,
		     b->seg[i].gpa + b->seg[i].mem_len);
	line(out, "build id", "%s", *id ? id : "none");
	print_check(t, out);
}

static uint64_t uki_len(const struct inspect *in, enum uki_section kind)
{
	return in->source.uki.at[kind].len;
}

/* Describes the file that contains the kernel. */
static void print_uki(const struct inspect *in, struct buf *out)
{
	static const struct {
		enum uki_section kind;
		const char *name;
	} parts[] = { { UKI_LINUX, "kernel" },
		      { UKI_INITRD, "initrd" },
		      { UKI_UCODE, "microcode, which goes before the initrd" } };
	const struct run_source *r = &in->source;
	char size[32];

	line(out, "unified", "%s%s%s",
	     *r->uki_os ? r->uki_os : "an operating system without a name",
	     r->uki_release.len > 1 ? ", Linux " : "", (const char *)r->uki_release.data);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		format_size(size, sizeof(size), uki_len(in, parts[i].kind));
		if (uki_len(in, parts[i].kind))
			line(out, "", "%s: %s", parts[i].name, size);
	}
	if (r->uki.profiles)
		line(out, "", "%u profiles, of which the first is taken", r->uki.profiles);
	if (r->disk)
		return;
	if (!in->source.initrd.len)
		line(out, "initrd", "none");
	line(out, "command line", "%s",
	     r->cmdline.len > 1 ? (const char *)r->cmdline.data : "none");
}

static void part_name(const struct disk_part *p, char *to, size_t cap)
{
	if (p->number)
		snprintf(to, cap, "/dev/vda%u", p->number);
	else
		snprintf(to, cap, "/dev/vda");
}

static const struct diskboot_fs *fs_of(const struct diskboot *b, const struct disk_part *p)
{
	for (unsigned int i = 0; i < b->nfs; i++)
		if (b->fs[i].part == p)
			return &b->fs[i];
	return NULL;
}

static void print_part(const struct diskboot *b, const struct disk_part *p, struct buf *out)
{
	const struct diskboot_fs *f = fs_of(b, p);
	char name[32], size[32];

	part_name(p, name, sizeof(name));
	format_size(size, sizeof(size), p->len);
	line(out, name, "%s, %s%s%s%s%s%s%s", size, *p->fs ? p->fs : "nothing that is known",
	     *p->label ? ", label " : "", p->label, *p->uuid ? ", UUID " : "", p->uuid,
	     *p->name ? ", name " : "", p->name);
	if (*p->partuuid)
		line(out, "", "partition UUID %s, type %s", p->partuuid, p->type);
	if (f && f->why.code)
		line(out, "", "not examined: %s", f->why.text);
	if (f && *f->os)
		line(out, "", "%s%s", f->os, f->init ? ", with an init" : ", without an init");
	else if (f && f->init)
		line(out, "", "with an init");
}

/* Prints the entry that GRUB would boot, and why kvmprof boots another one. */
static void print_grub(const struct inspect *in, struct buf *out)
{
	const struct diskboot *b = &in->source.boot;
	struct buf says;

	buf_init(&says);
	diskboot_grub_text(b, &says);
	buf_u8(&says, 0);
	if (says.len > 1 && !says.failed) {
		line(out, "GRUB", "would boot %s", (const char *)says.data);
		if (b->grub.other.code)
			line(out, "", "(%s: %s)",
			     in->have_kernel ? "kvmprof boots another" : "kvmprof does not",
			     b->grub.other.text);
	}
	buf_deinit(&says);
}

static void print_disk(const struct inspect *in, struct buf *out)
{
	const struct diskboot *b = &in->source.boot;
	char size[32], name[32];

	format_size(size, sizeof(size), disk_size(in->source.disk));
	line(out, "disk", "%s, %s", size,
	     *b->layout.table ? b->layout.table : "no partition table");
	if (strcmp(disk_format(in->source.disk), "raw") || disk_compression(in->source.disk))
		line(out, "format", "%s%s%s", disk_format(in->source.disk),
		     disk_compression(in->source.disk) ? ", compressed with " : "",
		     disk_compression(in->source.disk) ? disk_compression(in->source.disk) : "");
	if (b->layout.left_out)
		line(out, "", "%u partitions more, outside of the image", b->layout.left_out);
	for (unsigned int i = 0; i < b->layout.n; i++)
		print_part(b, &b->layout.part[i], out);
	for (unsigned int i = 0; i < b->nkernels; i++) {
		part_name(b->fs[b->kernel[i].fs].part, name, sizeof(name));
		line(out, i ? "" : "kernels", "%s on %s", b->kernel[i].path, name);
	}
	for (unsigned int i = 0; i < b->nnotes; i++)
		line(out, "note", "%s", b->note[i].text);
	print_grub(in, out);
}

static void print_entry(const struct inspect *in, struct buf *out)
{
	const struct run_source *r = &in->source;
	const struct diskboot_entry *t = &r->boot.entry;
	char name[32];

	buf_printf(out, "\nwould boot\n");
	line(out, "because of", "%s", (const char *)r->why.data);
	if (t->title)
		line(out, "title", "%s", t->title);
	for (unsigned int i = 0; i < t->ninitrd; i++) {
		part_name(r->boot.fs[t->initrd[i].fs].part, name, sizeof(name));
		line(out, i ? "" : "initrd", "%s on %s", t->initrd[i].path, name);
	}
	if (!t->ninitrd)
		line(out, "initrd", in->source.initrd.len ? "in the unified kernel image" : "none");
	line(out, "command line", "%s", (const char *)r->cmdline.data);
	if (r->note.len > 1)
		line(out, "", "(%s)", (const char *)r->note.data);
	if (r->boot.root_fs < r->boot.nfs) {
		part_name(r->boot.fs[r->boot.root_fs].part, name, sizeof(name));
		line(out, "root", "%s", name);
	}
}

void inspect_text(const struct inspect *in, struct buf *out)
{
	if (!in->what.name || in->what.advice)
		return;
	/* For an unknown file the message says all there is. */
	if (!in->source.disk && !in->have_kernel)
		return;
	line(out, "image", "%s: %s", in->path, in->what.name);
	if (in->source.disk && in->source.boot.layout.n)
		print_disk(in, out);
	if (!in->have_kernel)
		return;
	if (in->source.disk)
		print_entry(in, out);
	if (in->source.is_uki)
		print_uki(in, out);
	print_kernel(in, out);
}

static void json_kernel(const struct inspect *in, struct json_writer *w)
{
	static const char *const by[] = {
		[UNWIND_INNERMOST] = "innermost frame",
		[UNWIND_SEARCH] = "search",
		[UNWIND_FRAME_POINTERS] = "frame pointers",
		[UNWIND_ORC] = "orc",
	};
	const struct target *t = &in->source.target;
	const struct boot_image *b = &in->source.image;
	struct err why = { 0 };
	enum boot_protocol way = way_of(b, t->name, &why);
	char id[2 * KIMAGE_BUILD_ID_MAX + 1];
	struct image_check check;

	image_check(t, &check);
	hex_id(&t->kernel, id);
	json_object_begin(w, "kernel");
	json_put(w, "name", t->name, "banner", t->kernel.banner, "release",
		 *t->osrelease ? t->osrelease : NULL, "compression",
		 b->compression ? b->compression : "none", "linux", b->is_linux, "boot",
		 way == BOOT_PROTOCOL_AUTO ? NULL : protocol_name(way), "no_boot_because",
		 why.code ? why.text : NULL);
	json_array_begin(w, "boot_ways");
	for (enum boot_protocol i = BOOT_PROTOCOL_VMLINUX; i < BOOT_PROTOCOL_AUTO; i++)
		if (i != BOOT_PROTOCOL_LINUX16 && protocol_image_has(b, i))
			json_str(w, NULL, protocol_name(i));
	json_array_end(w);
	json_hex(w, "entry", entry_of(b, way));
	json_array_begin(w, "segments");
	for (unsigned int i = 0; i < b->nseg; i++)
		json_put_object(w, NULL, "start", json_address(b->seg[i].gpa), "end",
				json_address(b->seg[i].gpa + b->seg[i].mem_len));
	json_array_end(w);
	json_put(w, "build_id", *id ? id : NULL, "names", t->symbols ? symtab_count(t->symbols) : 0,
		 "names_from", t->symbol_source, "unwinding", by[check.way], "no_orc_because",
		 t->orc_note.code ? t->orc_note.text : NULL, "orc", json_of_bool(t->orc != NULL),
		 "frame_pointers", json_of_bool(t->frame_pointers), "types",
		 json_of_bool(has_types(t)));
	image_check_json(w, "check", &check);
	json_object_end(w);
}

static void json_uki(const struct inspect *in, struct json_writer *w)
{
	const struct run_source *r = &in->source;

	json_put_object(w, "uki", "os", *r->uki_os ? r->uki_os : NULL, "release",
			r->uki_release.len > 1 ? (const char *)r->uki_release.data : NULL,
			"cmdline",
			r->uki_cmdline.len > 1 ? (const char *)r->uki_cmdline.data : NULL,
			"kernel_bytes", uki_len(in, UKI_LINUX), "initrd_bytes",
			uki_len(in, UKI_INITRD), "microcode_bytes", uki_len(in, UKI_UCODE),
			"profiles", r->uki.profiles);
}

static void json_part(const struct diskboot *b, const struct disk_part *p, struct json_writer *w)
{
	const struct diskboot_fs *f = fs_of(b, p);

	json_put_object(w, NULL, "number", p->number, "offset", p->off, "bytes", p->len,
			"file_system", *p->fs ? p->fs : NULL, "label", p->label, "uuid", p->uuid,
			"name", p->name, "partition_uuid", p->partuuid, "type", p->type, "os",
			f && *f->os ? f->os : NULL, "init", json_of_bool(f && f->init));
}

static void json_file(const struct diskboot *b, const char *key, const struct diskboot_file *f,
		      struct json_writer *w)
{
	json_put_object(w, key, "partition", b->fs[f->fs].part->number, "path", f->path);
}

static void json_boots(const struct inspect *in, struct json_writer *w)
{
	static const char *const sources[] = { NULL, "bls", "uki", "grub", "link", "newest" };
	const struct diskboot *b = &in->source.boot;
	const struct diskboot_entry *t = &b->entry;

	json_object_begin(w, "boots");
	json_put(w, "source", sources[t->source], "because", (const char *)in->source.why.data,
		 "from", t->from, "title", t->title);
	json_file(b, "kernel", &t->kernel, w);
	json_array_begin(w, "initrd");
	for (unsigned int i = 0; i < t->ninitrd; i++)
		json_file(b, NULL, &t->initrd[i], w);
	json_array_end(w);
	json_put(w, "cmdline", (const char *)in->source.cmdline.data, "cmdline_note",
		 in->source.note.len > 1 ? (const char *)in->source.note.data : NULL);
	json_object_end(w);
}

static void json_disk(const struct inspect *in, struct json_writer *w)
{
	const struct diskboot *b = &in->source.boot;

	json_object_begin(w, "disk");
	json_put(w, "bytes", disk_size(in->source.disk), "format", disk_format(in->source.disk),
		 "compression", disk_compression(in->source.disk), "table",
		 *b->layout.table ? b->layout.table : NULL);
	json_array_begin(w, "partitions");
	for (unsigned int i = 0; i < b->layout.n; i++)
		json_part(b, &b->layout.part[i], w);
	json_array_end(w);
	json_array_begin(w, "kernels");
	for (unsigned int i = 0; i < b->nkernels; i++)
		json_file(b, NULL, &b->kernel[i], w);
	json_array_end(w);
	json_array_begin(w, "notes");
	for (unsigned int i = 0; i < b->nnotes; i++)
		json_str(w, NULL, b->note[i].text);
	json_array_end(w);
	if (in->have_kernel)
		json_boots(in, w);
	else
		json_str(w, "boots", NULL);
	if (b->grub.from)
		json_put_object(w, "grub", "from", b->grub.from, "entry", b->grub.index, "title",
				b->grub.title, "chosen_by", b->grub.by, "chosen", b->grub.name,
				"booted", json_of_bool(b->grub.taken), "not_booted_because",
				b->grub.other.code ? b->grub.other.text : NULL);
	else
		json_str(w, "grub", NULL);
	json_object_end(w);
}

void inspect_json(const struct inspect *in, const struct err *why, struct buf *out)
{
	static const char *const kinds[] = { NULL, "kernel", "disk", "format", "iso", "initrd" };
	struct json_writer w;

	json_begin(&w, out);
	json_object_begin(&w, NULL);
	json_put(&w, "image", in->path, "kind", kinds[in->what.kind], "what", in->what.name,
		 "error", why ? why->text : NULL);
	if (in->source.disk && in->source.boot.layout.n)
		json_disk(in, &w);
	else
		json_str(&w, "disk", NULL);
	if (in->have_kernel && in->source.is_uki)
		json_uki(in, &w);
	else
		json_str(&w, "uki", NULL);
	if (in->have_kernel)
		json_kernel(in, &w);
	else
		json_str(&w, "kernel", NULL);
	json_object_end(&w);
	buf_printf(out, "\n");
}
