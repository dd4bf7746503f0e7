/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/boot_fixture.h"

#include "base/cleanup.h"
#include "vmm/image/protocol.h"
#include "vmm/image/widen.h"

#include <bzlib.h>
#include <errno.h>
#include <lz4.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#define MIB (1u << 20)

/* The parser gets an exact heap copy, so that sanitizers see reads past the end. */
static int parse(struct boot_image *img, const void *data, size_t len, size_t max, struct err *e,
		 uint8_t **copy)
{
	*copy = malloc(len ? len : 1);
	memcpy(*copy, data, len);
	memset(e, 0, sizeof(*e));
	return parse_image_max(img, "FILE", *copy, len, max, e);
}

static void refused(const void *data, size_t len, int code, const char *text)
{
	struct boot_image img = { .nseg = 99 };
	cleanup_free uint8_t *copy = NULL;
	struct err e;
	enum boot_protocol way;
	int r = parse(&img, data, len, BOOT_MAX_KERNEL, &e, &copy);

	/* The choice of a way refuses an image that can be parsed, but not loaded or entered. */
	if (!r) {
		r = protocol_of_image(&img, "FILE", BOOT_PROTOCOL_AUTO, &way, &e);
		image_deinit(&img);
		img.nseg = 99;
	}
	if (r != -code || !strstr(e.text, text))
		fail_msg("returned %d \"%s\", expected %d with \"%s\"", r, e.text, -code, text);
	assert_int_equal(img.nseg, 99);
	assert_int_equal(strncmp(e.text, "FILE: ", 6), 0);
	assert_null(strchr(e.text, '\n'));
	assert_true(strlen(e.text) < sizeof(e.text) - 1);
}

static void check_segments(const struct boot_image *img)
{
	assert_int_equal(img->nseg, 2);
	assert_int_equal(img->seg[0].gpa, FIX_TEXT_GPA);
	assert_int_equal(img->seg[0].file_off, FIX_TEXT_OFF);
	assert_int_equal(img->seg[0].file_len, FIX_TEXT_LEN);
	assert_int_equal(img->seg[1].gpa, FIX_DATA_GPA);
	assert_int_equal(img->seg[1].file_len, FIX_DATA_LEN);
	assert_int_equal(img->seg[1].mem_len, FIX_DATA_MEM);
	assert_int_equal(img->low, FIX_TEXT_GPA);
	assert_int_equal(img->high, FIX_DATA_GPA + FIX_DATA_MEM);
	assert_int_equal(img->entry, FIX_TEXT_GPA + 0x40);
	assert_true(img->is_linux);
}

static void accepts_a_vmlinux(void **state)
{
	struct boot_image img;
	struct err e = { 0 };
	struct buf b;

	(void)state;
	buf_init(&b);
	fixture_elf(&b);
	assert_int_equal(image_parse(&img, "FILE", b.data, b.len, &e), 0);
	assert_int_equal(img.kind, BOOT_ELF64);
	assert_ptr_equal(img.elf, b.data);
	assert_null(img.unpacked);
	assert_string_equal(img.compression, "none");
	assert_string_equal(img.version, "");
	assert_int_equal(img.setup_header_len, 0);
	assert_int_equal(img.cmdline_max, 2047);
	check_segments(&img);
	image_deinit(&img);
	image_deinit(&img);
	image_deinit(NULL);

	/* any kernel will do, but only Linux gets called that */
	memset(b.data + FIX_TEXT_OFF + 0x800, 'x', 8);
	b.data[offsetof(Elf64_Ehdr, e_type)] = ET_DYN;
	assert_int_equal(image_parse(&img, "FILE", b.data, b.len, &e), 0);
	assert_false(img.is_linux);
	image_deinit(&img);
	buf_deinit(&b);
}

/* -- compression ---------------------------------------------------------------- */

static void pack_gzip(struct buf *b, const uint8_t *src, size_t len)
{
	z_stream z = { 0 };
	size_t cap = len + 4096;

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY),
			 Z_OK);
	z.next_in = (Bytef *)src;
	z.avail_in = (uInt)len;
	z.next_out = buf_reserve(b, cap);
	z.avail_out = (uInt)cap;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	b->len += z.total_out;
	deflateEnd(&z);
}

