#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 60 s
# tests: slow, at most 1800 s: names
# tests: slow, at most 1800 s: statuses
# tests: slow, at most 1800 s: share
# tests: slow, at most 1800 s: disk
# tests: svm, at most 600 s
"""`kvmprof run --exec`: a command's files, output, status and functions; wrong usage.

    exec.py KVMPROF SCRATCH            a boot, statuses and a directory in short, what is refused before one
    exec.py KVMPROF SCRATCH names      the same boot of a kernel with BTF: the command's functions
    exec.py KVMPROF SCRATCH statuses   signals, 126, 127, init's failures, other ways to end
    exec.py KVMPROF SCRATCH share      directories of the host, by 9P
    exec.py KVMPROF SCRATCH disk       the files on an ext4 disk; a module
"""

import io
import json
import os
import re
import signal
import stat
import tarfile
import time

import e2e
from e2e import check, say

BUSYBOX = "/bin/busybox"
HOT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define hot __attribute__((noinline))
hot unsigned long hot_leaf(unsigned long n) { unsigned long x = 1; while (n--) x = x * 6364136223846793005ul + n; __asm__ volatile("" : "+r"(x)); return x; }
hot unsigned long hot_middle(unsigned long n) { unsigned long x = hot_leaf(n); __asm__ volatile("" : "+r"(x)); return x + 1; }
int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	unsigned long x = 0;
	while (time(NULL) < end) x += hot_middle(3000000);
	char *more = getenv("MORE"), dir[256];
	printf("hot %s %s %d\n", more ? more : "-", getcwd(dir, sizeof(dir)) ? dir : "-", x == 7);
	return 7;
}
"""


def build(name, *flags):
    with open("hot.c", "w") as f:
        f.write(HOT)
    p = e2e.run("gcc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", *flags, "-o", name, "hot.c")
    if p.status:
        e2e.skip("no C compiler for the program: " + p.err[-200:])


def make_tar(path):
    """Busybox with a hard and a symbolic link to it, and files that only a tar of root could have."""
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as t:
        def add(name, kind=tarfile.REGTYPE, data=b"", **more):
            i = tarfile.TarInfo(name)
            i.type, i.size, i.mode = kind, len(data), 0o755
            for k, v in more.items():
                setattr(i, k, v)
            t.addfile(i, io.BytesIO(data))
        with open(BUSYBOX, "rb") as f:
            add("bin/busybox", data=f.read())
        add("bin/sh", tarfile.LNKTYPE, linkname="bin/busybox")
        add("bin/cat", tarfile.SYMTYPE, linkname="busybox")
        for tool in ("ls", "stat", "printf"):
            add("bin/" + tool, tarfile.SYMTYPE, linkname="busybox")
        with open("hot-static", "rb") as f:
            add("usr/bin/hot", data=f.read())
        add("etc/owned", data=b"x", uid=7, gid=8, mode=0o4640)
        add("odd", tarfile.CHRTYPE, devmajor=1, devminor=5)


def boot_and_look(variant):
    kernel = os.path.join(e2e.built_kernel(variant), "bzImage")
    build("hot-static", "-static")
    make_tar("root.tar.gz")
    # printf, since the console shall not touch a byte of it: CR, LF, ESC, NUL, 0xff.
    script = ("stat -c '%n %a %u %g' /etc/owned; stat -c '%i' /bin/sh > /a; stat -c '%i' /bin/busybox > /b;"
              " cat /a /b > /c; ls -l /odd /bin/cat /.kvmprof*; cat /proc/self/mounts;"
              " printf 'bytes\\r\\n\\033x\\000\\377end\\n';"
              " if [ \"$(cat /a)\" = \"$(cat /b)\" ]; then printf 'one inode\\n'; fi; cat; hot 2")
    start = time.monotonic()
    p = e2e.subprocess.run([e2e.KVMPROF, "run", kernel, "-m", "96M", "--rootfs", "root.tar.gz", "--env", "MORE=a b",
                            "--cwd", "/etc", "-F", "199", "-o", "exec.data", "--exec", script],
                           stdin=e2e.subprocess.DEVNULL, stdout=e2e.subprocess.PIPE,
                           stderr=e2e.subprocess.PIPE, timeout=600)
    out, err = p.stdout, p.stderr.decode(errors="replace")
    ok = check(p.returncode == 7, "status %d: %s" % (p.returncode, err))
    ok &= check("guest exit with status 7" in err, "the summary does not tell the status: " + err)
    for what in (b"/etc/owned 4640 7 8\n", b"one inode\n", b"bytes\r\n\x1bx\x00\xffend\n", b"hot a b /etc 0\n",
                 b"/bin/cat -> busybox", b"1,   5", b"/proc proc ", b"/dev devtmpfs "):
        ok &= check(what in out, "the output lacks %r" % what)
    ok &= check(b"kvmprof;" not in out, "our message is in the output")
    ok &= check(b"/.kvmprof" not in out.split(b"\n", 1)[0] and b"kvmprof-init" not in out, "our files are seen")
    ok &= check(out.startswith(b"/etc/owned"), "something comes before the command's output: %r" % out[:80])
    if not ok:
        say(out.decode(errors="replace"))
    s = e2e.summary("exec.data")
    check(s["command"] == script, "the command: %r" % s.get("command"))
    times = [s["command_%s_ns" % k] for k in ("real", "user", "system")]
    check(times[0] > 0 and times[1] + times[2] <= times[0] + 2 * 10**7 and times[0] < s["run_seconds"] * 1e9, "times: %s" % times)
    check(re.search(r"the command took, of the guest's time: real \d+m\d+\.\d{3}s, user \d+m", err), "no times: " + err)
    check(s["guest_exit_status"] == 7, "guest_exit_status is %r" % s["guest_exit_status"])
    # Without type information there may be no names for so short a program.
    if variant != "full":
        return time.monotonic() - start
    p = e2e.kvmprof("report", "--json", "-n", "0", "-i", "exec.data", "--comm", "hot")
    rows = {r["symbol"]: r for r in json.loads(p.out)["symbols"]} if p.status == 0 else {}
    check("hot_leaf" in rows and "hot_middle" in rows, "the command's functions are not in the profile: %s %s"
          % (sorted(rows)[:20], p.err))
    return time.monotonic() - start


def refused(what, *argv, status=1, **kw):
    p = e2e.kvmprof("run", *argv, **kw)
    lines = [x for x in p.err.split("\n") if x]
    check(p.status == status and len(lines) == 1 and what in p.err,
          "run %s: status %d, %r; expected %r" % (" ".join(argv), p.status, p.err[-300:], what))


def bad_input():
    tiny = os.path.join(e2e.built_kernel("tiny"), "bzImage")
    os.makedirs("empty", exist_ok=True)
    os.makedirs("big/bin", exist_ok=True)
    os.makedirs("noshell/bin", exist_ok=True)
    with open("big/data", "wb") as f:
        f.truncate(300 << 20)
    with open("noshell/bin/x", "w") as f:
        f.write("x")
    with open("text", "w") as f:
        f.write("this is not an archive, though it is long enough to be looked at\n" * 10)
    refused("No such file", tiny, "--rootfs", "nowhere", "--exec", "x")
    refused("nor a tar or cpio archive", tiny, "--rootfs", "text", "--exec", "x")
    refused("it is empty", tiny, "--rootfs", "empty", "--exec", "x")
    refused("needs a shell", tiny, "--rootfs", "noshell", "--exec", "a | b")
    refused("a quotation does not end", tiny, "--rootfs", "noshell", "--exec", "'a")
    refused("say with --exec", tiny, "--rootfs", "noshell")
    refused("give -m ", tiny, "--rootfs", "big", "--exec", "x", "-m", "128M")
    refused("not found in PATH", tiny, "--exec", "no-such-program-here")
    refused("may not be executed", tiny, "--exec", "./text")
    refused("needs a shell", tiny, "--exec", "cat *")
    refused("not a Linux kernel", os.path.join(e2e.BUILD, "guest", "demo.elf"), "--exec", "true")
    refused("need a Linux kernel as IMAGE", "--exec", "true", status=2)
    refused("two commands", tiny, "--exec", "true", "--", "true", status=2)
    refused("--initrd", tiny, "--exec", "true", "--initrd", "x", status=2)
    refused("NAME=VALUE", tiny, "--exec", "true", "--env", "x", status=2)
    refused("absolute path", tiny, "--exec", "true", "--cwd", "x", status=2)
    refused("--modules DIR", tiny, "--exec", "true", "--modprobe", "x", status=2)
    refused("initramfs or ext4", tiny, "--rootfs-as", "x", status=2)
    refused("No such file", tiny, "--exec", "true", "--modules", "nowhere")
    refused("neither lib/modules", tiny, "--exec", "true", "--modules", "empty")
    refused("No such file", tiny, "--exec", "true", "--share", "nowhere")
    refused("not a directory", tiny, "--exec", "true", "--share", "text")
    check(not e2e.leftovers(), "files are left: %s" % e2e.leftovers())


def end_with(status, *argv, err="", **kw):
    tiny = os.path.join(e2e.built_kernel("tiny"), "bzImage")
    p = e2e.kvmprof("run", tiny, "-m", "64M", "-F", "97", "-o", "status.data", *argv, timeout=600, **kw)
    check(p.status == status, "%s: status %d, expected %d: %s%s" % (argv, p.status, status, p.out, p.err))
    check(err in p.err + p.out, "%s: no %r in %r" % (argv, err, p.out + p.err))


def ends():
    """The short form of statuses(): one boot, of a command that a signal ends."""
    make_shell()
    end_with(128 + 11, "--rootfs", "shell", "--exec", "kill -SEGV $$")


def share_processes(pid):
    """Of a run: the process of each share, by the share's directory, once it has only what it shall have."""
    out = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, tid)) as f:
            children = f.read().split()
        for child in children:
            with open("/proc/%s/status" % child) as f:
                s = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
            if s["Name"] == "keeper":
                continue
            fds = {fd: os.readlink("/proc/%s/fd/%s" % (child, fd)) for fd in os.listdir("/proc/%s/fd" % child)}
            at = [path for fd, path in fds.items() if os.path.isdir(path)]
            # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER: below the share, as root has them.
            check(s["Name"] == "9p-files" and s["Seccomp"] == "2" and s["NoNewPrivs"] == "1" and
                  int(s["CapPrm"], 16) & ~14 == 0, "the process of a share: %s" % s)
            check(not any(word in path for path in fds.values() for word in ("kvm", "perf", "memfd")),
                  "the process of a share has %s" % fds)
            # Its root is the share, and to others it is "/" where it has a mount namespace.
            root = os.stat("/proc/%s/root" % child)
            shares = [os.path.realpath(d) for d in ("rw", "ro") if os.path.samestat(os.stat(d), root)]
            out[(shares or [min(at, key=len)])[0]] = int(child)
    return out


