#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 8 s
# tests: slow, at most 1800 s: linux
# tests: not svm, files
"""disk_formats.py KVMPROF SCRATCH [linux]: disk images that are not raw. A guest reads each format that qemu-img
and the compressors make and gets the same bytes, and no image is changed. Images that refer to other files, are
encrypted, truncated or damaged are refused by one line. The process that reads an image is confined, and does not
outlive its run. linux: a Linux mounts a file system in each format, reads and writes it; with the exact engine, too."""

import os
import re
import signal
import subprocess
import sys
import time

import blk_guest
import disk_fixture as disk
import disk_sums
import e2e
from e2e import check

# Nothing else puts files there.
os.environ["TMPDIR"] = os.path.abspath("tmp")
os.mkdir("tmp")
SECTORS = 4096


def img(*argv):
    disk.call("qemu-img", *argv)


def squeeze(tool, path, to):
    with open(to, "wb") as f:
        subprocess.run([tool, "-c", path], stdout=f, check=True)
    return to


def images(raw):
    """The same bytes in each format; the names say nothing of it."""
    made = []
    for name, options in (("qcow2", ["-O", "qcow2"]), ("qcow2-c", ["-c", "-O", "qcow2"]),
                          ("qcow2-old", ["-O", "qcow2", "-o", "compat=0.10"]), ("vmdk", ["-O", "vmdk"]),
                          ("stream", ["-O", "vmdk", "-o", "subformat=streamOptimized"]),
                          ("vdi", ["-O", "vdi"]), ("vhdx", ["-O", "vhdx"]), ("vpc", ["-O", "vpc", "-o", "force_size=on"])):
        img("convert", *options, raw, name)
        made.append(name)
    for tool in ("gzip", "xz", "zstd", "bzip2"):
        if e2e.has_tool(tool):
            made.append(squeeze(tool, raw, tool + ".d"))
    made.append(squeeze("gzip", "qcow2", "both"))
    return made


def blk(*options, **kw):
    return e2e.kvmprof("run", "--no-output", "--no-summary", "-m", "64M", "--append", "ms=1", *options, blk_guest.ELF, **kw)


def reads(total, what, *options):
    p = blk(*options)
    check(p.status == 0 and blk_guest.figures(p.out, total) is not None, "%s: %d %s %s" % (what, p.status, p.out, p.err))


def refused(what, options, *words):
    p = blk(*options)
    lines = p.err.strip().split("\n")
    check(p.status == 1 and len(lines) == 1 and all(w in p.err for w in words), "%s: %d %s" % (what, p.status, p.err))


def cut(path, to, part):
    with open(path, "rb") as f, open(to, "wb") as g:
        g.write(f.read(int(os.path.getsize(path) * part)))
    return to


def patched(path, to, at, data):
    with open(path, "rb") as f, open(to, "wb") as g:
        whole = f.read()
        g.write(whole[:at] + data + whole[at + len(data):])


def others(total):
    """A backing file is read only when that was said; what is below a raw file is not guessed."""
    img("create", "-q", "-f", "qcow2", "-b", "disk.img", "-F", "raw", "over")
    os.mkdir("sub")
    img("create", "-q", "-f", "qcow2", "-b", "../over", "-F", "qcow2", "sub/top")
    refused("backing", ["--disk", "sub/top"], "sub/top: ", "../over", "--backing")
    reads(total, "chain", "--disk", "sub/top,backing")
    reads(total, "chain, for all", "--backing", "--disk", "sub/top")
    with open("secret", "wb") as f:
        f.write(b"s" * 65536)
    secret = os.path.abspath("secret")
    img("create", "-q", "-f", "qcow2", "-b", secret, "-F", "raw", "evil", "2M")
    refused("another's file", ["--disk", "evil"], secret, "--backing")
    # The header of another format in a raw disk, which a guest may have written there.
    with open("raw-evil", "wb") as f, open("evil", "rb") as g:
        f.write(g.read(65536).ljust(SECTORS * 512, b"\0"))
    img("create", "-q", "-f", "qcow2", "-b", "raw-evil", "-F", "raw", "over-evil")
    p = blk("--disk", "over-evil,backing")
    check(p.status == 0 and "blk: " in p.out, "a header in a raw file: %d %s" % (p.status, p.err))
    p = blk("--disk", "raw-evil,format=raw")
    check(p.status == 0 and "blk: " in p.out, "format=raw: %d %s" % (p.status, p.err))
    refused("raw that looks like qcow2", ["--disk", "raw-evil"], "raw-evil: ")
    refused("another format", ["--disk", "vdi,format=qcow2"], "a vdi image, not the qcow2")
    img("create", "-q", "-f", "qcow2", "-o", "data_file=data.raw,data_file_raw=on", "outside", "2M")
    with open("disk.img", "rb") as f, open("data.raw", "r+b") as g:
        g.write(f.read())
    refused("data file", ["--disk", "outside"], "data.raw", "--backing")
    reads(total, "data file", "--disk", "outside,backing")


