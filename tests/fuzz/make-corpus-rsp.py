#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Streams of packets as gdbstubs send them, for fuzz_rsp: make-corpus-rsp.py [DIR]"""

import os
import sys

OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                        "corpus", "fuzz_rsp")
NAMES = ("rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip eflags cs ss fs_base "
         "gs_base k_gs_base cr0 cr2 cr3 cr4 efer").split()
SHORT = ("eflags", "cs", "ss")


def packet(data):
    escaped = bytearray()
    for b in data:
        if b in b"$#}*":
            escaped += bytes((0x7d, b ^ 0x20))
        else:
            escaped.append(b)
    return b"$" + bytes(escaped) + b"#%02x" % (sum(escaped) & 255)


xml = ("<target><!-- <reg name='no' bitsize='8'/> -->" + "".join(
    "<reg name=\"%s\" bitsize='%d'/>" % (n, 32 if n in SHORT else 64) for n in NAMES) +
    "</target>").encode()
regs = b"".join((b"12345678" if n in SHORT else b"00112233445566ff") for n in NAMES)
text = (b"GDT=     ffffffff81002000 0000004f\r\nIDT=     fffffe0000000000 00000fff\r\n"
        b"FlatView #0\r\n AS \"memory\", root: system\r\n"
        b"  0000000000000000-000000000009ffff (prio 0, ram): pc.ram KVM\r\n"
        b"  00000000000a0000-00000000000bffff (prio 1, i/o): vga\r\n"
        b"  0000000000100000-0000000007ffffff (prio 0, ram): pc.ram\r\nFlatView #1\r\n")
FILES = {
    "session": packet(b"T02thread:01;") + b"+" + packet(b"l" + xml) + b"+" + packet(regs),
    "unknown": packet(b"l" + xml) + packet(b"x" * len(regs)),
    "includes": packet(b"l<target><xi:include href=\"i386-64bit.xml\"/><xi:include href='b'/>"),
    "monitor": packet(text) + packet(b"O" + text.hex().encode()),
    "repeats": b"$0* 00*\"#9c$0*~#d8$x*#00",
    "broken": b"$OK#9b$O}#00$#00#00$$$OK#9a",
}
os.makedirs(OUT, exist_ok=True)
for name, data in FILES.items():
    with open(os.path.join(OUT, name), "wb") as f:
        f.write(data)
