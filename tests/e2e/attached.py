# SPDX-License-Identifier: GPL-2.0-or-later
"""Which techniques of `kvmprof attach` there are on this host, and whether one was used."""

import ctypes
import functools
import os
import struct
import subprocess

import e2e
from e2e import check


BPF, BPF_PROG_LOAD, RAW_TRACEPOINT = 321, 5, 17    # include/uapi/linux/bpf.h; 321 is x86-64's


def takes_programs():
    """Whether BPF must work, found out without kvmprof: the kernel tells its types, and a program that only
    returns can be loaded by us."""
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return False
    code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xb7, 0, 0, 0, 0x95, 0, 0, 0))    # r0 = 0; exit
    licence = ctypes.create_string_buffer(b"GPL")
    attr = ctypes.create_string_buffer(struct.pack("<IIQQ", RAW_TRACEPOINT, 2, ctypes.addressof(code),
                                                   ctypes.addressof(licence)), 128)
    fd = ctypes.CDLL(None, use_errno=True).syscall(BPF, BPF_PROG_LOAD, attr, len(attr))
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def host_takes_bpf():
    """Whether samples by BPF must work: its KVM is one whose vCPUs' registers stand in memory."""
    return os.path.exists("/sys/module/kvm_pvm") and takes_programs()


@functools.lru_cache(maxsize=None)
def why_no_bpf():
    """None where BPF can be used; else why not, as kvmprof says it. Where the host takes BPF, it fails."""
    boot = e2e.Boot("-o", "why.data", "--append", "seconds=60")
    boot.wait_for("demo: start", 60)
    p = subprocess.run([e2e.KVMPROF, "attach", str(boot.process.pid), "--technique", "bpf", "--samples", "1",
                        "-o", "why_not.data", "--no-buildid-cache", "--image",
                        e2e.os.path.join(e2e.BUILD, "guest", "demo.elf")],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    boot.process.kill()
    boot.wait(60)
    if p.returncode == 0:
        return None
    check(p.stderr.count("\n") == 1, "more than one line: " + p.stderr)
    check(not host_takes_bpf(), "this host takes BPF programs, but: " + p.stderr)
    e2e.left_out("no BPF on this host: " + p.stderr.strip())
    return p.stderr.strip()


def techniques():
    return ["ptrace"] if why_no_bpf() else ["bpf", "ptrace"]


def check_technique(attach, technique, least):
    """A summary's part on attach: what was asked for was done."""
    check(attach["technique"] == technique, "by %s: %s" % (technique, attach))
    check((attach["samples_by_bpf"] >= least) if technique == "bpf" else not attach["samples_by_bpf"],
          "samples by BPF: %s" % attach)
    if technique == "bpf":
        check(attach["bpf"]["compared"] > 0 and "why_not" not in attach["bpf"], "not compared: %s" % attach)