def damaged():
    # As `qemu-img create -o encrypt.format=luks` writes it, which takes seconds for its key.
    patched("qcow2", "luks", 32, b"\0\0\0\2")
    refused("encrypted", ["--disk", "luks"], "luks: ", "encrypted (LUKS)", "takes no keys")
    img("convert", "-O", "vmdk", "-o", "subformat=twoGbMaxExtentSparse", "disk.img", "split.vmdk")
    refused("several files", ["--disk", "split.vmdk"], "other files", "qemu-img convert")
    for name in ("qcow2", "vmdk", "vdi"):
        refused("most of " + name, ["--disk", cut(name, "cut", 0.6)], "cut: ", "truncated")
    for name in ("qcow2", "vmdk", "vdi", "vhdx", "vpc", "gzip.d", "both"):
        refused("little of " + name, ["--disk", cut(name, "cut", 0.02)], "cut: ")
    patched("qcow2", "bad", 40, b"\xff" * 8)
    refused("a bad table", ["--disk", "bad"], "bad: ", "damaged")
    open("empty.qcow2", "wb").close()
    refused("empty", ["--disk", "empty.qcow2"], "0 bytes")
    refused("writable", ["--disk", "qcow2,writable"], "only raw images are written")


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(x) for x in f.read().split()]


def field(pid, name):
    with open("/proc/%d/status" % pid) as f:
        return re.search(r"^%s:\s+(.*)$" % name, f.read(), re.M).group(1).split()