def confined():
    """The short form of share(): a directory of the host, and what stands outside of it, also by links; and the
    process that has it, which ends in the middle."""
    make_files()
    virtio = os.path.join(e2e.built_kernel("smp-fp"), "bzImage")
    script = ("busybox cat in conf/conf; echo new > conf/new; echo ro $?; busybox cat out-of-here; busybox cat ../secret;"
              " busybox cat etc; echo shared; while busybox cat conf/conf; do :; done; echo from-the-guest > sub/out; exit 5")
    boot = e2e.Boot(virtio, "-m", "128M", "-F", "97", "-o", "share.data", "--share", "rw:/data",
                    "--share", "ro:/data/conf,ro", "--cwd", "/data", "--", "busybox", "sh", "-c", script)
    if check(boot.wait_for("shared", 600), "the guest does not come so far"):
        processes = share_processes(boot.process.pid)
        here = {os.path.realpath(d) for d in ("rw", "ro")}
        check(here <= set(processes), "processes of shares: %s" % processes)
        for fd in os.listdir("/proc/%d/fd" % boot.process.pid):
            path = os.readlink("/proc/%d/fd/%s" % (boot.process.pid, fd))
            check(path not in here, "the run itself has %s open" % path)
        os.kill(processes[os.path.realpath("ro")], signal.SIGKILL)
    boot.wait(600)
    out = boot.text() + "\n"
    ok = check(boot.status == 5, "status %d: %s" % (boot.status, boot.err))
    for what in ("from the host\n", "read me\n", "ro 1\n"):
        ok &= check(what in out, "the output lacks %r" % what)
    ok &= check("not for the guest" not in out and "root:" not in out, "the guest has left its directory")
    ok &= check(boot.err.count("its process was ended by signal 9; the guest cannot reach its files any more") == 1,
                "the end of a share's process is not told once: " + boot.err)
    if not ok:
        say(out + boot.err)
    with open("rw/sub/out") as f:
        check(f.read() == "from-the-guest\n" and not os.path.exists("ro/new"), "what was written, and what was not")


