# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images for tests: partitions by sfdisk, ext4 by mke2fs -d, FAT by mkfs.vfat and mtools.
None of it needs root, and nothing is mounted."""

import hashlib
import os
import shutil
import subprocess

import e2e
import uki_fixture

MIB = 1 << 20
TOOLS = "/sbin:/usr/sbin"
PREFIX = "6b766d70-0000-4000-8000-"


def need_tools():
    os.environ["PATH"] += ":" + TOOLS
    for tool in ("sfdisk", "mke2fs", "mkfs.vfat", "mcopy"):
        e2e.need_tool(tool)


def uuid(n):
    return PREFIX + "%012x" % n


def call(*argv, **kw):
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       universal_newlines=True, **kw)
    if p.returncode:
        raise RuntimeError("%s: %s" % (" ".join(argv), p.stdout))


def tree(path, files):
    """A directory with these files: bytes, text, None (a directory) or ("link", target)."""
    shutil.rmtree(path, ignore_errors=True)
    os.mkdir(path)
    for name, content in files.items():
        at = os.path.join(path, name.lstrip("/"))
        os.makedirs(os.path.dirname(at), exist_ok=True)
        if content is None:
            os.makedirs(at, exist_ok=True)
        elif isinstance(content, tuple):
            os.symlink(content[1], at)
        else:
            with open(at, "wb") as f:
                f.write(content if isinstance(content, bytes) else content.encode())
            os.chmod(at, 0o755)
    return path


def ext4(image, files, number, mib, offset=0, label="root"):
    """An ext4 file system at offset; its UUID is uuid(number)."""
    d = tree(image + ".tree", files)
    call("mke2fs", "-q", "-F", "-t", "ext4", "-U", uuid(number), "-L", label, "-d", d, "-E",
         "offset=%d,root_owner=0:0" % offset, image, "%dM" % mib)
    shutil.rmtree(d)


def vfat(image, files, mib, offset=0, label="ESP"):
    """A FAT file system at offset, made beside the image."""
    part, d = image + ".fat", tree(image + ".tree", files)
    with open(part, "wb") as f:
        f.truncate(mib * MIB)
    call("mkfs.vfat", "-n", label, "-i", "6b766d70", part)
    for name in sorted(os.listdir(d)):
        call("mcopy", "-s", "-i", part, os.path.join(d, name), "::")
    with open(part, "rb") as f, open(image, "r+b") as to:
        to.seek(offset)
        shutil.copyfileobj(f, to)
    os.unlink(part)
    shutil.rmtree(d)


def disk(image, mib, table, parts):
    """parts: (MiB, type, name) from 1 MiB on. Their UUIDs are uuid(0x100 + place)."""
    with open(image, "wb") as f:
        f.truncate(mib * MIB)
    script, start, offsets = ["label: " + table, "label-id: " +
                              (uuid(0x100) if table == "gpt" else "0x6b766d70")], 1, []
    for i, (size, kind, name) in enumerate(parts):
        more = ", uuid=%s, name=%s" % (uuid(0x101 + i), name) if table == "gpt" else ""
        script.append("start=%d, size=%d, type=%s%s" % (start * 2048, size * 2048, kind, more))
        offsets.append(start * MIB)
        start += size
    call("sfdisk", "-q", image, input="\n".join(script) + "\n")
    return offsets


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(MIB), b""):
            h.update(block)
    return h.hexdigest()


def boots_by_itself(image, kernel):
    """A GUID partition table, a unified image of the built kernel on the EFI system partition, and a root in
    ext4 whose init is disk_init.c."""
    call("gcc", "-static", "-nostdlib", "-ffreestanding", "-O2", "-o", "init",
         os.path.join(os.path.dirname(os.path.abspath(__file__)), "disk_init.c"))
    with open("init", "rb") as f, open(os.path.join(kernel, "bzImage"), "rb") as k:
        init, uki = f.read(), uki_fixture.uki(k.read(), None, "rw quiet", "ID=test\nNAME=Test\n", "6.1")
    a, b = disk(image, 64, "gpt", [(48, "linux", "root"), (8, "uefi", "esp")])
    # Its command line has no root=: that is found.
    vfat(image, {"/EFI/BOOT/BOOTX64.EFI": b"MZ", "/EFI/Linux/test-6.1+3.efi": uki}, 8, b)
    ext4(image, {"/dev": None, "/proc": None, "/etc/later": "only read at the end", "/sbin/init": init,
                 "/etc/marker": "hello from the disk"}, 1, 48, a)
