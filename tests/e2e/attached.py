# SPDX-License-Identifier: GPL-2.0-or-later
"""Which techniques of `kvmprof attach` there are on this host, and whether one was used."""

import functools
import subprocess

import e2e
from e2e import check, say


@functools.lru_cache(maxsize=None)
def why_no_bpf():
    """None where BPF can be used; else why not, as kvmprof says it."""
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
