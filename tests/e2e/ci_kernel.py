# SPDX-License-Identifier: GPL-2.0-or-later
"""A repository for the gate's templates, the action and the component: a small kernel that was built already, and a RAM disk
that changes from commit to commit; and a host without KVM whose QEMU is too old."""

import os
import shutil
import sys

import ci_runner
import compiled
import e2e
from e2e import check
from exact_engine import find_qemu

RULES = '[[rule]]\nname = "system calls"\nmetric = "syscall-instructions"\nthreshold = "1"\n' \
    '[[rule]]\nname = "all"\nmetric = "instructions"\nthreshold = "1 %"\n'
MAKEFILE = "defconfig:\n\t@touch .config\nvmlinux: bzImage .config\n\tcp $< $@\n"
VARIANTS = {"first": [], "same": [], "asks": ["-DPPIDS=11"], "maps": ["-DMAPS=11"]}


def fill(name):
    with open("work/gate-exact.toml", "w") as f:
        f.write(RULES)
    with open("work/Makefile", "w") as f:
        f.write(MAKEFILE)
    shutil.copy(os.path.join(e2e.built_kernel("tiny"), "bzImage"), "work/bzImage")
    compiled.freestanding("exact_init.c", "init", *VARIANTS[name])
    p = e2e.run(sys.executable, os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), "init", "work/init.cpio")
    check(p.status == 0, p.err)


def without_kvm():
    """Words before a command that then cannot open /dev/kvm; what is adapted where there are none."""
    if not os.path.exists("/dev/kvm"):
        return [], {}
    words = ["unshare", "-rm", "sh", "-c", "mount --bind /dev/kvm /dev/kvm && mount -o remount,bind,nodev /dev/kvm && "
             "exec \"$@\"", "sh"]
    if e2e.run(*words, "sh", "-c", "! (: <> /dev/kvm)").status == 0:
        return words, {}
    e2e.left_out("/dev/kvm cannot be hidden here: ENGINE=auto where there is none")
    return [], {"ENGINE": "exact"}


def fetched():
    """A cache without QEMU, a fetch-qemu.sh that has it from where it is, and a QEMU that is too old."""
    find_qemu()
    real = os.path.dirname(os.path.dirname(os.environ.pop("KVMPROF_QEMU")))
    script = "#!/bin/sh\necho fetch-qemu.sh >> \"$FAKE_LOG\"\nmkdir -p \"$KVMPROF_CACHE\"\n" \
        "ln -sfn %s \"$KVMPROF_CACHE/%s\"\n" % (real, os.path.basename(real))
    old = "echo 'QEMU emulator version 7.2.22 (Debian)'\n"
    ci_runner.FAKES["qemu-system-x86_64"] = old
    return {"scripts/fetch-qemu.sh": script}
