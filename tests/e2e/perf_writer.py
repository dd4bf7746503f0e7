# SPDX-License-Identifier: GPL-2.0-or-later
"""perf.data files with what this host cannot record, byte by byte from perf's description of the format.

Source: include/uapi/linux/perf_event.h (attributes, records, contexts) and
tools/perf/Documentation/perf.data-file-format.txt (header, features) of Linux 7.1."""

import struct

IP, TID, TIME, READ, CALLCHAIN, CPU, PERIOD, BRANCH, IDENTIFIER = (
    1 << b for b in (0, 1, 2, 4, 5, 7, 8, 11, 16))
MODES = {"unknown": 0, "kernel": 1, "user": 2, "hypervisor": 3, "guest kernel": 4, "guest user": 5}
CONTEXT = {"hv": -32, "kernel": -128, "user": -512, "deferred": -640, "guest": -2048,
           "guest kernel": -2176, "guest user": -2560}
MMAP2, COMM, SAMPLE, DEFERRED = 10, 3, 9, 22
FINISHED_ROUND = 68
SAMPLE_ID_ALL, MMAP2_FLAG, DEFER_CALLCHAIN, DEFER_OUTPUT = (1 << b for b in (18, 23, 38, 39))


def context(name):
    return CONTEXT[name] & (1 << 64) - 1


class PerfFile:
    """One event of the name, whose samples have IP, TID, TIME, CPU, PERIOD and what `extra` adds."""

    def __init__(self, extra=0, flags=0, branch_type=0, event="cycles"):
        self.type = IP | TID | TIME | CPU | PERIOD | IDENTIFIER | extra
        self.flags = SAMPLE_ID_ALL | MMAP2_FLAG | 1 << 8 | 1 << 9 | flags
        self.branch_type, self.event = branch_type, event
        self.records, self.ids, self.time = [], [], 1000000000

    def record(self, kind, misc, body):
        body += b"\0" * (-len(body) % 8)
        self.records.append(struct.pack("<IHH", kind, misc, 8 + len(body)) + body)

    def sample_id(self, tid):
        return struct.pack("<IIQIIQ", tid, tid, self.time, 0, 0, 1)

    def comm(self, pid, name):
        text = name.encode() + b"\0"
        self.record(COMM, 0, struct.pack("<II", pid, pid) + text + b"\0" * (-len(text) % 8) + self.sample_id(pid))

    def map(self, mode, pid, place, path, build_id=None, inode=None):
        """place: address, length, offset; build_id: bytes; inode: major, minor, number, generation."""
        text = path.encode() + b"\0"
        if build_id:
            file = struct.pack("<B3x", len(build_id)) + build_id + b"\0" * (20 - len(build_id))
        else:
            file = struct.pack("<IIQQ", *(inode or (0, 0, 0, 0)))
        self.record(MMAP2, MODES[mode] | (1 << 14 if build_id else 0),
                    struct.pack("<IIQQQ", pid, pid, *place) + file + struct.pack("<II", 5, 2) + text +
                    b"\0" * (-len(text) % 8) + self.sample_id(pid))

    def sample(self, mode, pid, ip, chain=None, branches=None, period=1):
        self.time += 1000
        body = struct.pack("<QQIIQIIQ", 1, ip, pid, pid, self.time, 0, 0, period)
        if chain is not None:
            body += struct.pack("<Q%dQ" % len(chain), len(chain), *chain)
        if branches is not None:
            body += struct.pack("<Q", len(branches))
            for came, went in branches:
                body += struct.pack("<QQQ", came, went, 0)
        self.record(SAMPLE, MODES[mode], body)

    def deferred(self, pid, cookie, chain):
        self.time += 1000
        self.record(DEFERRED, MODES["user"], struct.pack("<QQ%dQ" % len(chain), cookie, len(chain), *chain) +
                    self.sample_id(pid))

    def build_id(self, mode, name, build_id, tells_length=True):
        """For the table at the end. Perf before 5.12 pads shorter ids to 20 bytes and does not tell their length."""
        text = name.encode() + b"\0"
        text += b"\0" * (-len(text) % 64)
        self.ids.append(struct.pack("<IHHi20sB3x", 0, MODES[mode] | (1 << 15 if tells_length else 0), 36 + len(text),
                                    -1, build_id, len(build_id) if tells_length else 0) + text)

    def attr(self):
        a = struct.pack("<IIQQQQQ", 0, 136, 0, 1, self.type, 4, self.flags)
        a += b"\0" * 24 + struct.pack("<Q", self.branch_type)
        return a + b"\0" * (136 - len(a))

    def event_desc(self):
        name = self.event.encode() + b"\0"
        name += b"\0" * (-len(name) % 64)
        return struct.pack("<II", 1, 136) + self.attr() + struct.pack("<II", 1, len(name)) + name + struct.pack("<Q", 1)

    def write(self, path):
        strings = b"6.1.0-test\0"
        strings += b"\0" * (-len(strings) % 64)
        features = {4: struct.pack("<I", len(strings)) + strings, 12: self.event_desc()}
        if self.ids:
            features[2] = b"".join(self.ids)
        data = b"".join(self.records)
        attrs = 104 + 8
        start = attrs + 136 + 16
        bits = sum(1 << f for f in features)
        head = b"PERFILE2" + struct.pack("<QQQQQQQQ4Q", 104, 136 + 16, attrs, 136 + 16, start, len(data), 0, 0,
                                         bits, 0, 0, 0)
        at = start + len(data) + 16 * len(features)
        index = blobs = b""
        for f in sorted(features):
            index += struct.pack("<QQ", at + len(blobs), len(features[f]))
            blobs += features[f]
        with open(path, "wb") as out:
            out.write(head + struct.pack("<Q", 1) + self.attr() + struct.pack("<QQ", 104, 8) + data + index + blobs)