def gone(pid):
    for _ in range(100):
        try:
            if field(pid, "State")[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def start():
    """A run whose guest reads for long, the helper's process, and qemu-nbd's."""
    p = subprocess.Popen([e2e.KVMPROF, "run", "--no-output", "-m", "64M", "--append", "ms=100000", "--disk", "qcow2",
                          blk_guest.ELF], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    for line in p.stdout:
        if "blk: sum" in line:
            break
    for helper in children(p.pid):
        for server in children(helper):
            with open("/proc/%d/comm" % server) as f:
                if f.read().strip() == "qemu-nbd":
                    return p, helper, server
    check(False, "no qemu-nbd below the run")
    e2e.finish()


def ends():
    """However the run ends, its processes end; a server that stops or dies does not hold it up."""
    p, helper, server = start()
    files = {os.readlink("/proc/%d/fd/%s" % (server, fd)) for fd in os.listdir("/proc/%d/fd" % server)}
    named = {f for f in files if f.startswith("/") and not f.endswith("/null")}
    check(named == {os.path.abspath("qcow2")}, "files of the server: %s" % named)
    check(field(server, "CapEff") == ["0" * 16] and field(server, "NoNewPrivs") == ["1"], "rights of the server")
    check(os.geteuid() or field(server, "Uid")[0] != "0", "the server is root")
    p.send_signal(signal.SIGKILL)
    p.communicate()
    check(gone(server) and gone(helper), "killed: a process stays")

    p, helper, server = start()
    os.kill(server, signal.SIGSTOP)
    time.sleep(0.2)
    p.send_signal(signal.SIGTERM)
    try:
        p.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        check(False, "a server that is stopped holds the run up")
        p.kill()
    check(gone(server) and gone(helper), "stopped: a process stays")

    p, helper, server = start()
    os.kill(server, signal.SIGKILL)
    time.sleep(0.3)
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=60)
    check(p.returncode == 1 and "the process that reads it ended" in err, "the server was killed: %d %s" % (p.returncode, err))
    check(gone(helper), "the helper stays")


def boots():
    """What a disk would boot is found whatever its format, also behind an extended partition."""
    with open(os.path.join(e2e.BUILD, "guest", "demo.elf"), "rb") as f:
        kernel = f.read()
    with open("boot.img", "wb") as f:
        f.truncate(24 * disk.MIB)
    disk.call("sfdisk", "-q", "boot.img", input="label: dos\nstart=2048, size=2048, type=83\nstart=4096, type=5\n"
              "start=6144, size=8192, type=83\nstart=16384, size=20480, type=83\n")
    disk.ext4("boot.img", {"/sbin/init": "#!", "/vmlinuz": kernel}, 3, 10, 16384 * 512)
    p = e2e.kvmprof("inspect", "boot.img")
    check(p.status == 0 and "/vmlinuz on /dev/vda6" in p.out, "raw: %s%s" % (p.out, p.err))
    img("convert", "-c", "-O", "qcow2", "boot.img", "boot.qcow2")
    img("convert", "-O", "vmdk", "boot.img", "boot.vmdk")
    squeeze("xz", "boot.img", "boot.xz")
    for name, what in (("boot.qcow2", "qcow2"), ("boot.vmdk", "vmdk"), ("boot.xz", "raw, compressed with xz")):
        q = e2e.kvmprof("inspect", name)
        facts = [re.sub(r"(?m)^(image|format) .*\n", "", x.out).replace(name, "boot.img") for x in (p, q)]
        check(q.status == 0 and facts[0] == facts[1], "%s:\n%s\n%s\n%s" % (name, q.out, q.err, p.out))
        check(re.search(r"(?m)^format +%s$" % what, q.out), "%s: its format: %s" % (name, q.out[:400]))
    # A domain's definition says the format of its disks.
    with open("domain.xml", "w") as f:
        f.write("<domain type='kvm'><name>d</name><memory unit='MiB'>64</memory><os><type>hvm</type><kernel>%s</kernel>"
                "<cmdline>ms=1</cmdline></os><devices><disk type='file'><driver name='qemu' type='qcow2'/>"
                "<source file='%s/qcow2'/><target dev='vda' bus='virtio'/></disk></devices></domain>" %
                (blk_guest.ELF, os.getcwd()))


def linux():
    kernel = os.path.join(e2e.built_kernel("smp-fp"), "vmlinux")
    e2e.need_tool("mke2fs")
    data = os.urandom(600000)
    os.mkdir("root")
    with open("root/data", "wb") as f:
        f.write(data)
    disk.call("mke2fs", "-q", "-t", "ext4", "-d", "root", "linux.img", "8M")
    images("linux.img")
    for name in ("qcow2-c", "vdi"):
        before = disk.sha256(name)
        p = e2e.kvmprof("run", "--no-output", "-m", "64M", "--initrd", os.path.join(e2e.BUILD, "guest", "disk.cpio"),
                        "--disk", name, "--append", "mode=check quiet", kernel, timeout=800)
        sums = disk_sums.sums(p.out)
        check(p.status == 0 and "disk: done" in p.out and sums.get("/mnt/data") == (len(data), disk_sums.fnv(data)),
              "%s: %d %s %s" % (name, p.status, sums, p.err))
        check(sums.get("written") and sums["written"] == sums.get("/mnt/out"), "%s: written, read back: %s" % (name, sums))
        check(disk.sha256(name) == before, name + " was changed")
    e2e.finish()


e2e.need_kvm()
os.environ["PATH"] += ":" + disk.TOOLS
for tool in ("qemu-img", "qemu-nbd"):
    e2e.need_tool(tool)
if len(sys.argv) > 3:
    linux()
total = blk_guest.write_image("disk.img", SECTORS)
all_images = images("disk.img")
before = {name: disk.sha256(name) for name in all_images + ["disk.img"]}
for name in all_images:
    reads(total, name, "--disk", name)
reads(total, "two at once", "--disk", "qcow2", "--disk", "vdi")
reads(total, "overlay file", "--disk", "qcow2,overlay=over.ov")
others(total)
damaged()
ends()
disk.need_tools()
boots()
p = e2e.kvmprof("run", "--no-output", "--domain", "domain.xml")
check(p.status == 0 and blk_guest.figures(p.out, total) is not None, "domain: %d %s %s" % (p.status, p.out, p.err))
for name, digest in before.items():
    check(disk.sha256(name) == digest, name + " was changed")
check(not os.listdir(os.environ["TMPDIR"]), "a directory stays")
e2e.finish("%d formats" % len(all_images))
