#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""mend-qemu.py FILE: takes a defect out of a qemu-system-x86_64, in place.

QEMU 7.2, 10.0 and the sources since: VMRUN (helper_vmrun() in target/i386/tcg/system/svm_helper.c)
injects an interrupt by do_interrupt_x86_hardirq(), and before that notes its vector in the CPU's
exception_index. Nothing takes the note away. Whatever next ends QEMU's loop, such as a timer of the
host, finds it and delivers the interrupt a second time, also where interrupts are off. The note is
one store, and nothing that follows reads it: here it becomes a NOP of the same length.

The store is found by what the file says of itself, and not by its place: functions are in its
dynamic symbol table; exception_index's offset is what cpu_loop_exit_noexc() sets to -1; and in front of
the one call of do_interrupt_x86_hardirq() in helper_vmrun() there is one store of a register to
memory in front of the CPU's registers, where QEMU keeps the CPUState. Where that is not so, the
file stays as it is.

Exit status: 0 mended, 3 not what was looked for, 1 it could not be read or written, 2 usage."""

import re
import struct
import sys

FUNCTIONS = ("helper_vmrun", "do_interrupt_x86_hardirq", "cpu_loop_exit_noexc")
NOP6 = bytes.fromhex("660f1f440000")
BEFORE_CALL = 64    # bytes in which the store is
SHT_DYNSYM = 11


class Unknown(Exception):
    pass


def sections(data):
    """(type, address, offset, size, link) of each section."""
    offset, = struct.unpack_from("<Q", data, 40)
    entry, count = struct.unpack_from("<HH", data, 58)
    for i in range(count):
        _, kind, _, address, start, size, link = struct.unpack_from("<IIQQQQI", data, offset + i * entry)
        yield kind, address, start, size, link


def functions(data):
    """{name: (offset in the file, size)} of FUNCTIONS."""
    every = list(sections(data))
    found = {}
    for kind, _, start, size, link in every:
        if kind != SHT_DYNSYM:
            continue
        names = every[link][2]
        for at in range(start, start + size, 24):
            name, _, _, section, value, length = struct.unpack_from("<IBBHQQ", data, at)
            text = data[names + name:data.index(b"\0", names + name)].decode("ascii", "replace")
            if text in FUNCTIONS and 0 < section < len(every):
                found[text] = (value - every[section][1] + every[section][2], length)
    missing = [name for name in FUNCTIONS if name not in found]
    if missing:
        raise Unknown("it names no " + ", ".join(missing))
    return found


def one(what, matches):
    matches = list(matches)
    if len(matches) != 1:
        raise Unknown("%d %s, not one" % (len(matches), what))
    return matches[0]


def find(data):
    """Offset of the store in the file."""
    if data[:5] != b"\x7fELF\x02" or data[18:20] != b"\x3e\0":
        raise Unknown("it is no ELF file for x86-64")
    at = functions(data)
    # movl $-1, disp32(%rdi)
    start, size = at["cpu_loop_exit_noexc"]
    index = one("stores of -1 in cpu_loop_exit_noexc", re.finditer(rb"\xc7\x87(....)\xff{4}", data[start:start + size], re.S))
    index, = struct.unpack("<i", index[1])
    # call rel32; offsets in the file differ by as much as addresses, as both are in one section.
    start, size = at["helper_vmrun"]
    body = data[start:start + size]
    call = one("calls of do_interrupt_x86_hardirq in helper_vmrun", (
        m for m in re.finditer(rb"(?=\xe8(....))", body, re.S)
        if start + m.start() + 5 + struct.unpack("<i", m[1])[0] == at["do_interrupt_x86_hardirq"][0])).start()
    # mov %r32, disp32(%base), without a prefix that makes it 64 bits wide or its base another.
    first = max(call - BEFORE_CALL, 0)
    stores = []
    for m in re.finditer(rb"(?=\x89([\x80-\xbf])(....))", body[first:call], re.S):
        disp, = struct.unpack("<i", m[2])
        if m[1][0] & 7 != 4 and -0x10000 < disp < 0 and (disp - index) % 8 == 0:
            stores.append(start + first + m.start())
    return one("stores in front of that call", stores)


def main(argv):
    if len(argv) != 2:
        print("usage: mend-qemu.py FILE", file=sys.stderr)
        return 2
    try:
        with open(argv[1], "r+b") as f:
            data = f.read()
            where = find(data)
            f.seek(where)
            f.write(NOP6)
    except OSError as e:
        print("mend-qemu: %s: %s" % (argv[1], e.strerror), file=sys.stderr)
        return 1
    except (Unknown, struct.error, ValueError, IndexError) as e:
        print("mend-qemu: %s: left as it is: %s" % (argv[1], e), file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
