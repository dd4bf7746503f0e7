/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of a day: 24 hours of 64 vCPUs at 997 Hz, replayed with one of 997 samples of each.
 *
 *	bench_consumer_day [HOURS]
 *
 * Samples carry the times that they would have, and their weight; so what is done by time is done
 * as often as in a day: mappings are read again, tasks swept, files written. Four times in each
 * second a task gives way to a new process of the same program, 345,600 in a day, which is
 * more than are remembered. Prints what of us is in memory (RSS) after each hour. Fails where the last
 * hour has more than MOST times what there was at a quarter of the time, when all tables that are
 * bounded are as large as they may become. What was written of the profile is given back to the disk.
 */
#include "tests/bench/consumer_machine.h"
#include "base/ring.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOURS 24u
#define RING_BYTES (1u << 20)
#define RENEWED 4u /* tasks, each second */
#define FIRST_PID 1000u
#define PID_MAX (1u << 22)
#define MOST 1.05

static double rss_mib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long all, resident = 0;

	if (!f || fscanf(f, "%lu %lu", &all, &resident) != 2)
		abort();
	fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static void give_back(void)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "bench_consumer.data.tmp-%d", (int)getpid());
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > (64 << 20))
		(void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 20,
				 st.st_size - (64 << 20));
	if (fd >= 0)
		close(fd);
}

static void put_at(unsigned int vcpu, const struct sample *from, unsigned int task,
		   uint64_t time_ns)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	struct sample *s;

	while (!has_room(&vm.ring[vcpu], sample_size(from)))
		nanosleep(&nap, NULL);
	s = ring_reserve(&vm.ring[vcpu], sample_size(from));
	if (!s)
		abort();
	memcpy(s, from, sample_size(from));
	s->vcpu = (uint16_t)vcpu;
	s->reason = SAMPLE_TIMER;
	s->weight = NSEC_PER_SEC;
	s->time_ns = time_ns;
	s->task = gf_sample(&guest->lm, guest->task[task], 0).task;
	ring_commit(&vm.ring[vcpu], sample_size(s));
}

/* In the same place, as the kernel hands out what was given back. */
static void renew(unsigned int task, uint64_t n)
{
	uint64_t at = guest->task[task], mm;
	uint32_t pid = (uint32_t)(FIRST_PID + n % (PID_MAX - FIRST_PID));

	memcpy(&mm, lm_ptr(&guest->lm, at + GF_MM, 8), 8);
	gf_put_task(&guest->lm, at, pid, pid, "worker", mm, 1000 + n, 0);
}

static void replay_second(uint64_t second, struct sample **kernel, struct sample **programs)
{
	static uint64_t renewed;

	for (unsigned int i = 0; i < RENEWED; i++, renewed++)
		renew((unsigned int)(renewed % CG_TASKS), renewed);
	for (unsigned int v = 0; v < MAX_VCPUS; v++) {
		uint64_t k = second * 7 + v * 17;
		struct sample *s = (v + second) % 2 ? kernel[k % STACKS] : programs[k % STACKS];

		put_at(v, s, (unsigned int)(k % STACKS % CG_TASKS),
		       (second + 1) * NSEC_PER_SEC + v * (NSEC_PER_SEC / MAX_VCPUS));
	}
}

int main(int argc, char **argv)
{
	static struct sample *programs[STACKS], *kernel[STACKS];
	const unsigned long hours = argc > 1 ? strtoul(argv[1], NULL, 10) : HOURS;
	double early = 0, now = 0;
	struct pipeline_stats stats;
	struct pipeline *p;
	struct sink *sink;
	unsigned int seed = 1;

	if (hours < 4 || hours > 1000) {
		fprintf(stderr, "usage: bench_consumer_day [HOURS], at least 4\n");
		return 2;
	}
	guest = cg_create(&vm.mem, &stack_top, &seed);
	for (unsigned int i = 0; i < STACKS; i++) {
		programs[i] = program_sample(&seed);
		cg_of_task(guest, programs[i], i % CG_TASKS);
		kernel[i] = kt_sample(&seed);
		cg_of_task(guest, kernel[i], i % CG_TASKS);
	}
	p = start(&sink, MAX_VCPUS, RING_BYTES);
	put(0, kernel[0]);
	wait_empty();
	for (uint64_t second = 0; second < hours * 3600; second++) {
		replay_second(second, kernel, programs);
		if ((second + 1) % 3600)
			continue;
		wait_empty();
		give_back();
		now = rss_mib();
		early = (second + 1) / 3600 == hours / 4 ? now : early;
		printf("%3llu h: %.1f MiB\n", (unsigned long long)(second + 1) / 3600, now);
		fflush(stdout);
	}
	stats = finish(p, sink);
	printf("%llu samples, %llu tasks, %llu ended; mappings read %llu times; last hour: %.3f "
	       "times hour "
	       "%lu\n",
	       (unsigned long long)stats.samples, (unsigned long long)stats.guest.tasks.seen,
	       (unsigned long long)stats.guest.tasks.exits,
	       (unsigned long long)stats.guest.maps.reads, now / early, hours / 4);
	return now / early > MOST;
}
