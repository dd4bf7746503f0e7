#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 600 s
# tests: not svm, host
"""A guest that runs a guest (the demo's mode=nested), on an emulated host with SVM.

The nested guest's code has a name in the guest, as both have the same page tables: samples must
not have it. Where KVM says when a nested guest runs (Linux 6.11) they are "[nested guest]" and its
share is what the guest measured; run and attach. (svm_host.py has an older KVM.)"""

import re

import e2e
import emulated
from e2e import check, say

POINTS = 1.5
SCRIPT = "echo '<<script>>'; kvmprof script -i /tmp/n.data"
RUN = "kvmprof run -o /tmp/n.data --append 'mode=nested seconds=2' 2>&1; " + SCRIPT
ATTACH = ("kvmprof run -F 1 -o /tmp/a.data --append 'mode=nested seconds=3' >/tmp/console 2>&1 &\n"
          "sleep 0.7; kvmprof attach $! --image /demo.elf -F 499 --duration 1.5 -q -o /tmp/n.data; wait\n"
          "cat /tmp/console; " + SCRIPT)


def shares(done, what):
    """Percent of the weight, by innermost frame."""
    samples = e2e.parse_script(done.out.partition("<<script>>\n")[2])
    check(done.status == 0 and len(samples) > 300, "%s: status %d, %d samples:\n%s" % (
        what, done.status, len(samples), done.out[:2000]))
    weight, total = {}, sum(s.period for s in samples) or 1
    for s in samples:
        name = s.stack.split(";")[-1]
        weight[name] = weight.get(name, 0) + s.period
    return {name: 100 * w / total for name, w in weight.items()}


def judge(what, done):
    found = shares(done, what)
    nested = found.get("[nested guest]", 0)
    m = re.search(r"nested: (\d+) of (\d+)", done.out)
    if not check(m, "%s: the guest did not run its guest: %s" % (what, done.out[:2000])):
        return
    expected = 100 * int(m[1]) / int(m[2])
    say("%s: nested guest %.1f %%, by its own clock %.1f %%" % (what, nested, expected))
    check(abs(nested - expected) < POINTS, "%s: %s, should be %.1f" % (what, found, expected))
    check("nested_guest" not in found, "%s: the nested guest's code has a name of the guest: %s" % (what, found))
    check(found.get("nested_host", 0) > 40, "%s: the hypervisor's own code: %s" % (what, found))


def main():
    host = emulated.Host("--kernel", "6.12")
    demo = e2e.os.path.join(e2e.os.path.dirname(e2e.KVMPROF), "guest", "demo.elf")
    done = host.steps({"check": "kvmprof check", "run": RUN, "attach": ATTACH}, "--file", "demo.elf=" + demo)
    check(re.search("nested guests are told apart +yes", done["check"].out), "check:\n" + done["check"].out)
    judge("run", done["run"])
    judge("attach", done["attach"])
    e2e.finish()


main()
