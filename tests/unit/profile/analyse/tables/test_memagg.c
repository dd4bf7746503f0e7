/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From samples to the tables of `kvmprof mem`, by way of a real file: a guest whose page
 * tables have pages of 4 KiB, 2 MiB and 1 GiB, and samples of which the test knows how
 * many go where.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/analyse/tables/memagg.h"
#include "profile/record/guest/memprobe.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/perfdata/sink.h"
#include "tests/unit/profile_fixture.h"
#include "vmm/gmem_alloc.h"

#include <errno.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define P_W_U UINT64_C(7)
#define PS UINT64_C(0x80)
#define PML4 UINT64_C(0x1000)
#define PDPT UINT64_C(0x2000)
#define PD UINT64_C(0x3000)
#define PD_2M UINT64_C(0x4000)
#define PT UINT64_C(0x5000)

/* Where each kind of page is mapped, and one of a device. */
#define AT_4K UINT64_C(0x400000)
#define AT_DEVICE UINT64_C(0x600000)
#define AT_2M GIB
#define AT_1G (2 * GIB)
#define AT_NOTHING (3 * GIB)
#define PAGES_4K 256u

static struct gmem mem;
static struct fx fx;

static void set(uint64_t table, unsigned int index, uint64_t v)
{
	assert_int_equal(gmem_write(&mem, table + index * 8, &v, 8), 0);
}

static int setup(void **state)
{
	(void)state;
	mem = (struct gmem){ 0 };
	if (fx_setup(&fx) || gmem_alloc(&mem, &(struct gmem_config){ .size = 64 * MIB }, NULL))
		return -1;
	set(PML4, 0, PDPT | P_W_U);
	set(PDPT, 0, PD | P_W_U);
	set(PDPT, 1, PD_2M | P_W_U);
	set(PDPT, 2, P_W_U | PS);
	set(PD, 2, PT | P_W_U);
	set(PD, 3, UINT64_C(0xfe000000) | P_W_U | PS);
	set(PD_2M, 0, 16 * MIB | P_W_U | PS);
	for (unsigned int i = 0; i < PAGES_4K; i++)
		set(PT, i, (8 * MIB + i * 4096) | P_W_U);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gmem_alloc_free(&mem);
	return fx_teardown(&fx);
}

/* -- a profile ---------------------------------------------------------------------------- */

static struct memprobe *probe;
static uint64_t now;

static void begin(const char *path)
{
	static struct profile_info info = {
		.event = { PROFILE_EVENT_WALL(1000) }, .nevents = 1, .vcpus = 1, .mem = true
	};
	const struct sink_perfdata_options opt = { .path = path, .no_buildid_cache = true };
	const struct profile_kernel k = { .symbols = fx.kernel,
					  .text = FX_TEXT,
					  .end = FX_TEXT + 0x10000 };

	now = FX_T0;
	assert_int_equal(memprobe_create(&probe, &mem, NULL), 0);
	memregion_layout_init(memprobe_layout(probe), MEM_LAYOUT_UNKNOWN, fx.kernel, k.text, k.end);
	assert_int_equal(perfdata_sink_create(&fx.sink, &opt, NULL), 0);
	assert_int_equal(fx.sink->ops->begin(fx.sink, &info, NULL), 0);
	assert_int_equal(fx.sink->ops->kernel(fx.sink, &k, NULL), 0);
}

static void end(void)
{
	assert_int_equal(fx.sink->ops->end(fx.sink, NULL, NULL), 0);
	fx.sink->ops->destroy(fx.sink);
	fx.sink = NULL;
	memprobe_destroy(probe);
}

static const struct mem_refs *look(uint64_t rip, const char *bytes, size_t len, uint64_t rdi,
				   uint8_t mode)
{
	const struct memory none = { 0 };
	struct sample s = {
		.version = SAMPLE_VERSION,
		.mode = mode,
		.insn_len = (uint8_t)len,
		.time_ns = now,
		.regs = { .rip = rip,
			  .cr0 = 1u << 31,
			  .cr3 = PML4,
			  .cr4 = 1u << 5,
			  .efer = 1u << 10 | 1u << 11 },
	};

	memcpy(s.insn, bytes, len);
	s.regs.gpr[GPR_RDI] = rdi;
	s.regs.gpr[GPR_RSP] = AT_4K + 0x80000;
	return memprobe_sample(probe, &s, &none, NULL, NULL);
}

