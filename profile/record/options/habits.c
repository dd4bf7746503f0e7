/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/options/habits.h"

#define FIRMWARE "there is no firmware: kvmprof loads the kernel, also that of a disk image"
#define GDBSTUB "kvmprof has no gdbstub; --start-at and --mark-at stop at instructions"
#define CONTROL "--control PATH listens for `kvmprof ctl`"
#define DELAY "--delay SECONDS begins to sample later"
#define NAMES "--symbols FILE has the kernel's names, if its memory has none"
#define IMAGE_IS_A_WORD "the kernel needs no option: kvmprof run KERNEL"
#define VCPUS "--vcpus N is the number of vCPUs"
#define DISK "--disk FILE adds a disk; a disk to boot from is a word: kvmprof run DISK"
#define CARD "--net user adds a network card"
#define SERIAL "the guest's serial port is this terminal; there are no graphics"
#define MACHINE "there is one kind of machine, with virtio devices and this host's processor"
#define ENGINE "KVM runs the guest; --engine exact emulates it and counts instructions"
#define ATTACH "`kvmprof attach PID` profiles a machine that runs already"
#define CHAINS "call chains are always recorded; `kvmprof report -g caller` shows them"
#define ALL_CPUS "all vCPUs are sampled; -C LIST selects some"
#define PERF_PERIOD "--freq HZ or --count N sets the period"
#define SHARE "--share DIR:PLACE shows a directory of this host in the guest"
#define EXEC "--exec COMMAND, or -- COMMAND ARG..., runs a command in the guest"
#define EXISTING                                                                                \
	"the machine is known by its PID: kvmprof attach PID; `kvmprof list --machines` lists " \
	"them"

const struct option_habit run_option_habits[] = {
	/* qemu-system-x86_64(1) */
	{ "-kernel", IMAGE_IS_A_WORD },
	{ "-bios", FIRMWARE },
	{ "-pflash", FIRMWARE },
	{ "-smp", VCPUS },
	{ "-cpu", MACHINE },
	{ "-machine", MACHINE },
	{ "-M", MACHINE },
	{ "-accel", ENGINE },
	{ "-enable-kvm", ENGINE },
	{ "-icount", "--engine exact counts instructions" },
	{ "-hda", DISK },
	{ "-hdb", DISK },
	{ "-cdrom", DISK },
	{ "-drive", DISK },
	{ "-blockdev", DISK },
	{ "-snapshot", "disk images are not changed, unless --writable is given" },
	{ "-loadvm", "--snapshot FILE restores a machine that kvmprof saved" },
	{ "-nic", CARD },
	{ "-netdev", CARD },
	{ "-device", "--disk, --net, --rng, --share and --virtio-console add virtio devices" },
	{ "-virtfs", SHARE },
	{ "-fsdev", SHARE },
	{ "-nographic", SERIAL },
	{ "-display", SERIAL },
	{ "-vga", SERIAL },
	{ "-serial", SERIAL },
	{ "-monitor", CONTROL },
	{ "-qmp", CONTROL },
	{ "-no-reboot", "a reset ends the run, unless --reboot is given" },
	{ "-mem-path", "--hugepages SIZE backs the guest's memory by huge pages" },
	{ "-s", GDBSTUB },
	{ "-S", GDBSTUB },
	{ "-gdb", GDBSTUB },
	/* vng(1), virtme-run(1) */
	{ "--run", EXEC },
	{ "-r", IMAGE_IS_A_WORD },
	{ "--kimg", IMAGE_IS_A_WORD },
	{ "--kdir", "give the image itself: kvmprof run DIR/arch/x86/boot/bzImage" },
	{ "--script-sh", EXEC },
	{ "--script-exec", EXEC },
	{ "--cpus", VCPUS },
	{ "--smp", VCPUS },
	{ "--rw", SHARE },
	{ "--rwdir", SHARE },
	{ "--rodir", SHARE },
	{ "--pwd", "--cwd DIR is where the command starts" },
	{ "--network", CARD },
	{ "-a", ALL_CPUS },
	/* perf-record(1) */
	{ "--all-cpus", ALL_CPUS },
	{ "-p", ATTACH },
	{ "--pid", ATTACH },
	{ "-t", ATTACH },
	{ "-g", CHAINS },
	{ "--call-graph", CHAINS },
	{ "-k", "times are CLOCK_MONOTONIC" },
	{ "-D", DELAY },
	/* strace(1) */
	{ "-f", "all tasks of the guest are sampled" },
	{ "--interval", PERF_PERIOD },
	{ "--period", PERF_PERIOD },
	{ NULL, NULL },
};

const struct option_habit attach_option_habits[] = {
	/* perf-record(1), perf-kvm(1), gdb(1), strace(1) */
	{ "-p", EXISTING },
	{ "-t", EXISTING },
	{ "--guest", "attach always samples the guest; -e host adds the host's side" },
	{ "--host", "-e host samples the host's side" },
	{ "-a", ALL_CPUS },
	{ "-g", CHAINS },
	{ "--call-graph", CHAINS },
	{ "-f", "all threads that are vCPUs are sampled, also those that are added" },
	{ "-d", "--duration TIME ends the profile" },
	{ "-D", DELAY },
	{ "--guestkallsyms", NAMES },
	{ "--guestvmlinux", NAMES },
	{ "--guestmount", "--guest-root DIR has the guest's files" },
	{ "--interval", PERF_PERIOD },
	{ "--period", PERF_PERIOD },
	{ NULL, NULL },
};
