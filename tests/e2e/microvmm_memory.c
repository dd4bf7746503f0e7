/* SPDX-License-Identifier: GPL-2.0-or-later */
/* microvmm_memory: the guest's memory, what is loaded into it, and the server of its pages (microvmm.h). */
#include "tests/e2e/microvmm.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)
#define MEMORY_MAP 0x6100u
#define COMMAND_LINE 0x7000u
#define MAX_REFUSED 1024u
#define PVH_MAGIC 0x336ec578u
#define PVH_NOTE 18u
#define LOW_END UINT64_C(0x9fc00)
#define HIGH_START UINT64_C(0x100000)

static const struct memory_config *config;
static struct memory guest;
static uint8_t *copy;
static int uffd = -1, file_fd = -1;

static uint64_t bytes(void)
{
	return (uint64_t)config->mib << 20;
}

/* -- the guest ------------------------------------------------------------------------------- */

static void load_note(const uint8_t *note, const uint8_t *end)
{
	while (note + sizeof(Elf64_Nhdr) <= end) {
		const Elf64_Nhdr *h = (const void *)note;
		const uint8_t *text = note + sizeof(*h), *value = text + ((h->n_namesz + 3) & ~3u);

		if (h->n_type == PVH_NOTE && !memcmp(text, "Xen", 4))
			memcpy(&guest.entry, value, sizeof(guest.entry));
		note = value + ((h->n_descsz + 3) & ~3u);
	}
}

static void load_boot_information(uint8_t *to)
{
	struct {
		uint32_t magic, version, flags, nmodules;
		uint64_t modules, command_line, rsdp, map;
		uint32_t nmap, reserved;
	} info = { .magic = PVH_MAGIC,
		   .version = 1,
		   .command_line = COMMAND_LINE,
		   .map = MEMORY_MAP,
		   .nmap = 2 };
	struct {
		uint64_t at, size;
		uint32_t type, reserved;
	} map[2] = { { .size = LOW_END, .type = 1 },
		     { .at = HIGH_START, .size = bytes() - HIGH_START, .type = 1 } };

	memcpy(to + START_INFO, &info, sizeof(info));
	memcpy(to + MEMORY_MAP, map, sizeof(map));
	strcpy((char *)to + COMMAND_LINE, config->append);
}

static void load(uint8_t *to)
{
	static uint8_t *file;
	static struct stat st;
	const Elf64_Ehdr *e;

	if (!file) {
		int fd = open(config->kernel, O_RDONLY | O_CLOEXEC);

		NEED(fd >= 0 && !fstat(fd, &st), config->kernel);
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		NEED(file != MAP_FAILED, config->kernel);
		close(fd);
	}
	e = (const void *)file;
	for (unsigned int i = 0; i < e->e_phnum; i++) {
		const Elf64_Phdr *p = (const void *)(file + e->e_phoff + i * e->e_phentsize);

		if (p->p_type == PT_LOAD) {
			memcpy(to + p->p_paddr, file + p->p_offset, p->p_filesz);
			memset(to + p->p_paddr + p->p_filesz, 0, p->p_memsz - p->p_filesz);
		}
		if (p->p_type == PT_NOTE)
			load_note(file + p->p_offset, file + p->p_offset + p->p_filesz);
	}
	load_boot_information(to);
	NEED(guest.entry, "no PVH entry");
}

/* -- memory, and the page server ---------------------------------------------------------------- */

/* Returns whether a thread of another process, or of the kernel, asked for a page. */
static bool is_of_others(pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d", (int)tid);
	return access(path, F_OK) < 0;
}

static bool is_of_kernel(pid_t tid)
{
	char path[64], link[8];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)tid);
	return readlink(path, link, sizeof(link)) < 0;
}

static void serve(uint64_t address)
{
	uint64_t off = (address & ~(PAGE - 1)) - (uint64_t)(uintptr_t)guest.ram;
	struct uffdio_copy c = { .dst = (uint64_t)(uintptr_t)guest.ram + off,
				 .src = (uint64_t)(uintptr_t)copy + off,
				 .len = PAGE };

	if (atomic_load(&guest.slow_us))
		usleep(atomic_load(&guest.slow_us));
	if (!ioctl(uffd, UFFDIO_COPY, &c))
		atomic_fetch_add(&guest.served, 1);
}

static uint64_t read_request(void)
{
	struct pollfd p = { .fd = uffd, .events = POLLIN };
	struct uffd_msg m;
	pid_t tid;

	if (poll(&p, 1, 1) <= 0 || read(uffd, &m, sizeof(m)) != sizeof(m) ||
	    m.event != UFFD_EVENT_PAGEFAULT)
		return 0;
	tid = (pid_t)m.arg.pagefault.feat.ptid;
	if (is_of_others(tid) && !is_of_kernel(tid))
		atomic_fetch_add(&guest.asked_by_others, 1);
	return m.arg.pagefault.address;
}

static void *server_main(void *arg)
{
	static uint64_t refused[MAX_REFUSED];
	unsigned int n = 0;

	(void)arg;
	prctl(PR_SET_NAME, "page_server");
	for (;;) {
		uint64_t address = read_request();

		if (atomic_load(&guest.dead)) {
			if (address && n < MAX_REFUSED) {
				refused[n++] = address;
				atomic_fetch_add(&guest.refused, 1);
			}
			continue;
		}
		while (n)
			serve(refused[--n]);
		if (address)
			serve(address);
	}
	return NULL;
}

