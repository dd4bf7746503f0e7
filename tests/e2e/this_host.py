#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 600 s
# tests: not svm, host
"""this_host.py KVMPROF SCRATCH: the features of the emulated hosts' tests, on this machine's own KVM."""

import e2e
import emulated
import vmx_host

e2e.need_kvm()
e2e.prefer_us()
vmx_host.run(emulated.Here())