# -- slow ------------------------------------------------------------------------------

def make_shell():
    os.makedirs("shell/bin", exist_ok=True)
    e2e.shutil.copy(BUSYBOX, "shell/bin/busybox")
    if not os.path.lexists("shell/bin/sh"):
        os.symlink("busybox", "shell/bin/sh")


def statuses():
    build("hot-dynamic")
    make_shell()
    # A program of this host, with its libraries.
    end_with(7, "--", "./hot-dynamic", "1", err="hot - " + os.getcwd())
    names = e2e.kvmprof("report", "-n", "0", "-i", "status.data", "--comm", "hot-dynamic").out
    check("hot_leaf" in names, "the program's functions are not in the profile: " + names[:500])
    end_with(128 + 11, "--rootfs", "shell", "--exec", "kill -SEGV $$")
    end_with(127, "--rootfs", "shell", "--", "no-such-command", "x", err="not found in the guest")
    end_with(126, "--rootfs", "shell", "--", "/bin", err="may not be executed")
    end_with(127, "--rootfs", "shell", "--exec", "no-such-command")
    end_with(124, "--rootfs", "shell", "--exec", "while :; do :; done", "--duration", "20")
    end_with(1, "--rootfs", "shell", "--exec", "echo b > /proc/sysrq-trigger; exec /bin/busybox reboot -f",
             err="before the command did")
    end_with(1, "--rootfs", "shell", "--share", ".", "--exec", "true", err="the guest says: cannot mount")
    # Its output can't stand for our message.
    end_with(3, "--rootfs", "shell", "--exec",
             "printf '\\033_kvmprof;00112233445566778899aabbccddeeff;exit;0\\033\\\\'; exit 3")


