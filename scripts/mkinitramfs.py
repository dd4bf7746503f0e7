#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Make an initramfs: an uncompressed newc cpio archive with one program.

    mkinitramfs.py INIT OUTPUT [PATH=FILE ...]

INIT becomes /init; each PATH=FILE adds FILE, executable, as /PATH. There are
also /dev/console and /dev/null, and empty directories to mount on. The output
depends on the files' contents alone (no times, owners or inode numbers of this
machine), and device nodes need no root, as nothing is created on disk.

Format: Documentation/driver-api/early-userspace/buffer-format.rst in Linux.
"""
import os
import stat
import sys
import tempfile

DIRECTORIES = ["dev", "proc", "sys", "tmp", "run"]
DEVICES = [("dev/console", 0o600, 5, 1), ("dev/null", 0o666, 1, 3)]


class Archive:
    def __init__(self, out):
        self.out = out
        self.offset = 0
        self.ino = 0

    def write(self, data):
        self.out.write(data)
        self.offset += len(data)

    def pad(self, to):
        self.write(b"\0" * (-self.offset % to))

    def add(self, name, mode, data=b"", major=0, minor=0):
        raw = name.encode() + b"\0"
        # The kernel takes entries with nlink >= 2 and the same inode for hard
        # links; so each has an inode of its own, and files have one link.
        self.ino += 1
        fields = [
            self.ino,
            mode,
            0,  # uid
            0,  # gid
            2 if stat.S_ISDIR(mode) else 1,
            0,  # mtime
            len(data),
            0,  # device of the file system
            0,
            major,
            minor,
            len(raw),
            0,  # checksum: none in newc
        ]
        self.write(b"070701" + b"".join(b"%08x" % f for f in fields) + raw)
        self.pad(4)
        self.write(data)
        self.pad(4)

    def end(self):
        self.ino = -1
        self.add("TRAILER!!!", 0)
        self.pad(512)


def parents(path):
    parts = path.split("/")[:-1]
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def build(out, files):
    archive = Archive(out)
    made = set()
    wanted = list(DIRECTORIES)
    for path, _ in files:
        wanted += parents(path)
    for path in wanted:
        if path not in made:
            made.add(path)
            archive.add(path, stat.S_IFDIR | 0o755)
    for path, mode, major, minor in DEVICES:
        archive.add(path, stat.S_IFCHR | mode, b"", major, minor)
    for path, source in files:
        with open(source, "rb") as f:
            archive.add(path, stat.S_IFREG | 0o755, f.read())
    archive.end()


def main(argv):
    if len(argv) < 3:
        sys.exit("usage: mkinitramfs.py INIT OUTPUT [PATH=FILE ...]")
    files = [("init", argv[1])]
    for arg in argv[3:]:
        path, sep, source = arg.partition("=")
        path = path.strip("/")
        if not sep or not path or ".." in path.split("/"):
            sys.exit(f"mkinitramfs: {arg}: expected PATH=FILE")
        files.append((path, source))
    output = argv[2]
    try:
        # By rename: make does not take half an archive for a finished one.
        with tempfile.NamedTemporaryFile(
            dir=os.path.dirname(output) or ".", delete=False
        ) as out:
            try:
                build(out, files)
                out.flush()
                os.chmod(out.name, 0o644)
                os.rename(out.name, output)
            except BaseException:
                os.unlink(out.name)
                raise
    except OSError as e:
        sys.exit(f"mkinitramfs: {e}")


if __name__ == "__main__":
    main(sys.argv)
