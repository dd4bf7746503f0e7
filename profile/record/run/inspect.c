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
	ret = source_look(path, &in->what, e);
	ret = ret ? ret : source_of_image(&in->source, &request, e);
	in->have_kernel = !ret;
	return ret;
}

void inspect_close(struct inspect *in)
{
	source_close(&in->source, NULL);
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

/* Where the first instruction is; the decompressors' entries are theirs and not told. */
static uint64_t entry_of(const struct boot_image *b, enum boot_way way)
{
	return way == BOOT_WAY_MULTIBOOT ? b->mb_entry
	       : way == BOOT_WAY_PVH	 ? b->pvh_entry
					 : b->entry;
}

/* The way that --boot=auto takes. */
static enum boot_way way_of(const struct target *t)
{
	enum boot_way way = BOOT_WAY_VMLINUX;

	boot_image_way(&t->image, t->name, BOOT_WAY_AUTO, &way, NULL);
	return way;
}

static void print_ways(const struct target *t, struct buf *out)
{
	static const char *const how[] = {
		[BOOT_WAY_VMLINUX] = "directly in 64-bit mode",
		[BOOT_WAY_BZIMAGE] = "in 64-bit mode, its decompressor first",
		[BOOT_WAY_LINUX32] = "in 32-bit mode, as boot loaders enter a Linux",
		[BOOT_WAY_LINUX16] = "in real mode, at its setup code, for which there is no BIOS",
		[BOOT_WAY_MULTIBOOT] = "in 32-bit mode, with multiboot information",
		[BOOT_WAY_PVH] = "in 32-bit mode, with PVH start information",
	};
	enum boot_way way = way_of(t);
	struct buf more;

	buf_init(&more);
	for (enum boot_way i = BOOT_WAY_VMLINUX; i < BOOT_WAY_AUTO; i++)
		if (i != way && i != BOOT_WAY_LINUX16 && boot_image_has_way(&t->image, i))
			buf_printf(&more, "%s%s", more.len ? ", " : "", boot_way_name(i));
	buf_u8(&more, 0);
	line(out, "boots by", "%s: %s", boot_way_name(way), how[way]);
	if (more.len > 1 && !more.failed)
		line(out, "", "(--boot also takes %s)", (const char *)more.data);
	buf_deinit(&more);
	line(out, "entry", "0x%" PRIx64, entry_of(&t->image, way));
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
	const struct boot_image *b = &t->image;
	const struct kimage *k = &t->kernel;
	char id[2 * KIMAGE_BUILD_ID_MAX + 1];

	hex_id(k, id);
	line(out, "kernel", "%s", t->name);
	if (*k->banner || *b->version)
		line(out, "version", "%s", *k->banner ? k->banner : b->version);
	line(out, "compression", "%s", b->compression ? b->compression : "none");
	print_ways(t, out);
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

/* Of the file that the kernel is in. */
static void print_uki(const struct inspect *in, struct buf *out)
{
	static const struct {
		enum uki_section kind;
		const char *name;
	} parts[] = { { UKI_LINUX, "kernel" },
		      { UKI_INITRD, "initrd" },
		      { UKI_UCODE, "microcode, which goes before the initrd" } };
	const struct source *r = &in->source;
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
		line(out, "", "not looked into: %s", f->why.text);
	if (f && *f->os)
		line(out, "", "%s%s", f->os, f->init ? ", with an init" : ", without an init");
	else if (f && f->init)
		line(out, "", "with an init");
}

static void print_disk(const struct inspect *in, struct buf *out)
{
	const struct diskboot *b = &in->source.boot;
	char size[32], name[32];

	format_size(size, sizeof(size), disk_size(in->source.disk));
	line(out, "disk", "%s, %s", size,
	     *b->layout.table ? b->layout.table : "no partition table");
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
}

static void print_entry(const struct inspect *in, struct buf *out)
{
	const struct source *r = &in->source;
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
	if (!in->what.name || in->what.kind == IMAGE_FORMAT || in->what.advice)
		return;
	/* Of a foreign file the message says all there is. */
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

static void json_text(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "\"%s\":", name);
	if (value)
		json_quote(out, value);
	else
		buf_printf(out, "null");
}

static void json_kernel(const struct inspect *in, struct buf *out)
{
	const struct target *t = &in->source.target;
	const struct boot_image *b = &t->image;
	enum boot_way way = way_of(t);
	char id[2 * KIMAGE_BUILD_ID_MAX + 1];
	static const char *const by[] = {
		[UNWIND_INNERMOST] = "innermost frame",
		[UNWIND_SEARCH] = "search",
		[UNWIND_FRAME_POINTERS] = "frame pointers",
		[UNWIND_ORC] = "orc",
	};
	struct image_check check;
	unsigned int comma = 0;

	image_check(t, &check);
	hex_id(&t->kernel, id);
	buf_printf(out, "{");
	json_text(out, "name", t->name);
	buf_printf(out, ",");
	json_text(out, "banner", t->kernel.banner);
	buf_printf(out, ",");
	json_text(out, "release", *t->osrelease ? t->osrelease : NULL);
	buf_printf(out, ",");
	json_text(out, "compression", b->compression ? b->compression : "none");
	buf_printf(out, ",\"linux\":%s,\"boot\":\"%s\",\"boot_ways\":[",
		   b->is_linux ? "true" : "false", boot_way_name(way));
	for (enum boot_way i = BOOT_WAY_VMLINUX; i < BOOT_WAY_AUTO; i++)
		if (i != BOOT_WAY_LINUX16 && boot_image_has_way(b, i))
			buf_printf(out, "%s\"%s\"", comma++ ? "," : "", boot_way_name(i));
	buf_printf(out, "],\"entry\":\"0x%" PRIx64 "\",\"segments\":[", entry_of(b, way));
	for (unsigned int i = 0; i < b->nseg; i++)
		buf_printf(out, "%s{\"start\":\"0x%" PRIx64 "\",\"end\":\"0x%" PRIx64 "\"}",
			   i ? "," : "", b->seg[i].gpa, b->seg[i].gpa + b->seg[i].mem_len);
	buf_printf(out, "],");
	json_text(out, "build_id", *id ? id : NULL);
	buf_printf(out, ",\"names\":%zu,", t->symbols ? symtab_count(t->symbols) : 0);
	json_text(out, "names_from", t->symbol_source);
	buf_printf(out, ",\"unwinding\":\"%s\",", by[check.way]);
	json_text(out, "no_orc_because", t->orc_note.code ? t->orc_note.text : NULL);
	buf_printf(out, ",\"orc\":%s,\"frame_pointers\":%s,\"types\":%s,\"check\":",
		   t->orc ? "true" : "false", t->frame_pointers ? "true" : "false",
		   has_types(t) ? "true" : "false");
	image_check_json(&check, out);
	buf_printf(out, "}");
}

static void json_uki(const struct inspect *in, struct buf *out)
{
	const struct source *r = &in->source;

	buf_printf(out, "{");
	json_text(out, "os", *r->uki_os ? r->uki_os : NULL);
	buf_printf(out, ",");
	json_text(out, "release",
		  r->uki_release.len > 1 ? (const char *)r->uki_release.data : NULL);
	buf_printf(out, ",");
	json_text(out, "cmdline",
		  r->uki_cmdline.len > 1 ? (const char *)r->uki_cmdline.data : NULL);
	buf_printf(out,
		   ",\"kernel_bytes\":%" PRIu64 ",\"initrd_bytes\":%" PRIu64
		   ",\"microcode_bytes\":%" PRIu64 ",\"profiles\":%u}",
		   uki_len(in, UKI_LINUX), uki_len(in, UKI_INITRD), uki_len(in, UKI_UCODE),
		   r->uki.profiles);
}

static void json_part(const struct diskboot *b, const struct disk_part *p, struct buf *out)
{
	const struct diskboot_fs *f = fs_of(b, p);

	buf_printf(out, "{\"number\":%u,\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 ",", p->number,
		   p->off, p->len);
	json_text(out, "file_system", *p->fs ? p->fs : NULL);
	buf_printf(out, ",");
	json_text(out, "label", p->label);
	buf_printf(out, ",");
	json_text(out, "uuid", p->uuid);
	buf_printf(out, ",");
	json_text(out, "name", p->name);
	buf_printf(out, ",");
	json_text(out, "partition_uuid", p->partuuid);
	buf_printf(out, ",");
	json_text(out, "type", p->type);
	buf_printf(out, ",");
	json_text(out, "os", f && *f->os ? f->os : NULL);
	buf_printf(out, ",\"init\":%s}", f && f->init ? "true" : "false");
}

static void json_file(const struct diskboot *b, const struct diskboot_file *f, struct buf *out)
{
	buf_printf(out, "{\"partition\":%u,", b->fs[f->fs].part->number);
	json_text(out, "path", f->path);
	buf_printf(out, "}");
}

static void json_disk(const struct inspect *in, struct buf *out)
{
	static const char *const sources[] = { NULL, "bls", "uki", "grub", "link", "newest" };
	const struct diskboot *b = &in->source.boot;
	const struct diskboot_entry *t = &b->entry;

	buf_printf(out, "{\"bytes\":%" PRIu64 ",", disk_size(in->source.disk));
	json_text(out, "table", *b->layout.table ? b->layout.table : NULL);
	buf_printf(out, ",\"partitions\":[");
	for (unsigned int i = 0; i < b->layout.n; i++) {
		buf_printf(out, "%s", i ? "," : "");
		json_part(b, &b->layout.part[i], out);
	}
	buf_printf(out, "],\"kernels\":[");
	for (unsigned int i = 0; i < b->nkernels; i++) {
		buf_printf(out, "%s", i ? "," : "");
		json_file(b, &b->kernel[i], out);
	}
	buf_printf(out, "],\"notes\":[");
	for (unsigned int i = 0; i < b->nnotes; i++) {
		buf_printf(out, "%s", i ? "," : "");
		json_quote(out, b->note[i].text);
	}
	buf_printf(out, "],\"boots\":");
	if (!in->have_kernel) {
		buf_printf(out, "null}");
		return;
	}
	buf_printf(out, "{");
	json_text(out, "source", sources[t->source]);
	buf_printf(out, ",");
	json_text(out, "because", (const char *)in->source.why.data);
	buf_printf(out, ",");
	json_text(out, "from", t->from);
	buf_printf(out, ",");
	json_text(out, "title", t->title);
	buf_printf(out, ",\"kernel\":");
	json_file(b, &t->kernel, out);
	buf_printf(out, ",\"initrd\":[");
	for (unsigned int i = 0; i < t->ninitrd; i++) {
		buf_printf(out, "%s", i ? "," : "");
		json_file(b, &t->initrd[i], out);
	}
	buf_printf(out, "],");
	json_text(out, "cmdline", (const char *)in->source.cmdline.data);
	buf_printf(out, ",");
	json_text(out, "cmdline_note",
		  in->source.note.len > 1 ? (const char *)in->source.note.data : NULL);
	buf_printf(out, "}}");
}

void inspect_json(const struct inspect *in, const struct err *why, struct buf *out)
{
	static const char *const kinds[] = { NULL, "kernel", "disk", "format", "iso", "initrd" };

	buf_printf(out, "{");
	json_text(out, "image", in->path);
	buf_printf(out, ",");
	json_text(out, "kind", kinds[in->what.kind]);
	buf_printf(out, ",");
	json_text(out, "what", in->what.name);
	buf_printf(out, ",");
	json_text(out, "error", why ? why->text : NULL);
	buf_printf(out, ",\"disk\":");
	if (in->source.disk && in->source.boot.layout.n)
		json_disk(in, out);
	else
		buf_printf(out, "null");
	buf_printf(out, ",\"uki\":");
	if (in->have_kernel && in->source.is_uki)
		json_uki(in, out);
	else
		buf_printf(out, "null");
	buf_printf(out, ",\"kernel\":");
	if (in->have_kernel)
		json_kernel(in, out);
	else
		buf_printf(out, "null");
	buf_printf(out, "}\n");
}