def make_files():
    os.makedirs("rw/sub", exist_ok=True)
    os.makedirs("rw/conf", exist_ok=True)
    os.makedirs("ro", exist_ok=True)
    for path, text in (("rw/in", "from the host\n"), ("ro/conf", "read me\n"), ("secret", "not for the guest\n")):
        with open(path, "w") as f:
            f.write(text)
    for link, to in (("rw/out-of-here", "../secret"), ("rw/etc", "/etc/passwd")):
        if not os.path.lexists(link):
            os.symlink(to, link)


def share():
    make_files()
    virtio = os.path.join(e2e.built_kernel("smp-fp"), "bzImage")
    script = ("cat in /mnt/conf/conf; busybox ls -la; echo new > /mnt/conf/new; echo ro $?;"
              " echo from-the-guest > sub/out; busybox mv sub/out moved; busybox mkdir d; busybox ln -s moved d/l;"
              " busybox dd if=/dev/zero of=big bs=1000 count=1000 2>/dev/null; busybox wc -c big;"
              " busybox md5sum big; busybox chmod 600 moved; busybox rm in; cat out-of-here; cat ../secret;"
              " busybox find . | busybox sort; exit 5")
    p = e2e.kvmprof("run", virtio, "-m", "128M", "-F", "97", "-o", "share.data", "--share", "rw:/data", "--share", "ro:conf,ro",
                    "--cwd", "/data", "--", "busybox", "sh", "-c", script.replace("cat ", "busybox cat "),
                    timeout=1200)
    ok = check(p.status == 5, "status %d: %s" % (p.status, p.err))
    for what in ("from the host\n", "read me\n", "ro 1\n", "1000000 big", "./d/l\n"):
        ok &= check(what in p.out, "the output lacks %r" % what)
    ok &= check("not for the guest" not in p.out and "root:" not in p.out, "the guest has left its directory")
    if not ok:
        say(p.out + p.err)
    for path, text in (("rw/moved", "from-the-guest\n"), ("secret", "not for the guest\n"), ("ro/conf", "read me\n")):
        with open(path) as f:
            check(f.read() == text, path + " is not what it should be")
    check(stat.S_IMODE(os.stat("rw/moved").st_mode) == 0o600, "chmod did not come through")
    check(os.path.getsize("rw/big") == 1000000, "rw/big is short")
    check(os.readlink("rw/d/l") == "moved" and not os.path.exists("rw/in") and not os.path.exists("ro/new"),
          "what was made and removed is not so on the host")


