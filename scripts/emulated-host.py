#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a shell script on an emulated host that has SVM or VMX, with kvmprof in its PATH.

    emulated-host.py [--vmx | --root] [--kernel SERIES] [--flavour full|rt] [--no-modules] [--kvmprof FILE] [--program FILE]... [--file PATH=FILE]...
                     [--qemu FILE] [--out DIR] [--progress FILE] [--memory MIB] [--limit SECONDS] [--keep DIR] SCRIPT

So what kvmprof does under kvm_amd and kvm_intel can be tried where neither exists. The host
is Debian's cloud kernel with an initramfs: busybox, kvmprof, programs and their libraries.

* SVM: QEMU's TCG with one CPU that counts instructions (-icount): an instruction takes 2 ns
  of virtual time, whatever else this machine does, so that a run repeats exactly.
* VMX (--vmx): Bochs. Slow: 0.3 of a real CPU's thousand million instructions a second at best.
* --root: SVM, and this machine's own files below / (over 9P; what is written there is lost),
  so that all that runs here runs there. For SCRIPT it is this machine's sh then.

--kernel: Debian's of this series, such as 6.12; --flavour: not the cloud kernel; --no-modules: without KVM. SCRIPT is for busybox's sh; - reads it from stdin. What it prints on stdout and stderr comes
on stdout, once it has ended; its status is the status. What it leaves in /out is copied to
--out. What it writes to /dev/ttyS2 is in --progress at once (SVM only). Status 125: the host did not come to the end of it; then its console is on stderr.
--limit is for the script, in the host's own seconds. --keep leaves the host's files in DIR.
--prepare only fetches what is missing, and prints which QEMU will be used; --qemu takes another.

Debian's packages are unpacked in the cache of fetch-debian-kernel.sh; nothing is installed.
"""

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FAILED = 125
MODULES = ("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
           "netfs", "fscache", "9pnet", "9pnet_virtio", "9p", "overlay",
           "irqbypass", "rng-core", "ccp", "kvm", "kvm-amd", "kvm-intel")

# The result is a packed tar archive on the second serial line; status is its last member, so that
# half of an archive is not taken for a whole.
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root TERM=dumb
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /root /out /result
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
for m in %(modules)s; do
	case $m in
	kvm-amd) grep -qw svm /proc/cpuinfo || continue ;;
	kvm-intel) grep -qw vmx /proc/cpuinfo || continue ;;
	esac
	[ ! -e /modules/$m.ko ] || insmod /modules/$m.ko
done
%(job)s
echo $? >/result/status
stty raw -F /dev/ttyS1
tar -c -C / out result/output result/status | gzip >/dev/ttyS1
sleep 1
poweroff -f
"""


PLAIN = """cd /tmp
timeout -s KILL %(limit)d sh /job >/result/output 2>&1 </dev/null"""

OVER_9P = """mkdir -p /below /above /root9
mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=524288,ro root /below
mount -t tmpfs tmpfs /above
mkdir /above/upper /above/work
mount -t overlay -o lowerdir=/below,upperdir=/above/upper,workdir=/above/work root /root9
mkdir -p /root9/out
for d in proc sys dev tmp out; do
	mount --rbind /$d /root9/$d
done
cp /job /tmp/job
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
timeout -s KILL %(limit)d chroot /root9 /bin/sh /tmp/job >/result/output 2>&1 </dev/null"""


class HostError(Exception):
    pass


def fetched_kernel(wanted, *options):
    """(vmlinuz, directory of modules, which --host fetches) of Debian's kernel of this series, else of what apt has here."""
    said = ""
    for series in (wanted,) if wanted else ("6.1", "6.12"):
        p = subprocess.run([os.path.join(TOP, "scripts", "fetch-debian-kernel.sh"),
                            *options, series],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        if p.returncode == 0:
            d = p.stdout.strip()
            name = next(f for f in sorted(os.listdir(d)) if f.startswith("vmlinuz-"))
            return os.path.join(d, name), os.path.join(d, "host")
        said = said or p.stderr.strip().split("\n")[-1]
    raise HostError(said)


def libraries(program):
    """Path on this host by path on the emulated one; nothing for a static program."""
    p = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       universal_newlines=True)
    found = {}
    for line in p.stdout.split("\n"):
        m = re.match(r"\s*(?:\S+ => )?(/\S+) \(0x", line)
        if m:
            found[m[1]] = os.path.realpath(m[1])
        elif "not found" in line:
            raise HostError("%s: %s" % (program, line.strip()))
    return found


