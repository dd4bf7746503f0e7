#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Drivers that make mistakes, and one that makes none, for fuzz_virtio: make-corpus-virtio.py [DIR]"""

import os
import struct
import sys

OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                        "corpus", "fuzz_virtio")
RAM = 0x10000
QUEUE, RINGS, AVAIL, USED = 8, 0x1000, 0x100, 0x200
DATA, TABLE = 0x8000, 0x9000
NEXT, WRITE, TABLE_FLAG = 1, 2, 4
READY, INDIRECT, EVENT_IDX, KEEP = 1, 2, 4, 8
MMIO_NOTIFY = 0x50
PROBE_MMIO, RNG_PCI, CONSOLE_PCI, PROBE_PCI, CONFIG, TYPED = 2, 3, 4, 5, 6, 7


def desc(addr, length, flags=0, following=0):
    return struct.pack("<QIHH", addr, length, flags, following)


def ram(descs, heads=(0,), index=None, table=(), queue=0):
    """Descriptors of a queue, what is available of them, and an indirect table."""
    m = bytearray(0xa000)
    rings = RINGS * (1 + queue)
    for i, d in enumerate(descs):
        m[rings + 16 * i:rings + 16 * i + 16] = d
    struct.pack_into("<HH", m, rings + AVAIL, 0, len(heads) if index is None else index)
    for i, h in enumerate(heads):
        struct.pack_into("<H", m, rings + AVAIL + 4 + 2 * (i % QUEUE), h)
    for i, d in enumerate(table):
        m[TABLE + 16 * i:TABLE + 16 * i + 16] = d
    return bytes(m)


def step(device, off, value, write=True, width=2):
    return struct.pack("<BBHI", device, (0x80 if write else 0) | width, off, value & 0xffffffff)


# Each queue 0 is notified: of the devices by mmio, and by PCI at the queue's own address.
KICKS = [step(d, MMIO_NOTIFY, 0) for d in range(3)] + [step(3 + d, 0x3000, 0, width=1) for d in range(3)]


def case(memory, steps=KICKS, flags=READY | INDIRECT):
    return bytes((flags, len(steps))) + b"".join(steps) + memory


def growing():
    """The probe xors a buffer's first byte with its last one. Here the first one is the available index,
    and each chain raises it by one: there is always more, and never more than the queue is long."""
    index = RINGS + AVAIL + 2
    memory = bytearray(ram([desc(index, 0x20 + k, WRITE) for k in range(QUEUE)], range(QUEUE)))
    for k in range(QUEUE):
        memory[index + 0x20 + k - 1] = (QUEUE + k) ^ (QUEUE + k + 1)
    return bytes(memory)