static void pack_bzip2(struct buf *b, const uint8_t *src, size_t len)
{
	unsigned int n = (unsigned int)len + 4096;

	assert_int_equal(BZ2_bzBuffToBuffCompress((char *)buf_reserve(b, n), &n, (char *)src,
						  (unsigned int)len, 9, 0, 0),
			 BZ_OK);
	b->len += n;
}

/* As scripts/xz_wrap.sh of Linux does it. */
static void pack_xz(struct buf *b, const uint8_t *src, size_t len)
{
	lzma_options_lzma o;
	lzma_filter f[] = { { LZMA_FILTER_X86, NULL },
			    { LZMA_FILTER_LZMA2, &o },
			    { LZMA_VLI_UNKNOWN, NULL } };
	size_t pos = b->len, cap = len + 4096;

	lzma_lzma_preset(&o, 6);
	o.dict_size = 32 * MIB;
	buf_reserve(b, cap);
	assert_int_equal(lzma_stream_buffer_encode(f, LZMA_CHECK_CRC32, NULL, src, len, b->data,
						   &pos, b->cap),
			 LZMA_OK);
	b->len = pos;
}

static void pack_lzma(struct buf *b, const uint8_t *src, size_t len)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_options_lzma o;

	lzma_lzma_preset(&o, 6);
	assert_int_equal(lzma_alone_encoder(&z, &o), LZMA_OK);
	z.next_in = src;
	z.avail_in = len;
	z.next_out = buf_reserve(b, len + 4096);
	z.avail_out = len + 4096;
	assert_int_equal(lzma_code(&z, LZMA_FINISH), LZMA_STREAM_END);
	b->len += z.total_out;
	lzma_end(&z);
}

/* Streaming, like "cat vmlinux | zstd": the frame does not know its size. */
static void pack_zstd(struct buf *b, const uint8_t *src, size_t len)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_inBuffer in = { src, len, 0 };
	ZSTD_outBuffer out = { buf_reserve(b, len + 4096), len + 4096, 0 };
	ZSTD_inBuffer end = { NULL, 0, 0 };

	ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, 27);
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
	assert_false(ZSTD_isError(ZSTD_compressStream2(c, &out, &in, ZSTD_e_continue)));
	assert_int_equal(ZSTD_compressStream2(c, &out, &end, ZSTD_e_end), 0);
	b->len += out.pos;
	ZSTD_freeCCtx(c);
}

static void pack_lz4(struct buf *b, const uint8_t *src, size_t len)
{
	buf_u32(b, 0x184c2102);
	for (size_t done = 0, n; done < len; done += n) {
		size_t at = b->len;
		int r;

		n = len - done < 8 * MIB ? len - done : 8 * MIB;
		buf_u32(b, 0);
		buf_reserve(b, (size_t)LZ4_compressBound((int)n));
		r = LZ4_compress_default((const char *)src + done, (char *)b->data + b->len, (int)n,
					 (int)(b->cap - b->len));
		assert_true(r > 0);
		b->len += (size_t)r;
		buf_put32(b, at, (uint32_t)r);
	}
}

static const struct packer {
	const char *name;
	void (*pack)(struct buf *b, const uint8_t *src, size_t len);
	bool own_size; /* Linux appends none */
	bool end_mark; /* the stream itself says where it ends */
} packers[] = {
	{ "gzip", pack_gzip, true, true },  { "bzip2", pack_bzip2, false, true },
	{ "xz", pack_xz, false, true },	    { "lzma", pack_lzma, false, true },
	{ "zstd", pack_zstd, false, true }, { "lz4", pack_lz4, false, false },
};

/* The trailer: 0 lies that the result is tiny, which must only cost time. */
static void wrap(struct buf *out, const struct packer *p, const struct buf *kernel,
		 uint32_t trailer)
{
	struct buf z;

	buf_init(&z);
	p->pack(&z, kernel->data, kernel->len);
	if (!p->own_size)
		buf_u32(&z, trailer);
	fixture_bzimage(out, z.data, z.len);
	buf_deinit(&z);
}

