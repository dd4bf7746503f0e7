// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets up what programs expect: file systems, the console, modules, the loopback device. */
#include "exec.h"

#define MS_NOSUID 2
#define MS_NODEV 4
#define MS_RDONLY 1
#define MS_MOVE 8192
#define O_CLOEXEC 02000000
#define ENOENT 2
#define EEXIST 17
#define EBUSY 16
#define ENOSYS 38

#define TCGETS 0x5401
#define TCSETS 0x5402
#define OPOST 1u
#define ISIG 1u
#define ICANON 2u
#define ECHO 8u

#define AF_INET 2
#define SOCK_DGRAM 2
#define SIOCSIFFLAGS 0x8914
#define IFF_UP 1

static long do_mount(const char *what, const char *where, const char *type, long flags,
		     const char *options)
{
	return syscall6(NR_MOUNT, (long)what, (long)where, (long)type, flags, (long)options, 0);
}

static void mount_at(const char *type, const char *where, long flags, const char *options)
{
	syscall2(NR_MKDIR, where, 0755);
	do_mount(type, where, type, flags, options);
}

void mount_basics(void)
{
	mount_at("devtmpfs", "/dev", MS_NOSUID, NULL);
	mount_at("proc", "/proc", MS_NOSUID | MS_NODEV, NULL);
	mount_at("sysfs", "/sys", MS_NOSUID | MS_NODEV, NULL);
	mount_at("devpts", "/dev/pts", MS_NOSUID, NULL);
	mount_at("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
	mount_at("tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755");
	/* Does not hide files that the root file system has in /tmp. */
	if (syscall1(NR_RMDIR, "/tmp") == 0 || syscall2(NR_ACCESS, "/tmp", 0) == -ENOENT) {
		syscall2(NR_MKDIR, "/tmp", 01777);
		if (do_mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"))
			return;
	}
}

/* struct termios of the kernel (include/uapi/asm-generic/termbits.h) */
struct termios {
	unsigned int iflag, oflag, cflag, lflag;
	unsigned char line, cc[19];
};

void open_console(void)
{
	struct termios t;
	long fd = syscall3(NR_OPEN, "/dev/console", O_RDWR, 0);

	if (fd >= 0) {
		for (long i = 0; i < 3; i++)
			if (fd != i)
				syscall2(NR_DUP2, fd, i);
		if (fd > 2)
			syscall1(NR_CLOSE, fd);
	}
	/* Bytes are passed on unchanged, unless a user sits at a terminal. */
	if (!plan.interactive && syscall3(NR_IOCTL, 1, TCGETS, &t) == 0) {
		t.oflag &= ~OPOST;
		t.lflag &= ~(ISIG | ICANON | ECHO);
		syscall3(NR_IOCTL, 1, TCSETS, &t);
	}
}

/* Loads a module; finit_module() exists since Linux 3.8. */
void load_module(const char *path)
{
	long fd = syscall3(NR_OPEN, path, O_RDONLY | O_CLOEXEC, 0), r;

	if (fd < 0)
		end_failed("cannot open module ", path, fd);
	r = syscall3(NR_FINIT_MODULE, fd, "", 0);
	syscall1(NR_CLOSE, fd);
	if (r < 0 && r != -EEXIST)
		end_failed(r == -ENOSYS ? "this kernel loads no modules: "
					: "the kernel refuses module ",
			   path, r);
}

void switch_root(const char *device, const char *type)
{
	long r = -ENOENT;
	struct {
		long sec, nsec;
	} pause = { 0, 10000000 };

	syscall2(NR_MKDIR, "/.kvmprof-root", 0755);
	/* Its driver may still be probing. */
	for (int i = 0; i < 500 && r == -ENOENT; i++) {
		r = do_mount(device, "/.kvmprof-root", type, 0, NULL);
		if (r == -ENOENT)
			syscall2(NR_NANOSLEEP, &pause, 0);
	}
	if (r)
		end_failed("cannot mount the root file system: ", device, r);
	syscall1(NR_CHDIR, "/.kvmprof-root");
	r = do_mount(".", "/", NULL, MS_MOVE, NULL);
	r = r ? r : syscall1(NR_CHROOT, ".");
	r = r ? r : syscall1(NR_CHDIR, "/");
	if (r)
		end_failed("cannot change to the root file system on ", device, r);
}

static void make_directories(const char *where)
{
	char path[4096];
	ulong_t n = 0;

	for (; where[n] && n < sizeof(path) - 1; n++) {
		path[n] = 0;
		if (n && where[n] == '/')
			syscall2(NR_MKDIR, path, 0755);
		path[n] = where[n];
	}
	path[n] = 0;
	syscall2(NR_MKDIR, path, 0755);
}

void mount_share(const char *tag, const char *where, const char *options)
{
	int read_only = text_same(options, "ro");
	long r;

	make_directories(where);
	r = do_mount(tag, where, "9p", read_only ? MS_RDONLY : 0,
		     "trans=virtio,version=9p2000.L,cache=none,access=any,msize=262144");
	if (r)
		end_failed("cannot mount (the kernel needs 9P_FS and NET_9P_VIRTIO, and our "
			   "virtio transport) the share ",
			   tag, r);
}

void raise_loopback(void)
{
	/* struct ifreq: a name of 16 bytes, flags, 40 bytes in all */
	static struct {
		char name[16];
		short flags;
		char rest[22];
	} lo = { "lo", IFF_UP, "" };
	long fd = syscall3(NR_SOCKET, AF_INET, SOCK_DGRAM, 0);

	if (fd < 0)
		return;
	syscall3(NR_IOCTL, fd, SIOCSIFFLAGS, &lo);
	syscall1(NR_CLOSE, fd);
}
