/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exported profiles with hostile names, recursion and samples without a stack: what means
 * something in a format is replaced, JSON stays UTF-8, nothing of the weights is lost.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "profile/analyse/export/export.h"
#include "profile/analyse/export/stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define EVIL_JSON "a\"b\\c\x01\xff\xc3\xa9\xed\xa0\x80"

static const char kernel[] = "[kernel.kallsyms]", prog[] = "/bin/a;b!c: d";
static const struct stackset_func funcs[] = {
	{ "outer", kernel, true, STACKSET_KIND_KERNEL, true, false, 0xffffffff81000000, 0x100,
	  false, NULL },
	{ "a;b<c>(int, char)!", prog, true, STACKSET_KIND_USER, false, false, 0x1000, 0x40, false,
	  NULL },
	{ EVIL_JSON, prog, true, STACKSET_KIND_JIT, false, false, 0x2000, 0x40, false, NULL },
	{ "0x0000000000003000", prog, false, STACKSET_KIND_USER, false, false, 0x3000, 0, false,
	  NULL },
	{ "x::operator+/`m`: n", prog, true, STACKSET_KIND_USER, false, false, 0x4000, 0x40, false,
	  NULL },
};
static const struct stackset_frame frames[] = {
	{ 0, 0xffffffff81000010, 0x10, 0x10 }, { 0, 0xffffffff81000020, 0x20, 0x20 },
	{ 1, 0x55001004, 4, 0x1004 },	       { 2, 0x55002004, 4, 0x2004 },
	{ 3, 0x55003000, 0, 0x3000 },	       { 4, 0x55004008, 8, 0x4008 },
};
static const struct stackset_task tasks[] = { { 0, 0, "swapper" }, { 7, 8, "ev il;\n\"" } };
static const uint32_t stack0[] = { 1, 0 }, stack1[] = { 3, 2 }, stack2[] = { 4 },
		      stack3[] = { 5, 0, 1, 0 };
static const struct stackset_stack stacks[] = {
	{ stack0, 2, 0, STACKSET_IDLE, 100, 2 }, { stack1, 2, 1, STACKSET_USER, 20, 1 },
	{ stack2, 1, 1, STACKSET_USER, 30, 1 },	 { stack3, 4, 1, STACKSET_KERNEL, 40, 1 },
	{ NULL, 0, 1, STACKSET_KERNEL, 5, 1 },
};
static const struct stackset_sample samples[] = {
	{ 1000, 50, 0, 0, 0 }, { 1000, 50, 0, 1, 0 }, { 1050, 20, 1, 0, 0 },
	{ 1070, 30, 2, 0, 0 }, { 1100, 40, 3, 0, 0 }, { 1140, 5, 4, 0, 0 },
};

static const struct stackset set = {
	.func = funcs,
	.frame = frames,
	.task = tasks,
	.stack = stacks,
	.sample = samples,
	.nfuncs = ARRAY_SIZE(funcs),
	.nframes = ARRAY_SIZE(frames),
	.ntasks = ARRAY_SIZE(tasks),
	.nstacks = ARRAY_SIZE(stacks),
	.nsamples = ARRAY_SIZE(samples),
	.samples = 6,
	.weight = 195,
	.first_ns = 1000,
	.last_ns = 1140,
	.event = "wall",
	.weight_is_ns = true,
	.osrelease = EVIL_JSON,
	.ours = true,
	.message = "",
};

/* Returns the output of a format as text, which the caller frees. */
static char *written(const char *format, const struct export_options *opt, bool gzip)
{
	char path[] = "/tmp/kvmprof-export.XXXXXX";
	int fd = mkstemp(path);
	struct export_out out;
	struct err e = { 0 };
	struct file_map map;
	char *text;

	assert_true(fd >= 0);
	export_out_init(&out, fd, gzip ? EXPORT_GZIPPED : EXPORT_UNPACKED);
	assert_int_equal(export_find(format)->write(&out, NULL, &set, opt, &e), 0);
	assert_int_equal(export_out_finish(&out, path, &e), 0);
	export_out_deinit(&out);
	close(fd);
	assert_int_equal(file_map_open(&map, path, 1 << 20, &e), 0);
	text = strndup((const char *)map.data, map.len);
	file_map_close(&map);
	unlink(path);
	return text;
}