static void round_trip(const struct packer *p, const struct buf *kernel, uint32_t trailer)
{
	cleanup_free uint8_t *copy = NULL;
	struct boot_image img;
	struct buf file;
	struct err e;

	buf_init(&file);
	wrap(&file, p, kernel, trailer);
	if (parse(&img, file.data, file.len, BOOT_MAX_KERNEL, &e, &copy))
		fail_msg("%s: %s", p->name, e.text);
	assert_int_equal(img.kind, BOOT_BZIMAGE);
	assert_string_equal(img.compression, p->name);
	assert_string_equal(img.version, "6.1.0-test (a@b) #1");
	assert_int_equal(img.elf_len, kernel->len);
	assert_memory_equal(img.elf, kernel->data, kernel->len);
	assert_ptr_equal(img.elf, img.unpacked);
	assert_int_equal(img.setup_header_len, 0x26c - 0x1f1);
	assert_int_equal(img.cmdline_max, 2047);
	check_segments(&img);
	image_deinit(&img);
	buf_deinit(&file);
}

static void unpacks_every_compression(void **state)
{
	struct buf kernel;

	(void)state;
	buf_init(&kernel);
	fixture_elf(&kernel);
	for (size_t i = 0; i < ARRAY_SIZE(packers); i++) {
		round_trip(&packers[i], &kernel, (uint32_t)kernel.len);
		round_trip(&packers[i], &kernel, 0);
		round_trip(&packers[i], &kernel, UINT32_MAX);
	}
	/* larger than a block of lz4 and bzip2, and hardly compressible at the end */
	buf_add(&kernel, NULL, 9 * MIB);
	for (uint32_t x = 1, n = 0; n < 300000; n++) {
		x = x * 1664525 + 1013904223;
		buf_u8(&kernel, (uint8_t)(x >> 24));
	}
	for (size_t i = 0; i < ARRAY_SIZE(packers); i++) {
		round_trip(&packers[i], &kernel, (uint32_t)kernel.len);
		round_trip(&packers[i], &kernel, 1000);
	}
	/* blocks of lz4 that are full to the last */
	buf_add(&kernel, NULL, 16 * MIB - kernel.len);
	round_trip(&packers[5], &kernel, (uint32_t)kernel.len);
	buf_deinit(&kernel);
}

static void caps_the_result(void **state)
{
	struct buf kernel, file;

	(void)state;
	buf_init(&kernel);
	fixture_elf(&kernel);
	buf_add(&kernel, NULL, 32 * MIB);
	for (size_t i = 0; i < ARRAY_SIZE(packers); i++) {
		cleanup_free uint8_t *copy = NULL;
		struct boot_image img;
		struct err e;

		buf_init(&file);
		wrap(&file, &packers[i], &kernel, (uint32_t)kernel.len);
		assert_int_equal(parse(&img, file.data, file.len, MIB, &e, &copy), -EINVAL);
		if (!strstr(e.text, "longer than 1048576 bytes"))
			fail_msg("%s: %s", packers[i].name, e.text);
		buf_deinit(&file);
	}
	buf_deinit(&kernel);
}

/* Cut the payload everywhere near its ends and at some places between: never accepted whole. */
static void truncated_streams_are_errors(void **state)
{
	struct buf kernel, z, file;

	(void)state;
	buf_init(&kernel);
	fixture_elf(&kernel);
	for (size_t i = 0; i < ARRAY_SIZE(packers); i++) {
		buf_init(&z);
		packers[i].pack(&z, kernel.data, kernel.len);
		for (size_t cut = 1; cut < z.len - 8; cut += cut < 12 ? 1 : 97) {
			cleanup_free uint8_t *copy = NULL;
			struct boot_image img;
			struct err e;

			buf_init(&file);
			fixture_bzimage(&file, z.data, z.len - cut);
			if (parse(&img, file.data, file.len, BOOT_MAX_KERNEL, &e, &copy) == 0)
				fail_msg("%s minus %zu bytes was accepted", packers[i].name, cut);
			assert_non_null(strstr(e.text, packers[i].end_mark ? "cannot decompress"
									   : "FILE: "));
			buf_deinit(&file);
		}
		buf_deinit(&z);
	}
	buf_deinit(&kernel);
}

