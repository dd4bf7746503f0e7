# SPDX-License-Identifier: GPL-2.0-or-later
"""Unified kernel images for tests: a PE32+ file with these sections and no code, as UAPI.5 and the
PE Format describe it. Has no other module, so that the fuzz corpus is made with it, too."""

import struct

ALIGN = 512
PE = 0x80


def section(name, length, offset, memory=None):
    """An entry of the section table; memory: its length there, if not the same."""
    return struct.pack("<8sIIIIIIHHI", name.encode(), length if memory is None else memory, 0x10000,
                       (length + ALIGN - 1) // ALIGN * ALIGN, offset, 0, 0, 0, 0, 0x40000040)


def headers(table, count, machine=0x8664, magic=0x20B, pe=PE):
    dos = (b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", pe)).ljust(PE, b"\0")
    optional = struct.pack("<H", magic).ljust(240, b"\0")
    coff = struct.pack("<IHHIIIHH", 0x4550, machine, count, 0, 0, 0, len(optional), 0x22E)
    return dos + coff + optional + table


def image(sections, **kw):
    """sections: (name, bytes), the stub's own .text is put before them."""
    sections = [(".text", b"\xc3" * 16)] + list(sections)
    at = (len(headers(b"", 0)) + 40 * len(sections) + ALIGN - 1) // ALIGN * ALIGN
    table, body = b"", b""
    for name, data in sections:
        table += section(name, len(data), at + len(body))
        body += data.ljust((len(data) + ALIGN - 1) // ALIGN * ALIGN, b"\0")
    return headers(table, len(sections), **kw).ljust(at, b"\0") + body


def uki(kernel, initrd=None, cmdline=None, osrel=None, uname=None, ucode=None, **kw):
    """In the order of UAPI.5."""
    parts = [(".linux", kernel), (".osrel", osrel), (".cmdline", cmdline), (".initrd", initrd),
             (".ucode", ucode), (".uname", uname)]
    return image([(name, data.encode() if isinstance(data, str) else data)
                  for name, data in parts if data is not None], **kw)