static const struct export_options plain = { .version = "1" };

static void folded_is_tidied(void **state)
{
	struct export_options opt = { .tidy = true, .version = "1" };
	cleanup_free char *text = written("folded", &opt, false);

	(void)state;
	assert_string_equal(
		text,
		"swapper;outer;outer 100\n"
		"ev_il:?\" 5\n"
		"ev_il:?\";a:bc;abc?\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd 20\n"
		"ev_il:?\";[a:b!c: d] 30\n"
		"ev_il:?\";outer;outer;outer;x::operator+/`m`: n 40\n");
}

static void folded_keeps_names(void **state)
{
	cleanup_free char *text = written("folded", &plain, false);

	(void)state;
	assert_string_equal(
		text,
		"swapper;outer_[k];outer_[k] 100\n"
		"ev il:?\" 5\n"
		"ev il:?\";a:b<c>(int, "
		"char)!;a\"b\\c?\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd_[j] 20\n"
		"ev il:?\";[a:b!c: d] 30\n"
		"ev il:?\";outer_[k];outer_[k];outer_[k];x::operator+/`m`: n 40\n");
}

static void folded_by_thread_and_offset(void **state)
{
	struct export_options opt = { .names = EXPORT_BOTH,
				      .per_thread = true,
				      .count_samples = true,
				      .no_marks = true,
				      .version = "1" };
	cleanup_free char *text = written("folded", &opt, false);

	(void)state;
	assert_non_null(strstr(text, "swapper-0/0;outer;outer+0x10;outer;outer+0x20 2\n"));
	assert_non_null(strstr(text, "ev il:?\"-7/8;[a:b!c: d];0x0000000000003000 1\n"));
}

/* Strings closed, no control character, valid UTF-8 (by mbstowcs's rules, spelt out). */
static void is_json_text(const char *text)
{
	bool string = false;
	int depth = 0;

	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		assert_true(*p >= 0x20 || (*p == '\n' && !string));
		assert_true(*p != 0xff && *p != 0xed);
		if (string && *p == '\\')
			assert_non_null(strchr("\"\\u", *++p));
		else if (*p == '"')
			string = !string;
		else if (!string && strchr("[{", *p))
			depth++;
		else if (!string && strchr("]}", *p))
			depth--;
		assert_true(depth >= 0);
	}
	assert_true(!string && depth == 0);
}

