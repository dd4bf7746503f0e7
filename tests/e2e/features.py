#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""features.py LOG...: what works on which kind of host, as a table for docs/hosts.md.

The tests of hosts (this_host.py, svm_host.py, vmx_host.py) judge the same features, and print a
line for each:

    column = features.Column("SVM (QEMU's TCG)")
    column.judge("check", check_check, done["check"])   # ok, or what failed in there
    column.cannot("hardware counters", "it has no PMU")
    column.show()

The LOGs are what they printed; tests/run.py leaves them in build/test-logs.
"""

import re
import sys

ROWS = ("check", "demo against its truth", "triple fault", "exits as samples", "stat", "software events",
        "markers on the console", "breakpoints", "snapshot", "attach",
        "where time went", "where, attached", "hardware counters")
LINE = re.compile(r"^feature: ([^|]+) \| ([^|]+) \| (.+)$", re.M)


class Column:
    def __init__(self, host):
        self.host = host
        self.cells = {}

    def judge(self, row, test, *args):
        """What test returns. It fails by e2e.check()."""
        import e2e
        before, result = e2e.failures, None
        try:
            result = test(*args)
        except (OSError, LookupError, TypeError, ValueError) as e:
            e2e.check(False, "%s: %s: %s" % (row, type(e).__name__, e))
        if e2e.failures > before:
            self.cells[row] = "**fails**"
        else:
            self.cells.setdefault(row, "ok")
        return result

    def cannot(self, row, why):
        self.cells[row] = "can't: " + why

    def show(self):
        for row in ROWS:
            print("feature: %s | %s | %s" % (self.host, row, self.cells.get(row, "not tried")), flush=True)


def table(paths):
    cells, hosts = {}, []
    for path in paths:
        with open(path, errors="replace") as f:
            for host, row, cell in LINE.findall(f.read()):
                cells[host, row] = cell
                hosts += [host] if host not in hosts else []
    lines = [["feature"] + hosts, ["---"] * (1 + len(hosts))]
    lines += [[row] + [cells.get((host, row), "not tried") for host in hosts] for row in ROWS]
    return "\n".join("| %s |" % " | ".join(line) for line in lines)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: features.py LOG...")
    print(table(sys.argv[1:]))
