#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: not svm, ring0
"""All ModRM bytes in the search of tests/unit/vmm/pvm/test_simd_search.c, of which unit tests take a sample."""

import os

import e2e
from e2e import check, say

program = os.path.join(os.path.dirname(e2e.KVMPROF), "unit", "vmm", "pvm", "test_simd_search")
p = e2e.run(program, timeout=1500, env=dict(os.environ, KVMPROF_SIMD_SEARCH="all"))
say(p.out.strip())
check(p.status == 0 and " 0 differences" in p.out, "status %d: %s%s" % (p.status, p.out, p.err))
e2e.finish()