def initramfs(args, job, modules, directory):
    files = {"job": job, "bin/busybox": shutil.which("busybox")}
    if not files["bin/busybox"] or libraries(files["bin/busybox"]):
        raise HostError("no static busybox: install busybox-static")
    for name in MODULES:
        path = os.path.join(modules, name + ".ko")
        if os.path.exists(path):
            files["modules/%s.ko" % name] = path
    for program in [] if args.root else [args.kvmprof] + args.program:
        files["bin/" + os.path.basename(program)] = program
        files.update(libraries(program))
    for pair in args.file:
        path, _, source = pair.partition("=")
        if not source:
            raise HostError("--file %s: expected PATH=FILE" % pair)
        files[path] = source
    init = os.path.join(directory, "init")
    with open(init, "w") as f:
        f.write(INIT % {"modules": " ".join(MODULES),
                        "job": (OVER_9P if args.root else PLAIN) % {"limit": args.limit}})
    out = os.path.join(directory, "initramfs")
    subprocess.run([sys.executable, os.path.join(TOP, "scripts", "mkinitramfs.py"), init, out] +
                   ["%s=%s" % pair for pair in files.items()], check=True)
    return out


# tsc=reliable: else the kernel, whose CPU has no constant TSC, turns to the HPET.
CMDLINE = "console=ttyS0,115200 tsc=reliable mitigations=off nokaslr panic=-1 quiet"


def qemu():
    """Debian 13's, the same on every system; where it cannot be had, this system's."""
    p = subprocess.run([os.path.join(TOP, "scripts", "fetch-qemu.sh")], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, universal_newlines=True)
    if p.returncode == 0:
        return os.path.join(p.stdout.strip(), "bin", "qemu-system-x86_64")
    found = shutil.which("qemu-system-x86_64")
    if not found:
        raise HostError("%s, and qemu-system-x86_64 is not installed: install qemu-system-x86"
                        % p.stderr.strip().split("\n")[-1])
    return found


# TCG lets an SVM guest's XSETBV through, which KVM wants to be told of: the guest would save
# and see the size of less than it has enabled. Without XSAVE, and AVX, it saves its registers by FXSAVE.
CPU = "max,-xsave,-avx,-avx2,-f16c,-fma,-vaes,-vpclmulqdq"


def run_qemu(args, kernel, initrd, directory):
    # With sleep=off an idle CPU's time jumps to its next timer. Over 9P it idles for this
    # machine's files, and hours would pass while a program is read.
    icount = "shift=1,sleep=" + ("on" if args.root else "off")
    # All that QEMU would ask this machine for is fixed, so that a run repeats: the time (the
    # count of instructions), the date, random numbers (-seed).
    argv = [args.qemu or qemu(), "-accel", "tcg,thread=single", "-icount", icount, "-seed", "1",
            "-rtc", "base=2024-01-01,clock=vm", "-machine", "q35", "-cpu", CPU, "-smp", "1",
            "-m", "%dM" % args.memory, "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-serial", "file:" + os.path.join(directory, "console"),
            "-serial", "file:" + os.path.join(directory, "result"),
            "-kernel", kernel, "-initrd", initrd, "-append", CMDLINE]
    if args.progress:
        argv += ["-serial", "file:" + args.progress]
    if args.root:
        argv += ["-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,"
                 "multidevs=remap"]
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120 + 20 * args.limit)


BOCHS_PACKAGES = ("bochs", "bochsbios", "vgabios", "libltdl7", "libsamplerate0", "syslinux")
# Of its processors with VMX the one whose clock is right. A debugger build: -rc has it go on.
# ALSA's sound, its default, ends it where there is no sound card.
BOCHSRC = """display_library: rfb, options="timeout=0"
cpu: model=corei7_haswell_4770, count=1, ips=300000000, reset_on_triple_fault=0, ignore_bad_msrs=1
memory: guest=%(memory)d, host=%(memory)d
romimage: file="%(root)s/usr/share/bochs/BIOS-bochs-latest"
vgaromimage: file="%(root)s/usr/share/vgabios/vgabios.bin"
ata0-master: type=disk, path="%(directory)s/disk", mode=flat
boot: disk
sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy
panic: action=fatal
error: action=ignore
info: action=ignore
com1: enabled=1, mode=file, dev=%(directory)s/console
com2: enabled=1, mode=file, dev=%(directory)s/result
clock: sync=none
log: %(directory)s/bochs.log
"""


def fetched_bochs():
    """The directory with its packages, unpacked."""
    p = subprocess.run(["apt-cache", "show", "--no-all-versions", "bochs"], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, universal_newlines=True)
    version = re.search(r"^Version: (\S+)$", p.stdout, re.M)
    if not version:
        raise HostError("apt knows no package bochs; try apt-get update")
    cache = os.environ.get("KVMPROF_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kvmprof")
    out = os.path.join(cache, "bochs-" + version[1].replace(":", "_"))
    if os.path.isdir(out):
        return out
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch.", dir=cache) as tmp:
        user = subprocess.check_output(["id", "-un"], universal_newlines=True).strip()
        p = subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=" + user, "download",
                            *BOCHS_PACKAGES], cwd=tmp, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, universal_newlines=True)
        if p.returncode:
            raise HostError("apt-get could not download bochs: " + p.stdout.strip().split("\n")[-1])
        root = os.path.join(tmp, "root")
        for name in sorted(os.listdir(tmp)):
            subprocess.run(["dpkg", "-x", os.path.join(tmp, name), root], check=True)
        os.chmod(root, 0o755)
        try:
            os.rename(root, out)
        except OSError:
            if not os.path.isdir(out):    # of two that race, the first one's stays
                raise
    return out