static void names_what_it_cannot_unpack(void **state)
{
	static const struct {
		const char *magic;
		int code;
		const char *text;
	} cases[] = {
		{ "\x89LZO\0\r\n\x1a\n", ENOTSUP, "compressed with lzo" },
		{ "\x04\"M\x18", ENOTSUP, "lz4 frame" },
		{ "what", ENOTSUP, "in an unknown format (begins with 77 68 61 74)" },
	};
	uint8_t payload[64];
	struct buf file;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(payload, 0x55, sizeof(payload));
		memcpy(payload, cases[i].magic, 4);
		buf_init(&file);
		fixture_bzimage(&file, payload, sizeof(payload));
		refused(file.data, file.len, cases[i].code, cases[i].text);
		buf_deinit(&file);
	}
	/* a payload that unpacks to something else */
	struct buf z;

	buf_init(&z);
	buf_init(&file);
	pack_gzip(&z, (const uint8_t *)"not an ELF file", 15);
	fixture_bzimage(&file, z.data, z.len);
	refused(file.data, file.len, EINVAL, "the gzip payload is not an ELF vmlinux (15 bytes");
	buf_deinit(&file);
	buf_deinit(&z);
}

/* -- hostile headers ------------------------------------------------------------ */

struct poke {
	size_t off;
	unsigned int size;
	uint64_t value;
	int code; /* 0: still fine */
	const char *text;
};

static void poke_all(const struct buf *good, const struct poke *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cleanup_free uint8_t *bad = malloc(good->len);
		struct boot_image img;
		struct err e = { 0 };

		memcpy(bad, good->data, good->len);
		memcpy(bad + p[i].off, &p[i].value, p[i].size);
		if (p[i].code) {
			refused(bad, good->len, p[i].code, p[i].text);
		} else {
			if (image_parse(&img, "FILE", bad, good->len, &e))
				fail_msg("case %zu: %s", i, e.text);
			image_deinit(&img);
		}
	}
}

#define EH(f) offsetof(Elf64_Ehdr, f), sizeof(((Elf64_Ehdr *)0)->f)
#define PH(i, f) FIX_PHDR(i) + offsetof(Elf64_Phdr, f), sizeof(((Elf64_Phdr *)0)->f)

static void hostile_elf_headers(void **state)
{
	static const struct poke pokes[] = {
		{ EI_CLASS, 1, ELFCLASS32, ENOTSUP, "32-bit ELF" },
		{ EI_DATA, 1, ELFDATA2MSB, ENOTSUP, "big-endian" },
		{ EH(e_machine), EM_AARCH64, ENOTSUP, "for arm64 (e_machine 183, expected 62)" },
		{ EH(e_machine), 4711, ENOTSUP, "another machine" },
		{ EH(e_type), ET_REL, EINVAL, "kernel module" },
		{ EH(e_type), ET_CORE, EINVAL, "core dump" },
		{ EH(e_type), 99, EINVAL, "e_type 99" },
		{ EH(e_phnum), 0, EINVAL, "0 ELF program headers" },
		{ EH(e_phnum), 65535, EINVAL, "65535 ELF program headers" },
		{ EH(e_phentsize), 32, EINVAL, "e_phentsize 32" },
		{ EH(e_phoff), FIX_LEN - 8, EINVAL, "past the end" },
		{ EH(e_phoff), UINT64_MAX, EINVAL, "past the end" },
		{ EH(e_phoff), UINT64_MAX - 55, EINVAL, "past the end" },
		{ EH(e_entry), FIX_TEXT_GPA - 1, EINVAL, "lies in no segment" },
		{ EH(e_entry), FIX_TEXT_GPA + FIX_TEXT_LEN, EINVAL, "lies in no segment" },
		{ EH(e_entry), 0xffffffff81000000, 0, NULL }, /* linked there */
		{ EH(e_entry), 0xffffffff81000000 + FIX_TEXT_LEN, EINVAL, "lies in no segment" },
		{ EH(e_entry), FIX_DATA_GPA + FIX_DATA_MEM - 1, 0, NULL },
		{ PH(0, p_type), PT_INTERP, EINVAL, "dynamically linked program" },
		{ PH(1, p_type), PT_NULL, EINVAL, "lies in no segment" },
		{ PH(0, p_memsz), FIX_DATA_LEN - 1, EINVAL, "is more than p_memsz" },
		{ PH(0, p_offset), FIX_DATA_OFF + 1, EINVAL, "ends after the file" },
		{ PH(0, p_offset), UINT64_MAX, EINVAL, "ends after the file" },
		{ PH(0, p_offset), UINT64_MAX - FIX_DATA_LEN + 1, EINVAL, "ends after the file" },
		{ PH(0, p_memsz), UINT64_MAX, EINVAL, "damaged ELF program header" },
		{ PH(0, p_memsz), 0xffffffff, EINVAL, "not below 4 GiB" },
		{ PH(0, p_paddr), 0xffffffff81200000, EINVAL, "needs p_paddr" },
		{ PH(0, p_paddr), UINT64_MAX, EINVAL, "damaged ELF program header" },
		{ PH(0, p_paddr), FIX_TEXT_GPA + FIX_TEXT_LEN - 1, EINVAL, "overlaps" },
		{ PH(0, p_paddr), FIX_TEXT_GPA - FIX_DATA_MEM + 1, EINVAL, "overlaps" },
		{ PH(0, p_paddr), FIX_TEXT_GPA, EINVAL, "overlaps" },
		{ PH(0, p_paddr), FIX_TEXT_GPA + FIX_TEXT_LEN, 0, NULL },
		{ PH(0, p_paddr), FIX_TEXT_GPA - FIX_DATA_MEM, 0, NULL },
		{ PH(0, p_paddr), 0, 0, NULL }, /* boot_load() has an opinion on that */
	};
	struct buf b;

	(void)state;
	buf_init(&b);
	fixture_elf(&b);
	poke_all(&b, pokes, ARRAY_SIZE(pokes));
	for (size_t len = 4; len < FIX_PHDR(FIX_PHDRS); len++)
		refused(b.data, len, EINVAL, len < 64 ? "truncated" : "");
	buf_deinit(&b);
}

