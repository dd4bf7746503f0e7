#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the seeds of fuzz_image, fuzz_load and fuzz_mmu.

    tests/fuzz/make-corpus-boot.py [DIR]    (default: tests/fuzz/corpus)

The output is the same on every run.
"""

import bz2
import lzma
import os
import struct
import sys
import zlib

TOP = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "corpus")


def put(target, name, data):
    path = os.path.join(TOP, target)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "wb") as f:
        f.write(data)


def ehdr(entry=0x1000040, phnum=2, etype=2, machine=62, cls=2, data=1, phoff=64, phentsize=56):
    ident = b"\x7fELF" + bytes([cls, data, 1]) + bytes(9)
    return ident + struct.pack("<HHIQQQIHHHHHH", etype, machine, 1, entry, phoff, 0, 0, 64,
                               phentsize, phnum, 0, 0, 0)


def phdr(off, gpa, filesz, memsz, ptype=1, vaddr=0):
    return struct.pack("<IIQQQQQQ", ptype, 7, off, vaddr, gpa, filesz, memsz, 0x1000)


def elf(**kw):
    head = ehdr(**kw) + phdr(0x200, 0x1200000, 0x80, 0x4000) + phdr(0x100, 0x1000000, 0x100, 0x100)
    body = head.ljust(0x140, b"\0") + b"Linux version 6.1.0-test\0"
    return body.ljust(0x200, b"\x90") + bytes(range(0x80))


def zstd(data):
    """One frame of one raw block."""
    return (b"\x28\xb5\x2f\xfd" + b"\xa0" + struct.pack("<I", len(data)) +
            struct.pack("<I", len(data) << 3 | 1)[:3] + data)


def lz4(data):
    """Legacy frame, one block, literals only."""
    n = len(data) - 15
    block = b"\xf0" + b"\xff" * (n // 255) + bytes([n % 255]) + data
    return struct.pack("<II", 0x184C2102, len(block)) + block


def lzma_alone(data):
    return lzma.compress(data, format=lzma.FORMAT_ALONE)


def xz(data):
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
    return lzma.compress(data, check=lzma.CHECK_CRC32, filters=filters)


def gz(data):
    c = zlib.compressobj(9, zlib.DEFLATED, 31)
    return c.compress(data) + c.flush()


def bzimage(payload, version=0x020F, xloadflags=0x3F, length=None, sects=1, align=0x200000,
            pref=0x1000000, init_size=0x300000, loadflags=1, missing=0, code32=0):
    setup = bytearray(512 * (sects + 1))
    setup[0x1F1] = sects
    struct.pack_into("<H", setup, 0x1FE, 0xAA55)
    setup[0x200:0x202] = b"\xeb\x6a"
    setup[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", setup, 0x206, version)
    struct.pack_into("<H", setup, 0x20E, 0x80)
    setup[0x211] = loadflags
    struct.pack_into("<I", setup, 0x214, code32)
    struct.pack_into("<I", setup, 0x22C, 0x7FFFFFFF)
    struct.pack_into("<I", setup, 0x230, align)
    setup[0x234] = 1
    struct.pack_into("<H", setup, 0x236, xloadflags)
    struct.pack_into("<I", setup, 0x238, 2047)
    struct.pack_into("<I", setup, 0x248, 0x10)
    struct.pack_into("<I", setup, 0x24C, len(payload) if length is None else length)
    struct.pack_into("<Q", setup, 0x258, pref)
    struct.pack_into("<I", setup, 0x260, init_size)
    setup[0x280:0x290] = b"6.1.0-test (a@b)"
    kernel = bytes(16) + payload
    struct.pack_into("<I", setup, 0x1F4, (len(kernel) + missing + 15) // 16)
    return bytes(setup) + kernel


MB_MAGIC = 0x1BADB002


def mb_header(flags=0, *fields):
    return struct.pack("<III", MB_MAGIC, flags, -(MB_MAGIC + flags) & 0xFFFFFFFF) + \
        struct.pack("<%dI" % len(fields), *fields)


def elf32(entry=0x100000, phnum=1, etype=2, machine=3, shnum=0, shoff=0, shentsize=40,
          phdrs=None, header=None):
    """ELF32 with a segment at 1 MiB that begins with a multiboot header, and symbols."""
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    ehdr32 = ident + struct.pack("<HHIIIIIHHHHHH", etype, machine, 1, entry, 52, shoff, 0, 52, 32,
                                 phnum, shentsize, shnum, 2 if shnum else 0)
    if phdrs is None:
        phdrs = struct.pack("<IIIIIIII", 1, 0x200, 0x100000, 0x100000, 0x80, 0x2000, 7, 0x1000)
    body = (ehdr32 + phdrs).ljust(0x200, b"\0")
    return body + (mb_header(3) if header is None else header).ljust(0x80, b"\x90")


def elf32_symbols():
    at = 0x280
    syms = bytes(16) + struct.pack("<IIIBBH", 1, 0x100010, 8, 2, 0, 1)
    names = b"\0start\0.text\0"
    sections = bytes(40)
    sections += struct.pack("<10I", 7, 1, 6, 0x100000, 0x200, 0x80, 0, 0, 4, 0)
    sections += struct.pack("<10I", 0, 3, 0, 0, at + 32, len(names), 0, 0, 1, 0)
    sections += struct.pack("<10I", 0, 2, 0, 0, at, 32, 2, 1, 4, 16)
    return elf32(shnum=4, shoff=at + 64) + (syms + names).ljust(64, b"\0") + sections


def pvh_note(entry, size=4):
    return struct.pack("<III", 4, size, 18) + b"Xen\0" + entry.to_bytes(size, "little")


def elf_pvh(entry=0x1000010, size=4, owner=0x300):
    note = pvh_note(entry, size)
    head = ehdr(phnum=3) + phdr(0x200, 0x1200000, 0x80, 0x4000) + \
        phdr(0x100, 0x1000000, 0x100, 0x100) + phdr(owner, 0, len(note), len(note), ptype=4)
    return head.ljust(0x300, b"\x90") + note


def flat(load=0x100000, end=0, bss=0, entry=0x100020, header=None, pad=64):
    h = mb_header(0x10003, load + pad if header is None else header, load, end, bss, entry)
    return bytes(range(1, pad + 1)) + h.ljust(256, b"\x90")


def mb2_header(*tags):
    """tags: (type, flags, field...)"""
    body = b""
    for kind, flags, *fields in tags + ((0, 0),):
        tag = struct.pack("<HHI%dI" % len(fields), kind, flags, 8 + 4 * len(fields), *fields)
        body += tag.ljust((len(tag) + 7) & ~7, b"\0")
    n = 16 + len(body)
    return struct.pack("<IIII", 0xE85250D6, 0, n, -(0xE85250D6 + n) & 0xFFFFFFFF) + body


def multiboot2_seeds(seeds):
    plain = mb2_header((1, 0, 6, 15), (3, 0, 0x100040))
    address = (2, 0, 0x100040, 0x100000, 0x100200, 0x104000)
    seeds.update({
        "mb2-elf32": elf32(header=plain), "mb2-elf32-no-end": elf32(header=plain[:-8]),
        "mb2-unknown": elf32(header=mb2_header((99, 0, 1))),
        "mb2-optional": elf32(header=mb2_header((99, 1, 1), (1, 1, 99))),
        "mb2-moves": elf32(header=mb2_header((10, 0, 0x100000, 0xFFFFFFFF, 4096, 0))),
        "mb2-short-tag": elf32(header=mb2_header((2, 0, 1))),
        "mb2-and-1": elf32(header=mb_header(3).ljust(16, b"\0") + plain),
        "mb2-flat": bytes(64) + mb2_header(address, (3, 0, 0x100050)).ljust(0x200, b"\x90"),
        "mb2-flat-start": bytes(64) + mb2_header(
            (2, 0, 0x100040, 0xFFFFFFFF, 0, 0), (3, 0, 0x100050)).ljust(0x100, b"\x90"),
        "mb2-flat-no-entry": bytes(64) + mb2_header(address).ljust(0x200, b"\x90"),
        "mb2-flat-cut": bytes(64) + mb2_header(address)[:30],
    })


def multiboot_seeds(seeds):
    multiboot2_seeds(seeds)
    seeds.update({
        "elf32": elf32(), "elf32-symbols": elf32_symbols(),
        "elf32-dyn": elf32(etype=3), "elf32-arm": elf32(machine=40),
        "elf32-short": elf32()[:40], "elf32-no-phdrs": elf32(phnum=0),
        "elf32-many-phdrs": elf32(phnum=65535),
        "elf32-sections-outside": elf32(shnum=9, shoff=0xFFFFFFF0),
        "elf32-offset-wraps": elf32(phdrs=struct.pack("<IIIIIIII", 1, 0xFFFFFFF0, 0, 0x100000,
                                                      0x80, 0x80, 7, 1)),
        "elf32-top": elf32(entry=0xFFFFF000, phdrs=struct.pack(
            "<IIIIIIII", 1, 0x200, 0, 0xFFFFF000, 0x80, 0x1000, 7, 1)),
        "elf32-no-multiboot": elf32(header=b""),
        "elf32-unknown-flags": elf32(header=mb_header(0x100)),
        "elf32-entry-outside": elf32(header=mb_header(0x10003, 0x100000, 0x100000, 0, 0, 0x900000)),
        "gz-elf32": gz(elf32()), "gz-elf": gz(elf()), "gz-nothing": gz(bytes(5000)),
        "elf-pvh": elf_pvh(), "elf-pvh-64": elf_pvh(size=8),
        "elf-pvh-outside": elf_pvh(entry=0x90), "elf-pvh-note-outside": elf_pvh(owner=0x3000),
        "elf-pvh-high": elf_pvh(entry=0x1_0100_0010, size=8),
        "flat": flat(), "flat-bss": flat(end=0x100100, bss=0x104000),
        "flat-low": flat(load=0x1000, entry=0x1010),
        "flat-end-before": flat(end=0x100), "flat-end-far": flat(end=0x200000),
        "flat-header-far": flat(header=0x900000), "flat-bss-top": flat(bss=0xFFFFFFFF),
        "flat-entry-outside": flat(entry=0x50), "flat-cut": flat()[:90],
        "bz-linuxlike": linuxlike(), "bz-linuxlike-32": linuxlike(xloadflags=0),
        "bz-linuxlike-16": linuxlike(version=0x0207, code32=0, xloadflags=0),
        "bz-linuxlike-empty": linuxlike(body=b""),
    })


def linuxlike(version=0x020C, code32=0x100000, xloadflags=9, body=bytes(range(256)) * 4):
    b = bytearray(bzimage(body, version=version, xloadflags=xloadflags, length=0, pref=0x100000,
                          align=0x1000, init_size=0x2000, code32=code32))
    struct.pack_into("<I", b, 0x248, 0)
    if not body:
        del b[1024:]
    return bytes(b)


def image_seeds():
    plain = elf()
    size = struct.pack("<I", len(plain))
    seeds = {
        "elf": plain,
        "elf-dyn": elf(etype=3),
        "elf-32bit": elf(cls=1),
        "elf-arm64": elf(machine=183),
        "elf-core": elf(etype=4),
        "elf-entry-outside": elf(entry=0x2000000),
        "elf-linked-entry": ehdr(entry=0xFFFFFFFF81000040, phnum=1) + phdr(
            0, 0x1000000, 0x78, 0x1000, vaddr=0xFFFFFFFF81000000),
        "elf-linked-high": ehdr(entry=0xFFFFFFFF81000040, phnum=1) + phdr(
            0, 0xFFFFFFFF81000000, 0x78, 0x1000, vaddr=0xFFFFFFFF81000000),
        "elf-many-phdrs": elf(phnum=65535),
        "elf-phoff-wraps": elf(phoff=2**64 - 8),
        "elf-overlap": ehdr() + phdr(0, 0x1000000, 64, 0x1000) + phdr(0, 0x1000F00, 64, 0x1000),
        "elf-address-wraps": ehdr(entry=0, phnum=1) + phdr(0, 2**64 - 16, 16, 32),
        "elf-offset-wraps": ehdr(phnum=1) + phdr(2**64 - 16, 0x1000000, 32, 32),
        "elf-3g-bss": ehdr(phnum=1) + phdr(0, 0x1000000, 64, 0xC0000000),
        "bz-none": bzimage(plain),
        "bz-gzip": bzimage(gz(plain)),
        "bz-xz": bzimage(xz(plain) + size),
        "bz-lzma": bzimage(lzma_alone(plain) + size),
        "bz-bzip2": bzimage(bz2.compress(plain) + size),
        "bz-zstd": bzimage(zstd(plain) + size),
        "bz-lz4": bzimage(lz4(plain) + size),
        "bz-lzo": bzimage(b"\x89LZO\0\r\n\x1a\n" + bytes(32)),
        "bz-bomb": bzimage(gz(bytes(16 << 20))),
        "bz-truncated": bzimage(gz(plain)[:-40]),
        "bz-length-wraps": bzimage(gz(plain), length=0xFFFFFFF0),
        "bz-32bit": bzimage(gz(plain), xloadflags=0),
        "bz-old": bzimage(gz(plain), version=0x0205, code32=0x100000),
        # what only the way through the decompressor looks at
        "bz-large": bzimage(gz(plain + bytes(1024)) + bytes(2048)),
        "bz-no-alignment": bzimage(gz(plain), align=0),
        "bz-odd-alignment": bzimage(gz(plain), align=0x300000),
        "bz-largest-alignment": bzimage(gz(plain), align=1 << 31),
        "bz-init-size": bzimage(gz(plain), init_size=0xFFFFFFFF),
        "bz-pref-address-wraps": bzimage(gz(plain), pref=2**64 - 1),
        "bz-pref-address-odd": bzimage(gz(plain), pref=0x1000001),
        "bz-low": bzimage(gz(plain), loadflags=0),
        "bz-part-missing": bzimage(gz(plain) + bytes(2048), missing=4096),
        "text": b"root:x:0:0:root:/root:/bin/bash\n" * 20,
        "gzip": gz(b"initrd"),
        "qcow2": b"QFI\xfb" + bytes(100),
        "boot-sector": bytes(510) + b"\x55\xaa" + bytes(512),
        "arm64": b"MZ" + bytes(0x36) + b"ARM\x64" + bytes(64),
        "one-byte": b"\x7f",
    }
    multiboot_seeds(seeds)
    return seeds


def mmu_seed(gva, tables, cr3=0x1000, cr4=0x20, cr0=0x80000001, efer=0xD00):
    ram = bytearray(0x8000)
    for table, index, value in tables:
        struct.pack_into("<Q", ram, table + 8 * index, value)
    for i in range(0x6000, 0x8000):
        ram[i] = i & 0xFF
    return struct.pack("<5Q", cr0, cr3, cr4, efer, gva) + bytes(ram)


def mmu_seeds():
    kva = 0xFFFFFFFF81234567
    top, mid = kva >> 39 & 511, [(kva >> s) & 511 for s in (30, 21, 12)]
    walk = [(0x1000, top, 0x2003), (0x2000, mid[0], 0x3003), (0x3000, mid[1], 0x4003)]
    return {
        "4k": mmu_seed(kva, walk + [(0x4000, mid[2], 0x6003), (0x4000, mid[2] + 1, 0x7003)]),
        "2m": mmu_seed(kva & ~0xFFFFF, walk[:2] + [(0x3000, mid[1], 0x83)]),
        "1g": mmu_seed(0xFFFFFFFF80006000, [walk[0], (0x2000, mid[0], 0x83)]),
        "self": mmu_seed(kva, [(0x1000, i, 0x1003) for i in range(512)]),
        "5-level": mmu_seed(kva, [(0x5000, 511, 0x1003)] + walk + [(0x4000, mid[2], 0x6003)],
                            cr3=0x5000, cr4=0x1020),
        "outside": mmu_seed(kva, [(0x1000, top, 0x000FFFFFFFFFF003)]),
        "no-paging": mmu_seed(0x6800, [], cr0=1),
        "32-bit": mmu_seed(0x1000, [], efer=0),
        "top": mmu_seed(2**64 - 10, [(0x1000, 511, 0x2003), (0x2000, 511, 0x3003),
                                     (0x3000, 511, 0x4003), (0x4000, 511, 0x6003)]),
    }


def main():
    for name, data in image_seeds().items():
        put("fuzz_image", name, data)
        if name.startswith(("elf", "bz", "flat", "gz-")):
            put("fuzz_load", name, data)
    for name, data in mmu_seeds().items():
        put("fuzz_mmu", name, data)


main()
