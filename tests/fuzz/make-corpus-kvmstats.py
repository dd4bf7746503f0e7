#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make-corpus-kvmstats.py [OUT]: writes tests/fuzz/corpus/fuzz_kvmstats.

vm and vcpu are what this host's KVM gives for an empty machine with one vCPU (all counters are
0; the id is replaced, it holds a process number); the others are made from vcpu.
"""

import fcntl
import os
import struct
import sys

KVM_CREATE_VM, KVM_CREATE_VCPU, KVM_GET_STATS_FD = 0xae01, 0xae41, 0xaece
HEADER = struct.Struct("<6I")
DESC = 16

out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                         "corpus", "fuzz_kvmstats")
os.makedirs(out, exist_ok=True)


def put(name, data):
    with open(os.path.join(out, name), "wb") as f:
        f.write(data)


def stats_of(fd):
    stats = fcntl.ioctl(fd, KVM_GET_STATS_FD, 0)
    data = bytearray(os.pread(stats, 1 << 18, 0))
    os.close(stats)
    _, name_size, _, id_offset, _, _ = HEADER.unpack_from(data)
    data[id_offset:id_offset + name_size] = b"kvm".ljust(name_size, b"\0")
    return data


def changed(data, at, form, value):
    copy = bytearray(data)
    struct.pack_into(form, copy, at, value)
    return copy


kvm = os.open("/dev/kvm", os.O_RDWR)
vm = fcntl.ioctl(kvm, KVM_CREATE_VM, 0)
vcpu = fcntl.ioctl(vm, KVM_CREATE_VCPU, 0)
put("vm", stats_of(vm))
real = stats_of(vcpu)
put("vcpu", real)
_, name_size, n, _, desc, data = HEADER.unpack_from(real)
put("cut-header", real[:20])
put("cut-table", real[:desc + 3 * (DESC + name_size) - 1])
put("name-size-0", changed(real, 4, "<I", 0))
put("name-size-huge", changed(real, 4, "<I", 0xffffffff))
put("name-size-other", changed(real, 4, "<I", 100))
put("number-huge", changed(real, 8, "<I", 0xffffffff))
put("number-0", changed(real, 8, "<I", 0))
put("table-outside", changed(real, 16, "<I", 0xfffffff0))
put("data-outside", changed(real, 20, "<I", 0xfffffff0))
put("value-outside", changed(real, desc + 8, "<I", 0xfffffff8))
put("value-size-0", changed(real, desc + 6, "<H", 0))
put("value-size-huge", changed(real, desc + 6, "<H", 0xffff))
put("no-terminator", real[:desc + DESC] + b"x" * name_size + real[desc + DESC + name_size:])
put("type-unknown", changed(real, desc, "<I", 0xffffffff))