/* FreeBSD's shape: p_paddr is low, e_entry is linked high. */
static void linked_entry(void **state)
{
	struct boot_image img;
	struct err e = { 0 };
	enum boot_protocol way;
	struct buf b;

	(void)state;
	buf_init(&b);
	fixture_elf(&b);
	buf_put64(&b, offsetof(Elf64_Ehdr, e_entry), 0xffffffff81000040);
	memset(b.data + FIX_TEXT_OFF + 0x800, 0, 25); /* no Linux */
	assert_int_equal(image_parse(&img, "FILE", b.data, b.len, &e), 0);
	assert_int_equal(img.entry, FIX_TEXT_GPA + 0x40);
	assert_int_equal(img.elf_entry, 0xffffffff81000040);
	assert_int_equal(protocol_of_image(&img, "FILE", BOOT_PROTOCOL_AUTO, &way, &e), 0);
	assert_int_equal(way, BOOT_PROTOCOL_VMLINUX);
	image_deinit(&img);
	/* Without a segment for the entry there are the other ways. */
	buf_put64(&b, offsetof(Elf64_Ehdr, e_entry), 0xffffffff90000000);
	assert_int_equal(image_parse(&img, "FILE", b.data, b.len, &e), 0);
	assert_int_equal(img.entry, 0);
	img.pvh_entry = FIX_TEXT_GPA;
	assert_int_equal(protocol_of_image(&img, "FILE", BOOT_PROTOCOL_AUTO, &way, &e), 0);
	assert_int_equal(way, BOOT_PROTOCOL_PVH);
	assert_int_equal(protocol_of_image(&img, "FILE", BOOT_PROTOCOL_VMLINUX, &way, &e), -EINVAL);
	assert_non_null(strstr(e.text, "FILE can be entered by pvh"));
	image_deinit(&img);
	buf_deinit(&b);
}

/* p_paddr = p_vaddr, as vmlinux-to-elf, Limine's and other kernels have it: to be read, not to be run. */
static void linked_high_only(void **state)
{
	struct boot_image img;
	struct err e = { 0 };
	enum boot_protocol way;
	struct buf b;

	(void)state;
	buf_init(&b);
	fixture_elf(&b);
	buf_put64(&b, FIX_PHDR(0) + offsetof(Elf64_Phdr, p_paddr), 0xffffffff81200000);
	buf_put64(&b, FIX_PHDR(1) + offsetof(Elf64_Phdr, p_paddr), 0xffffffff81000000);
	assert_int_equal(image_parse(&img, "FILE", b.data, b.len, &e), 0);
	assert_int_equal(img.nseg, 2);
	assert_true(img.is_linux);
	assert_ptr_equal(img.elf, b.data);
	for (int i = BOOT_PROTOCOL_VMLINUX; i < BOOT_PROTOCOL_AUTO; i++)
		assert_false(protocol_image_has(&img, (enum boot_protocol)i));
	assert_int_equal(protocol_of_image(&img, "FILE", BOOT_PROTOCOL_AUTO, &way, &e), -EINVAL);
	assert_non_null(strstr(e.text, "needs p_paddr"));
	image_deinit(&img);
	buf_deinit(&b);
}

