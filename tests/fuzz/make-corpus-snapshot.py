#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables and parts of snapshots (vmm/snapshot/snapshot.h) for fuzz_snapshot: make-corpus-snapshot.py [DIR]"""

import os
import struct
import sys

OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                        "corpus", "fuzz_snapshot")
PAGE, MIB = 4096, 1 << 20


def table(*sections, ram=16 * MIB, version=1, n=None):
    """sections: (name, length); their offsets are one behind the other."""
    head = 40 + 48 * len(sections)
    off = -(-head // PAGE) * PAGE
    rows = b""
    for name, length in sections:
        rows += struct.pack("<24sIIQQ", name, 1, 0, off, length)
        off = -(-(off + length) // PAGE) * PAGE
    return b"\0" + struct.pack("<8sIIQQII", b"KVMPSNAP", version, len(sections) if n is None else n,
                               off, ram, 0, 0) + rows


def record(data):
    return struct.pack("<I", len(data)) + data


# Of linux/kvm.h: mp_state, regs, sregs, xcrs, debugregs, lapic, vcpu_events
FIXED = (4, 144, 312, 392, 128, 1024, 64)


def vcpu(xsave=4096, cpuid=2, msrs=3, left=b""):
    return (b"\1" + b"".join(record(bytes(n)) for n in FIXED) + record(bytes(xsave)) +
            record(bytes(40 * cpuid)) + record(bytes(16 * msrs)) + bytes(26) + left)


channel = struct.pack("<6BHIQ", 2, 3, 0, 0, 0, 0, 0, 11932, 1000000)


def text(s):
    return struct.pack("<H", len(s)) + s


def devices(disks=(), shares=(), net=0, tap=b"", forwards=(), ndisks=None, flags=0):
    out = struct.pack("<I", len(disks) if ndisks is None else ndisks)
    for path, serial in disks:
        out += text(path) + text(serial) + struct.pack("<BQQI", 0, 16 * MIB, 10**18, 0x12345678)
    out += struct.pack("<I", len(shares))
    for path, tag in shares:
        out += text(path) + text(tag) + b"\1"
    out += struct.pack("<BB", net, flags) + text(tap) + struct.pack("<I", len(forwards))
    return b"\7" + out + b"".join(struct.pack("<BHH", *f) for f in forwards)


def fids(*at, msize=65536, n=None):
    """at: (fid, path); the number of the file is one that no file has."""
    return b"\10" + struct.pack("<II", msize, len(at) if n is None else n) + b"".join(
        struct.pack("<IBQ", fid, 0x80, 3) + text(path) for fid, path in at)


FILES = {
    "devices": devices([(b"/a.img", b"42"), (b"/b.img", b"")], [(b"/srv", b"data")], 1, b"",
                       [(0, 8080, 80), (1, 53, 53)]),
    "devices-tap": devices(net=2, tap=b"tap0"),
    "devices-no-tap": devices(net=2),
    "devices-relative": devices([(b"a.img", b"")]),
    "devices-many": devices(ndisks=9),
    "devices-long": devices([(b"/" * 4096, b"")]),
    "devices-nul": devices(shares=[(b"/s\0rv", b"data")]),
    "devices-restricted": devices(net=1, flags=2),
    "devices-flags": devices(net=1, flags=4),
    "devices-forwards": devices(net=1, forwards=[(0, 1, 1)] * 9),
    "fids-none": fids(),
    "fids": fids((1, b""), (2, b"d")),
    "fids-out": fids((1, b"../etc")),
    "fids-absolute": fids((1, b"/etc")),
    "fids-many": fids(n=4097),
    "fids-msize": fids(msize=10),
    "table": table((b"host", 900), (b"machine", 29), (b"vcpu.0", 9000), (b"file:image", 70000)),
    "table-large": table((b"host", 65 << 20), (b"file:image", 65 << 20)),
    "table-twice": table((b"host", 1), (b"host", 1)),
    "table-version": table(version=2),
    "table-count": table((b"a", 1), n=0xffffffff),
    "table-no-ram": table((b"a", 1), ram=0),
    "table-short": table((b"a", 1))[:60],
    "vcpu": vcpu(),
    "vcpu-large": vcpu(xsave=11008, cpuid=256, msrs=512),
    "vcpu-many": vcpu(cpuid=257),
    "vcpu-left": vcpu(left=b"x"),
    "vcpu-short": vcpu()[:700],
    "serial": b"\2" + bytes((5, 3, 11, 0, 1, 1, 0)) + b"\1\0\3abc",
    "serial-full": b"\2" + bytes(9) + b"\x40" + bytes(64),
    "serial-over": b"\2" + bytes(9) + b"\x41" + bytes(65),
    "platform": b"\3" + bytes(11),
    "pit": b"\4" + 3 * channel + b"\1\1" + struct.pack("<Q", 5000000),
    "pit-bad": b"\4" + 3 * channel.replace(b"\2", b"\7", 1) + b"\0\0" + bytes(8),
    "machine": b"\5" + struct.pack("<QQQIBIBB", 64 * MIB, 1 * MIB, 2 * MIB, 2, 1, 1, 1, 0),
    "machine-many": b"\5" + struct.pack("<QQQIBIBB", 64 * MIB, 0, 0, 2**32 - 1, 0, 0, 0, 0),
    "facts": b"\6" + struct.pack("<BQQ", 3, 0x1000000, 0x2000000) + record(b"vmlinux") +
             record(b"live") + record(b"console=ttyS0") + 3 * record(b""),
    "facts-exec": b"\6" + struct.pack("<BQQ", 4, 0, 0) + 3 * record(b"") + record(b"/srv") +
                  record(b"0123456789abcdef" * 2) + record(b"\033_kvmprof;"),
    "facts-nonce": b"\6" + struct.pack("<BQQ", 4, 0, 0) + 4 * record(b"") + record(b"0") + record(b""),
    "facts-nul": b"\6" + struct.pack("<BQQ", 0, 0, 0) + record(b"vm\0linux") +
                 5 * record(b""),
    "facts-long": b"\6" + struct.pack("<BQQI", 0, 0, 0, 2**32 - 1) + b"x",
}
os.makedirs(OUT, exist_ok=True)
for name, data in FILES.items():
    with open(os.path.join(OUT, name), "wb") as f:
        f.write(data)
