#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make-corpus-perfdata.py DIR: seeds for fuzz_perfdata, small perf.data files.

They are made here and not by kvmprof, so that the two do not share mistakes.
"""
import os
import struct
import sys

MAGIC = b"PERFILE2"


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def name(text, align):
    raw = text.encode() + b"\0"
    return raw + b"\0" * (-len(raw) % align)


def sample_id(time):
    return struct.pack("<IIQII", 1, 1, time, 0, 0)


def sample(time, ips, misc=1, period=1000, tid=1):
    body = struct.pack("<QIIQIIQQ", ips[0], tid, tid, time, 0, 0, period, len(ips) + 1)
    context = -128 if misc == 1 else -512
    return record(9, misc, body + struct.pack("<q", context) + struct.pack(f"<{len(ips)}Q", *ips))


def comm(time, text, tid=1, misc=0):
    return record(3, misc, struct.pack("<II", tid, tid) + name(text, 8) + sample_id(time))


def fork(time, tid, parent, kind=7):
    return record(kind, 0, struct.pack("<IIIIQ", tid, parent, tid, parent, time) + sample_id(time))


def module(time, text, addr, size=0x1000):
    body = struct.pack("<IIQQQ", 0xFFFFFFFF, 0, addr, size, 0)
    return record(1, 1, body + name(text, 8) + sample_id(time))


def kernel_map():
    body = struct.pack("<IIQQQ", 0xFFFFFFFF, 0, 0xFFFFFFFF81000000, 0x1000000, 0xFFFFFFFF81000000)
    return record(1, 1, body + name("[kernel.kallsyms]_text", 8) + sample_id(0))


def mmap2(time, pid=1, addr=0x400000, size=0x1000):
    body = struct.pack("<IIQQQ", pid, pid, addr, size, 0) + b"\x14\0\0\0" + bytes(range(20))
    return record(10, 2 | 1 << 14, body + struct.pack("<II", 5, 2) + name("demo-user", 8) + sample_id(time))


def lost(time, count):
    return record(13, 0, struct.pack("<Q", count) + sample_id(time))


def attr(sample_type=0x1A7, read_format=4, flags=1 << 10 | 1 << 18, config=0):
    head = struct.pack("<IIQQQQQ", 1, 128, config, 1000, sample_type, read_format, flags)
    return head + b"\0" * (128 - len(head))


def string(text):
    raw = name(text, 64)
    return struct.pack("<I", len(raw)) + raw


def features():
    build_id = struct.pack("<IHHi", 0, 0x8001, 36 + 64, -1) + bytes(range(20)) + b"\x14\0\0\0"
    return {
        2: build_id + name("[kernel.kallsyms]", 64),
        3: string("host"),
        4: string("6.9.0"),
        5: string("kvmprof-1"),
        7: struct.pack("<II", 2, 2),
        12: struct.pack("<II", 1, 128) + attr() + struct.pack("<I", 1) + string("wall") + struct.pack("<Q", 1),
    }


OLD_TOTALS = {255: b'{"made_up":true}'}


def totals(text=b'{"made_up":true}', size=None):
    """Our totals, between the index and the first feature."""
    return b"KVMPROFT" + struct.pack("<Q", len(text) if size is None else size) + text + b"\0" * (-len(text) % 8)


def perf_data(data, attrs=None, feats=None, data_size=None, gap=b""):
    attrs = attrs or [attr()]
    feats = features() if feats is None else feats
    ids = struct.pack("<Q", 1)
    entries = b"".join(a + struct.pack("<QQ", 104, 8) for a in attrs)
    data_off = 104 + len(ids) + len(entries)
    bits = sum(1 << f for f in feats)
    index, blobs = b"", b""
    first = data_off + len(data) + 16 * len(feats) + len(gap)
    for f in sorted(feats):
        index += struct.pack("<QQ", first + len(blobs), len(feats[f]))
        blobs += feats[f]
    size = len(data) if data_size is None else data_size
    head = MAGIC + struct.pack("<QQQQQQQQ", 104, 144, 112, len(entries), data_off, size, 0, 0)
    return head + bits.to_bytes(32, "little") + ids + entries + data + index + gap + blobs


def pipe(data, attrs):
    """The same through a pipe: attributes (with their ids) and features are records."""
    out = MAGIC + struct.pack("<Q", 16)
    for ids, a in attrs:
        out += record(64, 0, a + struct.pack(f"<{len(ids)}Q", *ids))
    for number, blob in features().items():
        if number == 2:
            out += struct.pack("<IHH", 67, 0x8001, len(blob)) + blob[8:]
        elif number < 32:
            out += record(80, 0, struct.pack("<Q", number) + blob)
    return out + data


def zstd(blocks):
    """One zstd frame of raw blocks, as the contents of one COMPRESSED record for each."""
    out = [struct.pack("<I", len(b) << 3 | (i + 1 == len(blocks)))[:3] + b for i, b in enumerate(blocks)]
    out[0] = b"\x28\xb5\x2f\xfd\0\x58" + out[0]
    return b"".join(record(81, 0, b) for b in out)


def zstd2(blocks, claim=0):
    """As zstd(), in COMPRESSED2 records; claim: how many bytes more they say that they have."""
    out = b""
    for r in split_records(zstd(blocks)):
        out += record(83, 0, struct.pack("<Q", len(r) - 8 + claim) + r[8:] + b"\0" * (-len(r) % 8))
    return out


def rare_attr(sample_type, branch_type=0, regs=0):
    a = bytearray(attr(sample_type, 0xC))
    struct.pack_into("<QQ", a, 72, branch_type, regs)
    return bytes(a)


def words_of(words):
    return b"".join(struct.pack("<Q", w & (1 << 64) - 1) for w in words)


def rare_sample(words, misc=2, tail=b""):
    """With the fields IDENTIFIER, IP, TID, TIME; words and tail stand behind them."""
    return record(9, misc, struct.pack("<QQIIQ", 1, 0x401000, 1, 1, 9) + words_of(words) + tail)


def rare_seeds(stack):
    """What perf records on some hosts only: guests, counters of a group, deferred chains, LBR, copied stacks."""
    def seed(sample_type, data, **more):
        return perf_data(data, attrs=[rare_attr(0x10007 | sample_type, **more)], feats={})

    def deferred(cookie, words):
        return record(22, 2, struct.pack("<QQ", cookie, len(words)) + words_of(words) +
                      struct.pack("<IIQQ", 1, 1, 10, 1))

    def guest_map(misc):
        body = struct.pack("<IIQQQ", 1, 1, 0x401000, 0x1000, 0) + struct.pack("<IIQQ", 1, 2, 3, 4)
        return record(10, misc, body + struct.pack("<II", 5, 2) + name("/bin/vmm", 8) + struct.pack("<IIQQ", 1, 1, 8, 1))

    group = b"".join(rare_sample((2, v, 1, v, 1)) for v in (5, 5, 9, 3))
    regs = struct.pack("<Q2Q", 2, 0x7000, 0x401000)
    return {
        "modes": seed(0x20, b"".join(guest_map(m) + rare_sample((3, -128, stack[0], stack[1]), misc=m)
                                     for m in range(8))),
        "contexts": seed(0x20, rare_sample((9, -32, 1, -2048, 2, -2176, 3, -2560, 4, -640), misc=4)),
        "group": seed(0x10, group),
        "deferred": seed(0x20, rare_sample((4, -128, stack[0], -640, 7)) + deferred(7, (-512, 0x401000, 0x402000)) +
                         rare_sample((2, -640, 8)) + deferred(8, ()) + rare_sample((2, -640, 9))),
        "deferred-cut": seed(0x20, rare_sample((2, -640, 7)) + record(22, 2, struct.pack("<QQ", 7, 1 << 60))),
        "branches": seed(0x820, rare_sample((2, -512, 0x401000), tail=struct.pack("<Q6Q", 2, 1, 2, 0, 3, 4, 0)),
                         branch_type=1 << 11),
        "branches-cut": seed(0x820, rare_sample((2, -512, 0x401000), tail=struct.pack("<Q", 1 << 40)),
                             branch_type=1 << 11),
        "copied-stack": seed(0x3020, guest_map(2) + rare_sample(
            (0,), tail=regs + struct.pack("<Q2QQ", 16, 0x401000, 0x402000, 16)), regs=0x180),
        "copied-stack-long": seed(0x3020, rare_sample((0,), tail=regs + struct.pack("<Q2QQ", 16, 1, 2, 17)), regs=0x180),
        "vectors": seed(0x3020, rare_sample((0,), tail=struct.pack("<Q2Q4H", 6, 1, 2, 1, 2, 1, 1) + b"\0" * 32),
                        regs=0x180),
    }


def split_records(data):
    while data:
        size = struct.unpack_from("<H", data, 6)[0]
        yield data[:size]
        data = data[size:]


def threads(file, part):
    """What fuzz_perfdata takes for the two files of perf record --threads."""
    part += record(68, 0, b"\0" * (-(len(part) + 8) % 256))
    return b"SPLIT" + bytes([len(part) // 256]) + file + part


IDENTIFIER = 0x10000


def sample_of(ident, time, ips):
    """A sample of an event with IDENTIFIER, TID, TIME and CPU besides IP and CALLCHAIN."""
    body = struct.pack("<QQIIQII", ident, ips[0], 1, 1, time, 0, 0)
    return record(9, 1, body + struct.pack(f"<Q{len(ips)}Q", len(ips), *ips))


def marker(time, ips, raw, size=None):
    """A sample of the event of markers, whose raw data says what it is; size: what it claims."""
    raw += b"\0" * (-(4 + len(raw)) % 8)
    body = struct.pack("<QQIIQIIQQ", 2, ips[0] if ips else 0, 1, 1, time, 0, 0, 1, len(ips))
    body += struct.pack(f"<{len(ips)}QI", *ips, len(raw) if size is None else size)
    return record(9, 1, body + raw)


def exit_time(time, ips, raw):
    """A sample of a VM exit: how long it was worked for is the end of its raw data."""
    body = struct.pack("<QIIQIIQQ", ips[0], 1, 1, time, 0, 0, 1, len(ips)) + struct.pack(f"<{len(ips)}Q", *ips)
    return record(9, 1, body + struct.pack("<I", len(raw)) + raw)


MARKER_ATTRS = [([1], attr(0x101A7)), ([2], attr(0x105A7, config=10))]


def everything(time, ips):
    """Each field that a sample may have: type 0x1fdffff, branches with an index, registers."""
    out = struct.pack("<QQIIQQQQIIQ", 1, ips[0], 1, 1, time, 7, 1, 2, 0, 0, 500)
    out += struct.pack("<QQ", 9, 1)  # READ: value, id
    out += struct.pack(f"<Q{len(ips)}Q", len(ips), *ips)
    out += struct.pack("<I", 12) + b"raw data!   "
    out += struct.pack("<QQQQQ", 1, 0, 1, 2, 3)  # branches: one, with the index
    out += struct.pack("<QQQ", 2, 11, 12)  # user registers, two
    out += struct.pack("<Q", 16) + b"stack of a user." + struct.pack("<Q", 8)
    out += struct.pack("<QQQ", 4, 5, 6)  # weight, source, transaction
    out += struct.pack("<QQ", 2, 13)  # registers at the interrupt
    out += struct.pack("<QQQQ", 0x1000, 77, 4096, 2 << 20)  # physical, cgroup, page sizes
    return record(9, 1, out)


def main(out):
    stack = [0xFFFFFFFF81000000 + 0x100 * i for i in range(6)]
    sorted_data = kernel_map() + comm(5, "guest") + mmap2(6) + sample(10, stack) + sample(20, stack[1:])
    user = sample(25, [0x400010, 0x400020], misc=2)
    mixed = sorted_data + user + record(68, 0, b"") + sample(15, stack[2:]) + lost(16, 7)
    good = perf_data(mixed)
    # A task forks, runs something else, ends, and its number comes again.
    tasks = kernel_map() + comm(1, "init") + mmap2(1) + fork(2, 9, 1) + sample(3, [0x400010], misc=2, tid=9)
    tasks += comm(4, "sh", 9, 1 << 13) + mmap2(4, 9, 0x500000) + sample(5, [0x400010, 0x500010], misc=2, tid=9)
    tasks += mmap2(6, 9, 0x500800) + mmap2(7, 9, 0x4FF000, 0x4000) + sample(8, [0x500810], misc=2, tid=9)
    tasks += fork(9, 9, 1, kind=4) + fork(10, 9, 0) + sample(11, [0x400010], misc=2, tid=9)
    # Modules, one over another, one that wraps around, one that perf found as a file.
    mods = module(0, "[a]", 0xFFFFFFFFC0000000) + module(2, "[b]", 0xFFFFFFFFC0000800)
    mods += module(3, "/lib/modules/6.1/kernel/fs/virtio-net.ko.xz", 0xFFFFFFFFC0010000)
    mods += module(4, "[c]", 0xFFFFFFFFFFFFF000, 0x2000) + module(4, "[d]", 5, 0)
    in_mods = [0xFFFFFFFFC0000010, 0xFFFFFFFFC0000810, 0xFFFFFFFFC0010010, 0xFFFFFFFFFFFFEFF0]
    # Two events that differ, by id; and with all that a sample can hold.
    two = [([11, 12], attr(0x10087 | 0x20, 4)), ([21], attr(0x10007 | 0x20, 0))]
    named = struct.pack("<II", 1, 1) + name("guest", 8) + sample_id(1) + struct.pack("<Q", 11)
    by_id = record(3, 0, named) + sample_of(11, 5, stack) + sample_of(12, 6, stack[1:])
    third = struct.pack("<QQIIQ", 21, stack[0], 1, 1, 7) + struct.pack("<QQ", 1, stack[2])
    by_id += record(9, 1, third) + sample_of(99, 8, stack)
    all_fields = attr(0x0FDFFFF, 4)
    all_fields = all_fields[:72] + struct.pack("<QQIIQ", 1 << 17, 3, 16, 0, 5 << 1) + all_fields[104:]
    # The id 0 belongs to nobody, whatever a list says.
    zero = [([1], attr(0x10087 | 0x20, 4)), ([0, 5], attr(0x10087 | 0x20, 4))]
    zeroes = b"".join(sample_of(i, 9 - k, stack) for k, i in enumerate((0, 5, 0)))
    inner = sorted_data + user
    seeds = {
        "pipe-file": pipe(sorted_data, [([1], attr())]),
        "pipe-events": pipe(by_id, two),
        "pipe-id-zero": pipe(zeroes, zero),
        "pipe-tracing": pipe(record(66, 0, struct.pack("<I", 5)) + b"tracing!" + sorted_data, [([1], attr())]),
        "pipe-no-attr": pipe(sorted_data, []),
        "pipe-same-layout": pipe(b"".join(
            record(9, 1, struct.pack("<QIIQQ", stack[0], 1, 1, t, t)) for t in (31, 32)),
            [([31], attr(0x47, 4)), ([32], attr(0x47, 4))]),
        "all-fields": pipe(everything(5, stack) + everything(6, stack[2:]), [([1], all_fields)]),
        "auxtrace": perf_data(sorted_data + record(71, 0, struct.pack("<Q", 24) + b"\0" * 32) + b"a" * 24 + user),
        "auxtrace-huge": perf_data(sorted_data + record(71, 0, struct.pack("<Q", 1 << 63) + b"\0" * 32) + user),
        "zstd": perf_data(zstd([inner])),
        "zstd-cut-records": perf_data(zstd([inner[:100], inner[100:333], inner[333:]]) + lost(30, 2)),
        "zstd-cut": perf_data(zstd([inner[:-20]])),
        "zstd-no-records": perf_data(zstd([b"\0" * 64])),
        "zstd-in-zstd": perf_data(zstd([zstd([inner])])),
        "zstd2": perf_data(zstd2([inner])),
        "zstd2-cut-records": perf_data(zstd2([inner[:100], inner[100:333], inner[333:]]) + lost(30, 2)),
        "zstd2-too-long": perf_data(zstd2([inner], claim=9)),
        "zstd2-huge": perf_data(zstd2([inner], claim=1 << 63)),
        "zstd2-short": perf_data(record(83, 0, b"")),
        "zstd2-in-zstd": perf_data(zstd([zstd2([inner])])),
        "threads": threads(perf_data(sorted_data, feats={**features(), 24: b"\1" + b"\0" * 7}), user + lost(30, 2)),
        "threads-zstd2": threads(perf_data(zstd2([inner]), feats={**features(), 24: b"\1" + b"\0" * 7}), zstd2([inner])),
        "threads-damaged": threads(perf_data(sorted_data), user + b"\0" * 8),
        "threads-missing": perf_data(b"", feats={**features(), 24: b"\1" + b"\0" * 7}),
        "unknown-kinds": perf_data(record(200, 0, b"\0" * 8) + record(40, 0, b"\0" * 8)),
        "tasks": perf_data(tasks),
        "modules": perf_data(kernel_map() + mods + sample(5, in_mods)),
        "tasks-and-modules": perf_data(tasks + mods + sample(12, in_mods)),
        "short-fork": perf_data(record(7, 0, b"\0" * 16) + tasks),
        "sorted": perf_data(sorted_data),
        "unsorted": good,
        "totals": perf_data(sorted_data, gap=totals()),
        "totals-partial": perf_data(sorted_data, gap=totals(
            b'{"profile":{"complete":false,"samples":2,"missing":3,"error":"full"}}')),
        "totals-old": perf_data(sorted_data, feats={**features(), **OLD_TOTALS}),
        "totals-long": perf_data(sorted_data, gap=totals(size=1 << 63)),
        "totals-cut": perf_data(sorted_data, feats={}, gap=totals())[:-20],
        "no-features": perf_data(sorted_data, feats={}),
        "no-samples": perf_data(b""),
        "unfinished": perf_data(mixed, feats={}, data_size=0),
        "cut": good[: 256 + 200],
        "cut-features": good[:-40],
        "markers": pipe(marker(5, [], b"start: go\0") + marker(7, stack, b"breakpoint: f+0x10\0"),
                        MARKER_ATTRS),
        "markers-odd": pipe(b"".join(marker(9, stack[:1], raw) for raw in (
            b"start go\0", b"other: go\0", b": \0", b"stop: ", b"", b"console: " + b"x" * 5000)),
            MARKER_ATTRS),
        "markers-size": pipe(marker(5, stack, b"stop: x\0", 0xFFFFFFFF) +
                             marker(5, stack, b"stop: x\0", 4000), MARKER_ATTRS),
        "exit-times": perf_data(b"".join(exit_time(9 + i, stack, raw) for i, raw in enumerate((
            b"KEXT" + struct.pack("<Q", 5), b"KEXT" + b"\xff" * 8, b"KEXT" + b"\0" * 8, b"KEXT" + b"\0" * 4, b"", b"\0" * 4,
            b"KMEM" + b"\0" * 40 + b"\0\0\0\0KEXT" + struct.pack("<Q", 7)))), attrs=[attr(0x5A7)]),
        "two-events": perf_data(mixed, attrs=[attr(), attr()]),
        "different-events": perf_data(mixed, attrs=[attr(), attr(sample_type=0x7)]),
        "compressed": perf_data(sorted_data + record(81, 0, b"\x28\xb5\x2f\xfd" + b"\0" * 12)),
        "read-group": perf_data(
            record(9, 1, struct.pack("<QQQQQ", stack[0], 1, 5, 1, 0)), attrs=[attr(0x11, 0xF)], feats={}),
        **rare_seeds(stack),
        "zero-size-record": perf_data(sorted_data + struct.pack("<IHH", 9, 0, 0)),
        "huge-chain": perf_data(record(9, 1, struct.pack("<QIIQIIQQ", 1, 1, 1, 1, 0, 0, 1, 1 << 61))),
        "identifier": perf_data(
            record(9, 1, struct.pack("<QQIIQ", 1, stack[0], 1, 1, 9)), attrs=[attr(0x10007, 0)], feats={}),
        # Too short for the fields that must end it: they would overlap the header.
        "short-map": perf_data(record(1, 1, b"\0" * 16) + sorted_data),
        "pipe": MAGIC + struct.pack("<Q", 16) + b"\0" * 64,
        "big-endian": MAGIC[::-1] + b"\0" * 100,
        "empty": b"",
        "not-perf": b"hello, world\n" * 20,
    }
    os.makedirs(out, exist_ok=True)
    for key, value in seeds.items():
        with open(os.path.join(out, key), "wb") as f:
            f.write(value)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