static void json_is_utf8(void **state)
{
	static const char *const formats[] = { "speedscope", "firefox" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		cleanup_free char *text = written(formats[i], &plain, false);

		is_json_text(text);
		/* A surrogate is three bytes that are none. */
		assert_non_null(strstr(text, "a\\\"b\\\\c\\u0001\xef\xbf\xbd\xc3\xa9"
					     "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""));
	}
}

static void idle_threads_stay_apart(void **state)
{
	cleanup_free char *text = written("firefox", &plain, false);

	(void)state;
	assert_non_null(strstr(text, "\"pid\":\"0\",\"tid\":\"0.0\""));
	assert_non_null(strstr(text, "\"pid\":\"0\",\"tid\":\"0.1\""));
	assert_non_null(strstr(text, "\"pid\":\"7\",\"tid\":8,"));
}

static void callgrind_levels(void **state)
{
	cleanup_free char *text = written("callgrind", &plain, false);
	uint64_t own = 0;
	bool call = false;

	(void)state;
	assert_non_null(strstr(text, ") outer\n"));
	assert_non_null(strstr(text, ") outer'2\n"));
	assert_non_null(strstr(text, ") outer'3\n"));
	assert_non_null(strstr(text, "\nsummary: 195\n"));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (line[0] == '0' && line[1] == ' ' && !call)
			own += strtoull(line + 2, NULL, 10);
		call = !strncmp(line, "calls=", 6);
	}
	assert_int_equal(own, 195);
}

static void kp_has_no_marks_in_names(void **state)
{
	cleanup_free char *text = written("kp", &plain, false);
	unsigned int marks = 0;

	(void)state;
	for (const char *p = text; *p; p++) {
		if (*p != '!')
			continue;
		marks++;
		assert_true((p == text || p[-1] == '\n') && p[1] == '\n');
	}
	assert_int_equal(marks, 6);
	assert_non_null(strstr(text, "!\n 0xffffffff81000020 : outer+0x20/0x100 [kernel]\n"
				     " 0xffffffff81000010 : outer+0x10/0x100 [kernel]\n\t2\n!\n"));
	assert_non_null(strstr(
		text, " 0x55004008 : x::operator%2b%2f%60m%60%3a n+0x8/0x40 [/bin/a;b%21c%3a "
		      "d]\n"));
	assert_non_null(strstr(text, " 0x0 : (kernel)+0x0/0x0 [unknown]\n\t1\n"));
}

/* Returns whether all of the text is UTF-8. */
static bool is_utf8(const char *text)
{
	size_t n;

	for (; *text; text += n) {
		n = utf8_len(text);
		if (!n)
			return false;
	}
	return true;
}

static void texts_are_utf8(void **state)
{
	static const char *const formats[] = { "folded", "kp", "callgrind", "perf-script" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		cleanup_free char *text = written(formats[i], &plain, false);

		if (!is_utf8(text))
			fail_msg("%s is no UTF-8", formats[i]);
		assert_null(strchr(text, 1));
		assert_non_null(strstr(text, "\xef\xbf\xbd\xc3\xa9"));
	}
}

/* Longer than any name of a symbol, as each byte that is no UTF-8 becomes three. */
static void long_names_stay_whole(void **state)
{
	struct stackset_func func = { "", prog,	 true, STACKSET_KIND_USER, false, false, 0,
				      1,  false, NULL };
	const struct stackset long_set = {
		.func = &func, .nfuncs = 1, .frame = &(struct stackset_frame){ 0 }, .nframes = 1
	};
	struct export_labels *labels;
	char name[12289];

	(void)state;
	for (size_t i = 0; i + 3 < sizeof(name); i += 3)
		memcpy(name + i, "\xef\xbf\xbd", 4);
	func.name = name;
	assert_int_equal(export_labels_create(&labels, &long_set, EXPORT_FUNCTION, NULL), 0);
	assert_string_equal(export_label(labels, 0)->text, name);
	export_labels_destroy(labels);
}

static void iprof_stays_in_its_directory(void **state)
{
	char dir[] = "/tmp/kvmprof-export.XXXXXX", path[128];
	cleanup_free char *text = NULL;
	struct err e = { 0 };
	struct file_map map;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(export_find("iprof")->write(NULL, dir, &set, &plain, &e), 0);
	snprintf(path, sizeof(path), "%s/kernel.syms", dir);
	assert_int_equal(file_map_open(&map, path, 4096, &e), 0);
	assert_int_equal(map.len, strlen("0x0 0x100 outer [kernel.kallsyms]\n"));
	file_map_close(&map);
	/* The name is FNV-1a of the path. */
	snprintf(path, sizeof(path), "%s/a_b_c__d-%016llx.prof", dir,
		 (unsigned long long)hash_text(HASH_START, prog));
	assert_int_equal(file_map_open(&map, path, 4096, &e), 0);
	text = strndup((const char *)map.data, map.len);
	file_map_close(&map);
	assert_true(is_utf8(text));
	assert_string_equal(text, "# image: /bin/a;b!c: d\n# mode: user\n# unit: samples\n"
				  "# profiler: kvmprof 1\n0x2004 1\n0x3000 1\n0x4008 1\n"
				  "# function: 0x2000 0x40 a\"b\\c?\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd"
				  "\xef\xbf\xbd\xef\xbf\xbd\n"
				  "# function: 0x4000 0x40 x::operator+/`m`: n\n");
	assert_int_equal(file_remove_tree(dir, &e), 0);
}

static void pprof_is_gzip(void **state)
{
	cleanup_free char *text = written("pprof", &plain, true);

	(void)state;
	assert_memory_equal(text, "\x1f\x8b\x08", 3);
}

static void failed_writes_are_told(void **state)
{
	struct export_out out;
	struct err e = { 0 };

	(void)state;
	export_out_init(&out, -1, EXPORT_UNPACKED);
	assert_int_equal(export_find("folded")->write(&out, NULL, &set, &plain, &e), 0);
	assert_true(export_out_finish(&out, "there", &e) < 0);
	assert_non_null(strstr(e.text, "there"));
	export_out_deinit(&out);
	assert_null(export_find("nonsense"));
}

/* The number at *at of data, which moves behind it. */
static uint64_t varint(const uint8_t *data, size_t len, size_t *at)
{
	uint64_t v = 0;

	for (unsigned int shift = 0;; shift += 7) {
		assert_true(*at < len && shift < 64);
		v |= (uint64_t)(data[*at] & 0x7f) << shift;
		if (!(data[(*at)++] & 0x80))
			return v;
	}
}

/* A trace is packets and nothing else, whose fields fill them; texts are UTF-8, hostile ones, too. */
static void perfetto_is_packets(void **state)
{
	char path[] = "/tmp/kvmprof-export.XXXXXX";
	int fd = mkstemp(path);
	struct export_out out;
	struct err e = { 0 };
	struct file_map map;
	size_t packets = 0, samples_seen = 0;

	(void)state;
	export_out_init(&out, fd, EXPORT_UNPACKED);
	assert_int_equal(export_find("perfetto")->write(&out, NULL, &set, &plain, &e), 0);
	assert_int_equal(export_out_finish(&out, path, &e), 0);
	export_out_deinit(&out);
	close(fd);
	assert_int_equal(file_map_open(&map, path, 1 << 20, &e), 0);
	for (size_t at = 0; at < map.len; packets++) {
		size_t end;

		assert_int_equal(varint(map.data, map.len, &at), 1 << 3 | 2);
		end = varint(map.data, map.len, &at);
		assert_true(end <= map.len - at);
		end += at;
		while (at < end) {
			uint64_t tag = varint(map.data, end, &at);
			uint64_t v = varint(map.data, end, &at);

			assert_true((tag & 7) == 0 || (tag & 7) == 2);
			samples_seen += tag == (66 << 3 | 2);
			if ((tag & 7) == 2) {
				assert_true(v <= end - at);
				at += v;
			}
		}
	}
	assert_int_equal(samples_seen, ARRAY_SIZE(samples));
	assert_true(packets > samples_seen);
	/* Bytes that are no UTF-8 are none in the trace. */
	assert_null(memmem(map.data, map.len, "\x01\xff\xc3", 3));
	assert_non_null(memmem(map.data, map.len, "\x01\xef\xbf\xbd\xc3\xa9", 6));
	file_map_close(&map);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folded_is_tidied),
		cmocka_unit_test(folded_keeps_names),
		cmocka_unit_test(folded_by_thread_and_offset),
		cmocka_unit_test(json_is_utf8),
		cmocka_unit_test(idle_threads_stay_apart),
		cmocka_unit_test(callgrind_levels),
		cmocka_unit_test(kp_has_no_marks_in_names),
		cmocka_unit_test(texts_are_utf8),
		cmocka_unit_test(long_names_stay_whole),
		cmocka_unit_test(iprof_stays_in_its_directory),
		cmocka_unit_test(pprof_is_gzip),
		cmocka_unit_test(perfetto_is_packets),
		cmocka_unit_test(failed_writes_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