def bootable_disk(kernel, initrd, root, directory):
    disk = os.path.join(directory, "disk")
    config = os.path.join(directory, "syslinux.cfg")
    with open(config, "w") as f:
        f.write("DEFAULT host\nLABEL host\nKERNEL vmlinuz\nAPPEND initrd=initramfs %s\n" % CMDLINE)
    with open(disk, "wb") as f:
        f.truncate(128 << 20)
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin", MTOOLS_SKIP_CHECK="1")
    for argv in (["mkfs.vfat", "-F", "16", disk],
                 [os.path.join(root, "usr/bin/syslinux"), "--install", disk],
                 ["mcopy", "-i", disk, kernel, "::vmlinuz"],
                 ["mcopy", "-i", disk, initrd, "::initramfs"],
                 ["mcopy", "-i", disk, config, "::syslinux.cfg"]):
        p = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if p.returncode:
            raise HostError("%s: %s" % (argv[0], p.stdout.decode(errors="replace").strip()))


def run_bochs(args, kernel, initrd, directory):
    root = fetched_bochs()
    bootable_disk(kernel, initrd, root, directory)
    with open(os.path.join(directory, "bochsrc"), "w") as f:
        f.write(BOCHSRC % {"memory": args.memory, "root": root, "directory": directory})
    with open(os.path.join(directory, "go"), "w") as f:
        f.write("c\n")
    library = os.path.join(root, "usr/lib/x86_64-linux-gnu")
    env = dict(os.environ, LTDL_LIBRARY_PATH=os.path.join(library, "bochs/plugins"),
               LD_LIBRARY_PATH=library, BXSHARE=os.path.join(root, "usr/share/bochs"))
    return subprocess.run([os.path.join(root, "usr/bin/bochs-bin"), "-q",
                           "-rc", os.path.join(directory, "go"),
                           "-f", os.path.join(directory, "bochsrc")],
                          env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=600 + 60 * args.limit)


def unpack(args, path):
    """Prints the output; returns the status."""
    try:
        with open(path, "rb") as f:
            archive = tarfile.open(fileobj=io.BytesIO(f.read()))
        status = int(archive.extractfile("result/status").read())
    except (OSError, KeyError, ValueError, tarfile.TarError) as e:
        raise HostError("the host did not come to its end: %s" % e)
    if args.out:
        os.makedirs(args.out, exist_ok=True)
        members = [m for m in archive.getmembers() if m.name.startswith("out/")]
        for m in members:
            m.name = m.name[len("out/"):]
        archive.extractall(args.out, [m for m in members if m.name and ".." not in m.name])
    sys.stdout.buffer.write(archive.extractfile("result/output").read())
    sys.stdout.flush()
    return status


def run(args, directory):
    flavour = ["--full"] if args.root else ["--" + args.flavour] if args.flavour else []
    kernel, modules = fetched_kernel(args.kernel, *([] if args.no_modules else ["--host"]), *flavour)
    if args.prepare:
        if args.vmx:
            fetched_bochs()
        else:
            print(args.qemu or qemu())
        return 0
    job = os.path.join(directory, "job")
    with open(job, "wb") as f:
        if args.script == "-":
            f.write(sys.stdin.buffer.read())
        else:
            with open(args.script, "rb") as script:
                f.write(script.read())
    initrd = initramfs(args, job, modules, directory)
    try:
        p = (run_bochs if args.vmx else run_qemu)(args, kernel, initrd, directory)
        return unpack(args, os.path.join(directory, "result"))
    except (HostError, subprocess.TimeoutExpired) as e:
        console = os.path.join(directory, "console")
        if os.path.exists(console):
            with open(console, errors="replace") as f:
                sys.stderr.write(f.read())
        if isinstance(e, HostError):
            sys.stderr.write(p.stdout.decode(errors="replace"))
        raise HostError(str(e))


def main():
    parser = argparse.ArgumentParser(description="runs a script on an emulated host")
    parser.add_argument("--vmx", action="store_true")
    parser.add_argument("--root", action="store_true")
    parser.add_argument("--kernel")
    parser.add_argument("--flavour", choices=("full", "rt"))
    parser.add_argument("--no-modules", action="store_true")
    parser.add_argument("--kvmprof", default=os.path.join(TOP, "build", "kvmprof"))
    parser.add_argument("--program", action="append", default=[])
    parser.add_argument("--file", action="append", default=[])
    parser.add_argument("--out")
    parser.add_argument("--progress")
    parser.add_argument("--qemu")
    parser.add_argument("--memory", type=int, default=1024)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--keep")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("script")
    args = parser.parse_args()
    directory = args.keep or tempfile.mkdtemp(prefix="emulated-host.")
    os.makedirs(directory, exist_ok=True)
    try:
        return run(args, directory)
    except (HostError, OSError, subprocess.CalledProcessError) as e:
        sys.stderr.write("emulated-host: %s\n" % e)
        return FAILED
    finally:
        if not args.keep:
            shutil.rmtree(directory)


if __name__ == "__main__":
    sys.exit(main())