def disk():
    e2e.need_tool("mke2fs")
    d = e2e.built_kernel("smp-fp")
    os.makedirs("disk/bin", exist_ok=True)
    e2e.shutil.copy(BUSYBOX, "disk/bin/busybox")
    if not os.path.lexists("disk/bin/sh"):
        os.symlink("busybox", "disk/bin/sh")
    with open("disk/a file", "w") as f:
        f.write("of the disk\n")
    os.environ["TMPDIR"] = os.getcwd()
    p = e2e.kvmprof("run", os.path.join(d, "bzImage"), "-m", "128M", "-F", "97", "-o", "disk.data", "--rootfs", "disk",
                    "--rootfs-as", "ext4", "--modules", os.path.join(d, "modules"), "--modprobe", "configfs", "--exec",
                    "busybox cat /proc/mounts '/a file'; echo new > /new && busybox cat /new;"
                    " busybox cat /proc/modules; exit 9", timeout=1200)
    ok = check(p.status == 9, "status %d: %s" % (p.status, p.err))
    for what in ("/dev/root / ext4 rw", "of the disk\n", "new\n", "configfs "):
        ok &= check(what in p.out or what.replace("/dev/root", "/dev/vda") in p.out, "the output lacks %r" % what)
    if not ok:
        say(p.out + p.err)
    check(not os.path.exists("disk/new"), "the directory has changed")
    check(not [f for f in os.listdir(".") if f.startswith("kvmprof-rootfs")], "the disk's file is left")


e2e.need_kvm()
if not os.path.exists(BUSYBOX):
    e2e.skip("busybox-static is not installed")
figures = ""
if e2e.EXTRA == ["statuses"]:
    statuses()
elif e2e.EXTRA == ["share"]:
    share()
elif e2e.EXTRA == ["disk"]:
    disk()
elif e2e.EXTRA == ["names"]:
    boot_and_look("full")
else:
    bad_input()
    ends()
    confined()
    figures = "%.1f s for a command in a fresh guest" % boot_and_look("tiny")
e2e.finish(figures)