/* Samples of one ms. */
static void put_mode(unsigned int count, uint64_t rip, const char *bytes, size_t len, uint64_t rdi,
		     uint8_t mode)
{
	static struct stack st;
	struct profile_sample out = {
		.pid = 7, .tid = 7, .period = 1000000, .mode = mode, .stack = &st
	};

	st = (struct stack){ .n = 1, .n_kernel = rip >> 63 };
	st.ip[0] = rip;
	for (unsigned int i = 0; i < count; i++) {
		out.time_ns = now += 1000000;
		out.mem = look(rip, bytes, len, rdi, mode);
		assert_int_equal(fx.sink->ops->sample(fx.sink, &out, NULL), 0);
	}
}

#define PUT(count, rip, bytes, rdi) put_mode(count, rip, bytes, sizeof(bytes) - 1, rdi, SAMPLE_USER)
#define LOAD "\x48\x8b\x07"  /* mov (%rdi),%rax */
#define STORE "\x48\x89\x07" /* mov %rax,(%rdi) */
#define PUSH "\xff\x37"	     /* push (%rdi) */

static double share(const struct memagg_row *r, size_t n, const char *name)
{
	uint64_t sum = 0, mine = 0;

	for (size_t i = 0; i < n; i++) {
		sum += r[i].weight;
		mine += strcmp(r[i].name, name) ? 0 : r[i].weight;
	}
	return sum ? 100.0 * (double)mine / (double)sum : 0;
}

static struct memagg_row *rows(const struct memagg *m, enum memagg_key key, size_t *n)
{
	struct memagg_row *r = NULL;

	assert_int_equal(memagg_rows(m, key, &r, n, NULL), 0);
	return r;
}

#define NEAR(a, b) assert_true((a) > (b)-0.01 && (a) < (b) + 0.01)

static void page_sizes(void **state)
{
	const char *path = fx_path(&fx, "sizes");
	const struct memagg_options opt = { .input = path };
	struct memagg_row *data, *code, *region;
	struct memagg *m = NULL;
	struct err e = { 0 };
	size_t nd, nc, nr;

	(void)state;
	begin(path);
	PUT(400, AT_4K, LOAD, AT_4K + 0x2008);
	PUT(350, AT_2M + 0x100, STORE, AT_2M + 0x123456);
	PUT(250, AT_1G + 32 * MIB, LOAD, AT_1G + 40 * MIB);
	end();
	assert_int_equal(memagg_load(&m, &opt, &e), 0);
	data = rows(m, MEMAGG_PAGE, &nd);
	code = rows(m, MEMAGG_CODE, &nc);
	region = rows(m, MEMAGG_REGION, &nr);
	NEAR(share(data, nd, "4K"), 40);
	NEAR(share(data, nd, "2M"), 35);
	NEAR(share(data, nd, "1G"), 25);
	NEAR(share(code, nc, "4K"), 40);
	NEAR(share(code, nc, "2M"), 35);
	NEAR(share(code, nc, "1G"), 25);
	NEAR(share(region, nr, "other user"), 100);
	assert_int_equal(m->samples, 1000);
	assert_int_equal(m->accesses, 1000);
	assert_int_equal(m->status[MEM_OK], m->access_weight);
	for (size_t i = 0; i < nd; i++)
		assert_int_equal(data[i].write, strcmp(data[i].name, "2M") ? 0 : data[i].weight);
	free(data);
	free(code);
	free(region);
	memagg_destroy(m);
}