/* Changes the protection of the copy: kvmprof does not take a read-only mapping for the guest's memory. */
static void protect_copy(int protection)
{
	NEED(!mprotect(copy, bytes(), protection), "mprotect");
}

/* Opens the memory of the snapshot. */
static int open_snapshot(void)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/memory", config->restore);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	NEED(fd >= 0, path);
	return fd;
}

void memory_save(const char *directory)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/memory", directory);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	NEED(fd >= 0, path);
	for (uint64_t i = 0; i < bytes() / PAGE; i++)
		NEED(pwrite(fd, guest.ram + i * PAGE, PAGE, (off_t)(i * PAGE)) == (ssize_t)PAGE,
		     path);
	close(fd);
}

static void make_served_memory(void)
{
	const int snapshot = config->restore ? open_snapshot() : -1;
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_THREAD_ID };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	pthread_t server;

	copy = mmap(NULL, bytes(), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | (snapshot < 0 ? MAP_ANONYMOUS : 0) | MAP_NORESERVE, snapshot, 0);
	NEED(copy != MAP_FAILED, "memory");
	if (snapshot < 0)
		load(copy);
	protect_copy(PROT_READ);
	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	NEED(uffd >= 0 && !ioctl(uffd, UFFDIO_API, &api), "userfaultfd");
	area.range.start = (uint64_t)(uintptr_t)guest.ram;
	area.range.len = bytes();
	NEED(!ioctl(uffd, UFFDIO_REGISTER, &area), "UFFDIO_REGISTER");
	NEED(!pthread_create(&server, NULL, server_main, NULL), "page server");
}

static void write_page(uint64_t i, const uint8_t *from)
{
	NEED(pwrite(file_fd, from, PAGE, (off_t)(i * PAGE)) == (ssize_t)PAGE, "the memory's file");
}

/* A snapshot's file, with what is loaded in it; none of it is in this host's memory. */
static int make_file(void)
{
	uint8_t *image = mmap(NULL, bytes(), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	static const uint8_t zero[PAGE];

	NEED(image != MAP_FAILED, "memory");
	load(image);
	file_fd = open(config->kind, O_RDWR | O_CLOEXEC);
	NEED(file_fd >= 0, config->kind);
	for (uint64_t i = 0; i < bytes() / PAGE; i++)
		if (memcmp(image + i * PAGE, zero, PAGE))
			write_page(i, image + i * PAGE);
	munmap(image, bytes());
	NEED(!posix_fadvise(file_fd, 0, 0, POSIX_FADV_DONTNEED), "posix_fadvise");
	return file_fd;
}

struct memory *memory_make(const struct memory_config *cfg)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;

	config = cfg;
	if (!strcmp(config->kind, "memfd")) {
		fd = memfd_create("guest_mem", MFD_CLOEXEC);
		NEED(fd >= 0 && !ftruncate(fd, (off_t)bytes()), "memfd");
		flags = MAP_SHARED;
	} else if (strchr(config->kind, '/')) {
		fd = make_file();
		flags = MAP_PRIVATE;
	} else if (config->restore && strcmp(config->kind, "uffd") != 0) {
		fd = open_snapshot();
		flags = MAP_PRIVATE;
	}
	guest.ram = mmap(NULL, bytes(), PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);
	NEED(guest.ram != MAP_FAILED, "memory");
	if (!strcmp(config->kind, "uffd"))
		make_served_memory();
	else if (config->restore)
		return &guest;
	else if (file_fd < 0)
		load(guest.ram);
	else /* page by page, as they are needed */
		NEED(!madvise(guest.ram, bytes(), MADV_RANDOM), "madvise");
	return &guest;
}

void memory_reload(void)
{
	load(guest.ram);
}

/* Pages that are absent are in the copy, or in the file, as they are; so are the file's own pages. */
static void copy_present(void)
{
	const uint64_t first = (uint64_t)(uintptr_t)guest.ram / PAGE;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	NEED(fd >= 0, "pagemap");
	for (uint64_t i = 0; i < bytes() / PAGE; i++) {
		uint64_t entry = 0;

		NEED(pread(fd, &entry, sizeof(entry), (off_t)((first + i) * sizeof(entry))) ==
			     sizeof(entry),
		     "pagemap");
		if (entry >> 63 && copy)
			memcpy(copy + i * PAGE, guest.ram + i * PAGE, PAGE);
		else if (entry >> 63 && !(entry >> 61 & 1))
			write_page(i, guest.ram + i * PAGE);
	}
	close(fd);
}

bool memory_drop(void)
{
	if (!copy && file_fd < 0)
		return !madvise(guest.ram, bytes(), MADV_PAGEOUT);
	if (copy)
		protect_copy(PROT_READ | PROT_WRITE);
	copy_present();
	if (copy)
		protect_copy(PROT_READ);
	NEED(!madvise(guest.ram, bytes(), MADV_DONTNEED), "madvise");
	if (file_fd >= 0)
		NEED(!posix_fadvise(file_fd, 0, 0, POSIX_FADV_DONTNEED), "posix_fadvise");
	return true;
}
