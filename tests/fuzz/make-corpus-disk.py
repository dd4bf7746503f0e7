#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make-corpus-disk.py [OUT]: writes tests/fuzz/corpus/fuzz_disk_header.

Headers of each format, laid out as QEMU's and VMware's are, with clusters of 512 bytes, and some that
refer to other files, are encrypted, or have tables that lead out or to themselves."""

import os
import struct
import sys

out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                         "corpus", "fuzz_disk_header")
os.makedirs(out, exist_ok=True)


def qcow2(l1=(1024,), l2=(1536,), backing=b"", crypt=0, features=0, extensions=(), bits=9, version=3):
    body = b"".join(struct.pack(">II", kind, len(text)) + text + bytes(-len(text) % 8) for kind, text in extensions)
    name_at = 400 if backing else 0
    head = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", version, name_at, len(backing), bits, 65536, crypt,
                       len(l1), 512, 0, 0, 0, 0)
    head += struct.pack(">QQQII", features, 0, 0, 4, 104) + body
    head = head.ljust(400, b"\0") + backing
    head = head.ljust(512, b"\0") + struct.pack(">%dQ" % len(l1), *l1)
    return (head.ljust(1024, b"\0") + struct.pack(">%dQ" % len(l2), *l2)).ljust(2048, b"\0")


def vmdk(text=b"# Disk DescriptorFile\n", directory=3, tables=(4,), grains=(5,), entries=4):
    head = struct.pack("<4sIIQQQQIQQ", b"KDMV", 1, 3, 64, 8, 1, 2, entries, 0, directory)
    head = head.ljust(512, b"\0") + text
    head = head.ljust(1536, b"\0") + struct.pack("<%dI" % len(tables), *tables)
    return (head.ljust(2048, b"\0") + struct.pack("<%dI" % len(grains), *grains)).ljust(3072, b"\0")


def vdi(kind=1, used=2):
    head = bytearray(512)
    head[64:68] = b"\x7f\x10\xda\xbe"
    struct.pack_into("<I", head, 76, kind)
    struct.pack_into("<II", head, 0x154, 512, 512)
    struct.pack_into("<IIII", head, 0x178, 512, 0, 4, used)
    return bytes(head) + bytes(1024)


RAW = (0xe2792aca, b"raw")
seeds = {
    "qcow2": qcow2(),
    "qcow2-v2": qcow2(version=2),
    "qcow": b"QFI\xfb\0\0\0\1" + bytes(8) + struct.pack(">I", 4) + bytes(60),
    "qcow2-backing": qcow2(backing=b"/etc/shadow", extensions=[RAW]),
    "qcow2-data-file": qcow2(features=4, extensions=[(0x44415441, b"data.raw")]),
    "qcow2-luks": qcow2(crypt=2, extensions=[(0x0537be77, bytes(16))]),
    "qcow2-extended": qcow2(features=16, l2=(1536, 1 << 40)),
    "qcow2-compressed": qcow2(l2=(1 << 62 | 1800, 1536)),
    "qcow2-cut": qcow2()[:1200],
    "qcow2-circle": qcow2(l1=(1024,) * 64, l2=(1024, 512)),
    "qcow2-outside": qcow2(l1=((1 << 56) - 512,), l2=((1 << 56) - 512,)),
    "qcow2-bits": qcow2(bits=63),
    "qcow2-long-name": qcow2(backing=b"n" * 1023),
    "qcow2-extensions": qcow2(extensions=[(7, b"")] * 30),
    "qed": b"QED\0" + bytes(12) + struct.pack("<Q", 1) + bytes(32) + struct.pack("<II", 64, 4) + b"base",
    "vmdk": vmdk(),
    "vmdk-encrypted": vmdk(b'# Disk DescriptorFile\nencryption.keySafe = "vmware:key"\n'),
    "vmdk-parent": vmdk(b'# Disk DescriptorFile\nparentFileNameHint="a.vmdk"\n'),
    "vmdk-circle": vmdk(tables=(3,) * 64),
    "vmdk-at-end": vmdk(directory=2**64 - 1),
    "vmdk-text": b'# Disk DescriptorFile\nRW 8 SPARSE "a-s001.vmdk"\n',
    "vmdk-esx": b"COWD" + bytes(508),
    "vdi": vdi(),
    "vdi-differences": vdi(4),
    "vdi-cut": vdi(used=2**32 - 1),
    "vpc": (b"conectix" + bytes(52) + struct.pack(">I", 4)).ljust(512, b"\0"),
    "vhdx": b"vhdxfile" + bytes(504),
    "bzip2": b"BZh91AY&SY",
    "short": b"QFI\xfb",
}
for name, data in seeds.items():
    with open(os.path.join(out, name), "wb") as f:
        f.write(data)