static void all_operands_count(void **state)
{
	const char *path = fx_path(&fx, "operands");
	const struct memagg_options opt = { .input = path };
	struct memagg_row *r;
	struct memagg *m = NULL;
	struct perfdata *p = NULL;
	struct perfdata_record rec;
	size_t n;

	(void)state;
	begin(path);
	PUT(10, AT_4K, PUSH, AT_2M); /* reads a 2M page, writes the stack in a 4K one */
	PUT(5, AT_4K, "\x90", 0);    /* nop */
	PUT(4, AT_4K, "\x06", 0);    /* no instruction */
	PUT(3, AT_4K, "\xc4\xe2\x6d\x90\x04\x8f", 0); /* vpgatherdd */
	PUT(2, AT_4K, "", 0);
	PUT(6, AT_4K, LOAD, AT_NOTHING);
	PUT(7, AT_4K, LOAD, UINT64_C(1) << 60);
	PUT(8, AT_4K, STORE, AT_DEVICE + 16);
	set(PT, 1, (9 * MIB) | 3); /* the kernel's, where programs are */
	PUT(50, AT_4K, LOAD, AT_4K + 4096);
	put_mode(9, fx_k(1, 4), LOAD, 3, AT_1G, SAMPLE_KERNEL);
	put_mode(20, fx_k(3, 0), LOAD, 3, AT_1G, SAMPLE_IDLE);
	end();
	assert_int_equal(memagg_load(&m, &opt, NULL), 0);
	assert_int_equal(m->samples, 124);
	assert_int_equal(m->idle, 20000000);
	assert_int_equal(m->none, 5000000);
	assert_int_equal(m->why[MEMOP_UNKNOWN_INSN], 4000000);
	assert_int_equal(m->why[MEMOP_VECTOR_INDEX], 3000000);
	assert_int_equal(m->why[MEMOP_NO_BYTES], 2000000);
	assert_int_equal(m->accesses, 10 * 2 + 6 + 7 + 8 + 50 + 9);
	assert_int_equal(m->status[MEM_GONE], 6000000);
	assert_int_equal(m->status[MEM_NOT_CANONICAL], 7000000);
	assert_int_equal(m->host[MEM_HOST_DEVICE], 8000000);
	r = rows(m, MEMAGG_REGION, &n);
	NEAR(share(r, n, "device (MMIO)"), 8);
	NEAR(share(r, n, "other kernel"), 50);
	NEAR(share(r, n, "user stack"), 10);
	NEAR(share(r, n, "unknown"), 7);
	free(r);
	r = rows(m, MEMAGG_SPACE, &n);
	NEAR(share(r, n, "kernel"), 50);
	NEAR(share(r, n, "device"), 8);
	NEAR(share(r, n, "user"), 42);
	free(r);
	r = rows(m, MEMAGG_SYMBOL, &n);
	NEAR(share(r, n, "middle"), 9);
	NEAR(share(r, n, "[unknown]"), 91);
	free(r);
	memagg_destroy(m);

	/* Only the kernel's. */
	assert_int_equal(
		memagg_load(&m, &(struct memagg_options){ .input = path, .mode = MEMAGG_KERNEL },
			    NULL),
		0);
	assert_int_equal(m->accesses, 9);
	memagg_destroy(m);

	/* perf's fields are of the first operand. */
	assert_int_equal(perfdata_open(&p, path, NULL), 0);
	assert_true(p->has_raw && p->has_data_page && p->has_code_page);
	do
		assert_true(perfdata_next(p, &rec));
	while (rec.kind != PERFDATA_SAMPLE);
	assert_int_equal(rec.sample.data_page, 2 * MIB);
	assert_int_equal(rec.sample.code_page, 4096);
	perfdata_close(p);
}

/* One busy range of 4 KiB pages, one with few. */
static void huge_pages(void **state)
{
	const char *path = fx_path(&fx, "huge");
	const struct memagg_options opt = { .input = path };
	struct memagg *m = NULL;

	(void)state;
	begin(path);
	for (unsigned int i = 0; i < 100; i++)
		PUT(1, AT_4K, LOAD, AT_4K + i * 4096);
	PUT(100, AT_4K, LOAD, AT_2M + 8);
	end();
	assert_int_equal(memagg_load(&m, &opt, NULL), 0);
	assert_int_equal(m->nhuge, 1);
	assert_int_equal(m->huge[0].pages, 100);
	assert_int_equal(m->huge[0].ranges, 1);
	assert_int_equal(m->huge[0].dense, 1);
	assert_int_equal(m->huge[0].dense_weight, m->huge[0].weight);
	assert_int_equal(m->reach[0].percent, 90);
	assert_int_equal(m->reach[0].now[MEMAGG_4K], 80);
	assert_int_equal(m->reach[0].now[MEMAGG_2M], 1);
	assert_int_equal(m->reach[0].huge, 2);
	assert_int_equal(m->reach[0].huge_dense, 2);
	memagg_destroy(m);

	begin(fx_path(&fx, "sparse"));
	for (unsigned int i = 0; i < MEMAGG_DENSE - 1; i++)
		PUT(1, AT_4K, LOAD, AT_4K + i * 4096);
	end();
	assert_int_equal(
		memagg_load(&m, &(struct memagg_options){ .input = fx_path(&fx, "sparse") }, NULL),
		0);
	assert_int_equal(m->huge[0].dense, 0);
	assert_int_equal(m->reach[1].huge, 1);
	assert_int_equal(m->reach[1].huge_dense, MEMAGG_DENSE - 1);
	memagg_destroy(m);
}

static void without_mem(void **state)
{
	struct memagg *m = NULL;
	struct err e = { 0 };

	(void)state;
	fx_begin(&fx, "plain", false);
	assert_int_equal(fx.sink->ops->end(fx.sink, NULL, NULL), 0);
	fx.sink->ops->destroy(fx.sink);
	fx.sink = NULL;
	assert_int_equal(memagg_load(&m, &(struct memagg_options){ .input = fx_path(&fx, "plain") },
				     &e),
			 -ENODATA);
	assert_non_null(strstr(e.text, "run --mem"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(page_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(all_operands_count, setup, teardown),
		cmocka_unit_test_setup_teardown(huge_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(without_mem, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