one = [desc(DATA, 8, WRITE)]
FILES = {
    "good": case(ram([desc(DATA, 8, NEXT, 1), desc(DATA + 8, 16, WRITE)])),
    "good-in": case(ram(one, [0, 0, 0])),
    "good-event-idx": case(ram(one, [0] * 4), flags=READY | EVENT_IDX),
    "good-indirect": case(ram([desc(TABLE, 32, TABLE_FLAG)],
                              table=[desc(DATA, 8, NEXT, 1), desc(DATA, 8, WRITE)])),
    "loop": case(ram([desc(DATA, 8, NEXT, 1), desc(DATA, 8, NEXT, 0)])),
    "loop-itself": case(ram([desc(DATA, 8, NEXT, 0)])),
    "head": case(ram(one, [QUEUE])),
    "head-65535": case(ram(one, [65535])),
    "next": case(ram([desc(DATA, 8, NEXT, QUEUE)])),
    "outside": case(ram([desc(RAM, 1)])),
    "across-end": case(ram([desc(RAM - 4, 8, WRITE)])),
    "wraps": case(ram([desc(2**64 - 4, 8, WRITE)])),
    "all-ram": case(ram([desc(0, RAM, WRITE)])),
    "huge": case(ram([desc(DATA, 2**32 - 1, WRITE)])),
    "empty": case(ram([desc(DATA, 0, WRITE)])),
    "out-after-in": case(ram([desc(DATA, 8, WRITE | NEXT, 1), desc(DATA, 8)])),
    "index-too-far": case(ram(one, index=QUEUE + 1)),
    "index-back": case(ram(one, index=65535)),
    "nested-table": case(ram([desc(TABLE, 16, TABLE_FLAG)], table=[desc(TABLE, 16, TABLE_FLAG)])),
    "table-loop": case(ram([desc(TABLE, 32, TABLE_FLAG)],
                           table=[desc(DATA, 8, NEXT, 1), desc(DATA, 8, NEXT, 0)])),
    "table-odd": case(ram([desc(TABLE, 17, TABLE_FLAG)], table=one)),
    "table-empty": case(ram([desc(TABLE, 0, TABLE_FLAG)])),
    "table-huge": case(ram([desc(TABLE, 2**32 - 16, TABLE_FLAG)])),
    "table-outside": case(ram([desc(RAM - 16, 32, TABLE_FLAG)])),
    "table-next": case(ram([desc(TABLE, 16, TABLE_FLAG | NEXT, 0)], table=one)),
    "table-not-agreed": case(ram([desc(TABLE, 16, TABLE_FLAG)], table=one), flags=READY),
    "buffer-is-ring": case(ram([desc(RINGS, 0x300, WRITE)], [0] * 3)),
    "kept": case(ram(one, [0] * QUEUE), flags=READY | KEEP),
    "kept-and-more": case(growing(), KICKS[2:3], flags=READY | KEEP),
    "not-ready": case(ram(one), flags=0),
    "status-out-of-order": case(ram(one), [step(0, 0x70, v) for v in (7, 4, 15, 0, 255)] + KICKS, 0),
    "queue-outside": case(ram(one), [step(2, 0x70, 0), step(2, 0x80, RAM), step(2, 0x44, 1)] + KICKS),
    "queue-odd-size": case(ram(one), [step(2, 0x70, 0), step(2, 0x38, 3), step(2, 0x44, 1)] + KICKS),
    "typed": case(ram(one, [0] * 3), [step(1, MMIO_NOTIFY, 0)] + [step(TYPED, 0x6161, 0x62626262)] * 4),
    "pci-queue": case(ram(one), [step(PROBE_PCI, 0x14, 0, width=0), step(PROBE_PCI, 0x16, 9, width=1),
                                 step(PROBE_PCI, 0x18, 65535, width=1), step(PROBE_PCI, 0x16, 0, width=1),
                                 step(PROBE_PCI, 0x18, 65535, width=1), step(PROBE_PCI, 0x1c, 1, width=1)]),
    "msix": case(ram(one), [step(CONFIG, 0x9a, 0x8000, width=1), step(RNG_PCI, 0x1a, 1, width=1),
                            step(RNG_PCI, 0x4010, 0xfee00000), step(RNG_PCI, 0x401c, 1)] + KICKS +
                 [step(RNG_PCI, 0x401c, 0), step(CONFIG, 0x9a, 0xc000, width=1)] + KICKS),
    "bar-moves": case(ram(one), [step(CONFIG, 0x10, 0xffffffff), step(CONFIG, 4, 0, width=1),
                                 step(CONFIG, 0x10, 0xfeb00000), step(CONFIG, 4, 6, width=1)] + KICKS),
    "window": case(ram(one), [step(CONFIG, 0x8c, 0x14), step(CONFIG, 0x90, 1), step(CONFIG, 0x94, 0),
                              step(CONFIG, 0x8c, 0x7fff), step(CONFIG, 0x90, 4), step(CONFIG, 0x94, 0),
                              step(CONFIG, 0x94, 0, False)]),
    "widths": case(ram(one), [step(d, off, 0x01010101, write, width) for d in range(6) for write in (0, 1)
                              for off in (0x14, 0x21) for width in range(4)]),
}
os.makedirs(OUT, exist_ok=True)
for name, data in FILES.items():
    # What follows the last byte that says something is zero anyway.
    with open(os.path.join(OUT, name), "wb") as f:
        f.write(data.rstrip(b"\0"))
