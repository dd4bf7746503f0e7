#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: kernel, 1 s: full
# tests: kernel, 1 s: smp-fp
# tests: kernel, 1 s: tiny
# tests: slow, at most 1800 s: smp-fp
# tests: not svm, files
"""guest_kernel.py KVMPROF SCRATCH tiny|smp-fp|full: has a guest kernel made, or finds it made.

A step of its own, so that the minutes of a build are not a boot's."""

import os

import e2e
from e2e import check

e2e.need_kvm()
directory = e2e.built_kernel(e2e.EXTRA[0])
for name in ("vmlinux", "bzImage", "System.map", "config"):
    check(os.path.getsize(os.path.join(directory, name)) > 0, "%s is empty" % name)
e2e.finish()