/* Each of many symbol tables over the same bytes would be copied, half as large again. */
static void many_symbol_tables(void **state)
{
	enum { TABLES = 4096, SYMS = 4096, TEXT = 4096 };
	Elf32_Ehdr h = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_386,
		.e_entry = MIB,
		.e_phoff = sizeof(h),
		.e_phentsize = sizeof(Elf32_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf32_Shdr),
		.e_shnum = TABLES,
	};
	Elf32_Phdr p = {
		.p_type = PT_LOAD, .p_vaddr = MIB, .p_paddr = MIB, .p_filesz = TEXT, .p_memsz = TEXT
	};
	Elf32_Shdr table = { .sh_type = SHT_SYMTAB,
			     .sh_offset = sizeof(h) + sizeof(p) + TEXT,
			     .sh_size = SYMS * sizeof(Elf32_Sym) };
	struct boot_image img = { 0 };
	struct err e = { 0 };
	struct buf b;

	(void)state;
	p.p_offset = sizeof(h) + sizeof(p);
	h.e_shoff = table.sh_offset + table.sh_size;
	buf_init(&b);
	buf_add(&b, &h, sizeof(h));
	buf_add(&b, &p, sizeof(p));
	for (size_t i = 0; i < TEXT + table.sh_size; i += 8)
		buf_u64(&b, 0);
	for (unsigned int i = 0; i < TABLES; i++)
		buf_add(&b, &table, sizeof(table));
	assert_int_equal(widen_elf32(&img, "FILE", b.data, b.len, &e), 0);
	assert_in_range(img.elf_len, b.len, 4 * b.len);
	image_deinit(&img);
	buf_deinit(&b);
}

static void too_many_segments(void **state)
{
	Elf64_Phdr p = { .p_type = PT_LOAD, .p_memsz = 4096 };
	struct buf b;

	(void)state;
	buf_init(&b);
	fixture_elf(&b);
	for (unsigned int i = 0; i < BOOT_MAX_SEGMENTS + 1; i++) {
		p.p_paddr = FIX_TEXT_GPA + i * 4096u;
		memcpy(b.data + FIX_PHDR(i), &p, sizeof(p));
	}
	buf_put16(&b, offsetof(Elf64_Ehdr, e_phnum), BOOT_MAX_SEGMENTS + 1);
	refused(b.data, b.len, EINVAL, "more than 16 loadable");
	buf_deinit(&b);
}

static void hostile_setup_headers(void **state)
{
	static const struct poke pokes[] = {
		{ SETUP_XLOADFLAGS, 2, 0x0002, ENOTSUP, "32-bit Linux kernel" },
		{ SETUP_SECTS, 1, 255, EINVAL, "truncated" },
		{ SETUP_SECTS, 1, 4, 0, NULL },
		{ SETUP_SYSSIZE, 4, 0, EINVAL, "the kernel part at syssize 0x0" },
		{ SETUP_SYSSIZE, 4, UINT32_MAX, 0, NULL },
		{ SETUP_PAYLOAD_LENGTH, 4, 0, EINVAL, "payload_length 0" },
		{ SETUP_PAYLOAD_LENGTH, 4, 7, EINVAL, "payload_length 7" },
		{ SETUP_PAYLOAD_LENGTH, 4, UINT32_MAX, EINVAL, "damaged setup header" },
		{ SETUP_PAYLOAD_OFFSET, 4, UINT32_MAX, EINVAL, "damaged setup header" },
		{ SETUP_JUMP + 1, 1, 0, EINVAL, "damaged setup header (ends at 0x202" },
		{ SETUP_JUMP + 1, 1, 255, 0, NULL },
		{ SETUP_KERNEL_VERSION, 2, 0xffff, 0, NULL },
		{ SETUP_KERNEL_VERSION, 2, 0, 0, NULL },
		{ SETUP_CMDLINE_SIZE, 4, 0, 0, NULL },
		{ SETUP_CMDLINE_SIZE, 4, UINT32_MAX, 0, NULL },
		{ SETUP_MAGIC, 4, 0, EINVAL, "disk image (or boot sector)" },
	};
	struct buf kernel, b, z;

	(void)state;
	buf_init(&kernel);
	buf_init(&b);
	buf_init(&z);
	fixture_elf(&kernel);
	pack_gzip(&z, kernel.data, kernel.len);
	fixture_bzimage(&b, z.data, z.len);
	poke_all(&b, pokes, ARRAY_SIZE(pokes));
	for (size_t len = 0x206; len < 5 * 512 + 0x40 + z.len; len += 61)
		refused(b.data, len, EINVAL, "");
	/* everything at the limits together: sums are 64 bits wide */
	buf_put32(&b, SETUP_PAYLOAD_OFFSET, UINT32_MAX);
	buf_put32(&b, SETUP_PAYLOAD_LENGTH, UINT32_MAX);
	buf_put32(&b, SETUP_SYSSIZE, UINT32_MAX);
	refused(b.data, b.len, EINVAL, "truncated");
	buf_put16(&b, SETUP_VERSION, 0x0207);
	buf_put32(&b, SETUP_CODE32_START, 0x100000);
	refused(b.data, b.len, ENOTSUP, "boot protocol 2.07 is too old");
	buf_deinit(&z);
	buf_deinit(&b);
	buf_deinit(&kernel);
}

static void says_what_a_file_seems_to_be(void **state)
{
	static const struct {
		size_t off, len;
		const char *magic;
		const char *text;
	} cases[] = {
		{ 0x38, 4, "ARM\x64", "an arm64 kernel Image" },
		{ 0, 3, "\x1f\x8b\x08", "compressed with gzip, not a kernel" },
		{ 0, 6,
		  "\xfd"
		  "7zXZ\0",
		  "compressed with xz, not a kernel" },
		{ 0, 4, "\x28\xb5\x2f\xfd", "compressed with zstd, not a kernel" },
		{ 0, 6, "070701", "probably an initrd; give it as the initrd" },
		{ 0, 4, "QFI\xfb", "a qcow2 disk image" },
		{ 510, 2, "\x55\xaa", "a disk image" },
		{ 512, 8, "EFI PART", "a GPT disk image" },
		{ 0x438, 2, "\x53\xef", "an ext2/3/4 file system" },
		{ 0x8001, 5, "CD001", "an ISO 9660 CD image" },
		{ 0, 8, "!<arch>\n", "Debian package" },
		{ 0, 8, "MZ\0\0zimg", "EFI zboot" },
		{ 0, 2, "MZ", "unified kernel image" },
		{ 0, 3, "\1\2\3", "begins with 01 02 03 00" },
		{ 0, 1, "\0", "all zero" },
	};
	static uint8_t file[0x9000];
	char text[] = "root:x:0:0:root:/root:/bin/sh\n";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(file, 0, sizeof(file));
		memcpy(file + cases[i].off, cases[i].magic, cases[i].len);
		refused(file, sizeof(file), EINVAL, cases[i].text);
	}
	refused(text, sizeof(text) - 1, EINVAL, "a text file");
	refused("#!/bin/sh\n", 10, EINVAL, "a script");
	refused("", 0, EINVAL, "empty");
	refused("\x7f", 1, EINVAL, "(1 bytes, begins with 7f");
	refused("\x7f"
		"ELF",
		4, EINVAL, "truncated ELF file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_a_vmlinux),
		cmocka_unit_test(unpacks_every_compression),
		cmocka_unit_test(caps_the_result),
		cmocka_unit_test(truncated_streams_are_errors),
		cmocka_unit_test(names_what_it_cannot_unpack),
		cmocka_unit_test(linked_entry),
		cmocka_unit_test(linked_high_only),
		cmocka_unit_test(hostile_elf_headers),
		cmocka_unit_test(many_symbol_tables),
		cmocka_unit_test(too_many_segments),
		cmocka_unit_test(hostile_setup_headers),
		cmocka_unit_test(says_what_a_file_seems_to_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
