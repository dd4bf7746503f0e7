#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 20 s
# tests: not svm, threads
"""`kvmprof top` as people use it, in a real terminal (tmux), and as scripts do (--stdio).

The demo guest runs for as long as it is told, so that the view ends before it does. The screen shows
the hottest function, its callers, shares, the bar of the vCPU. Then keys: sort, filter, freeze, callers,
code, quit. The shares in the view of a run that is only watched are compared with the table of truth that
its guest prints at its end.
"""

import json
import os
import re
import subprocess
import time
from collections import Counter

import e2e
from e2e import check, say

e2e.need_kvm()
e2e.need_tool("tmux")
SOCKET = "kvmprof-top-%d" % os.getpid()
GUEST = ["--append", "seconds=120"]


def see(ok, what, shown):
    """check() that shows what was there instead."""
    text = "\n".join(shown) if isinstance(shown, list) else str(shown)
    return check(ok, "%s:\n%s" % (what, text))


def top(*args, want=0):
    p = e2e.kvmprof("top", *args)
    see(p.status == want, "exit status of top %s" % " ".join(args), p)
    return p


def tmux(*args):
    return subprocess.run(["tmux", "-L", SOCKET, "-f", "/dev/null", *args], check=True,
                          capture_output=True, text=True).stdout


def screen():
    return tmux("capture-pane", "-p", "-t", "top").split("\n")


def wait_for(what, pattern, seconds=60, whole=lambda lines: True):
    """The screen's lines, once one of them has the pattern, and they are whole: it may be half drawn."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        lines = screen()
        if any(re.search(pattern, line) for line in lines) and whole(lines):
            return lines
        time.sleep(0.1)
    see(False, "%s: no line like %r" % (what, pattern), screen())
    e2e.finish()


ROW = re.compile(r" *(\d+\.\d+)% +(\d+\.\d+)%  (kernel|user|idle) +(\S+) +(\S+)")


def rows(lines):
    """{symbol: (children, self, mode)} in order."""
    return {m.group(5): (float(m.group(1)), float(m.group(2)), m.group(3))
            for m in map(ROW.match, lines) if m}


def keys(*names):
    tmux("send-keys", "-t", "top", *names)


def in_a_terminal():
    command = " ".join([e2e.KVMPROF, "top", "-d", "0.3", "--", "-o", "top.data", *GUEST])
    tmux("new-session", "-d", "-s", "top", "-x", "120", "-y", "40",
         command + "; echo status $?; exec cat")
    lines = wait_for("the view", r"kernel +\S+ +demo_main")
    see(any(re.match(r"vCPU 0  \[(?=.{50}\])k*u*\.*\] kernel", line) for line in lines), "a bar",
        lines)
    time.sleep(4)  # counts gather
    table = rows(wait_for("functions", r"demo_main", whole=lambda lines: "user_main" in rows(lines)))
    by_children = [v[0] for v in table.values()]
    see(by_children == sorted(by_children, reverse=True), "sorted by children", table)
    see(table["demo_main"][0] + table["user_main"][0] > 95, "these two have all", table)
    see(table["demo_main"][1] < 5, "and little of its own", table)

    keys("s")
    wait_for("sorted by self", r"Self\*")
    keys("/")
    wait_for("the filter is asked for", r"filter: _")
    keys("irqoff", "Enter")
    lines = wait_for("filtered", r"filter: irqoff$", whole=lambda lines: len(rows(lines)) == 2)
    table = rows(lines)
    see(set(table) == {"irqoff_leaf", "irqoff_outer"}, "what has irqoff in it", table)
    see(table["irqoff_leaf"][2] == "kernel", "in the kernel", table)

    keys("Home")
    keys("Enter")
    lines = wait_for("callers", r"<- irqoff_outer", whole=lambda lines: any("<- demo_main" in line for line in lines))
    at = next(i for i, line in enumerate(lines) if "<- irqoff_outer" in line)
    see("<- demo_main" in lines[at + 1], "the caller's caller", lines)
    keys("Enter")

    keys("a")
    def shares(lines):
        return [float(m.group(1)) for m in (re.match(r" *(\d+\.\d+) :", s) for s in lines) if m]
    lines = wait_for("code, with shares", r"^irqoff_leaf, \d+ bytes", whole=lambda lines: max(shares(lines), default=0) > 5)
    see(any(re.search(r"\b(jmp|jne|jb|loop|sub|add|dec|cmp)", line) for line in lines),
        "instructions", lines)
    see(sum(shares(lines)) < 101, "all of them", lines)
    keys("q")
    keys("f")
    wait_for("frozen", r"\[frozen\]")
    time.sleep(1)
    frozen = screen()
    time.sleep(1)
    check(screen() == frozen, "a frozen screen stays")
    keys("f")
    keys("c")
    wait_for("not collecting", r"\[not collecting\]")
    keys("c")
    tmux("resize-window", "-t", "top", "-x", "60", "-y", "12")
    wait_for("a small terminal", r"^kvmprof top: .{1,48}$")
    tmux("resize-window", "-t", "top", "-x", "120", "-y", "40")
    keys("h")
    wait_for("help", r"Usage: kvmprof top")
    keys("q")
    keys("q")
    lines = wait_for("the end", r"^status ")
    see("status 0" in lines, "a good end", lines)
    see(any("wrote top.data" in line for line in lines), "the run's summary", lines)
    tmux("kill-session", "-t", "top")
    check("demo_main" in e2e.kvmprof("report", "-i", "top.data").out, "the profile is whole")


def as_text():
    p = top("--stdio", "-d", "0.5", "-n", "3", "--sort", "self", "--",
                    "-o", "text.data", *GUEST)
    lists = [t for t in p.out.split("\n\n") if "Self*" in t]
    see(len(lists) == 3, "three lists", p.out)
    rates = [int(x) for x in re.findall(r"^(\d+) samples/s", p.out, re.M)]
    see(len(rates) == 3 and all(rates), "a rate in each list, the first one, too", p.out)
    table = rows(lists[2].split("\n"))
    see("irqoff_leaf" in table, "functions", table)
    selfs = [v[1] for v in table.values()]
    see(selfs == sorted(selfs, reverse=True), "by self", table)
    see(99 < sum(selfs) <= 101, "which is everything", table)
    p = top("--stdio", "-n", "2", "-d", "0.2", "--no-idle", "--filter", "irqoff",
                    "--", "-o", "text.data", *GUEST)
    see(set(rows(p.out.split("\n"))) <= {"irqoff_leaf", "irqoff_outer"}, "filter", p.out)


def another_run():
    boot = e2e.Boot("-o", "watched.data", "--control", os.path.abspath("ctl"), "--append", "work=400")
    try:
        boot.wait_for("demo: start", 60)
        for _ in range(500):
            if os.path.exists("ctl"):
                break
            time.sleep(0.02)
        p = top("--control", "ctl", "-n", "2", "-d", "0.3")
        see("irqoff_leaf" in p.out, "a watched run", p.out)
        p = top("--control", "ctl", "-n", "2", "-d", "0.3", "--json")
        updates = [json.loads(line) for line in p.out.splitlines()]
        see(len(updates) == 2 and any(f["symbol"] == "irqoff_leaf" and f["mode"] == "kernel" and
                                      0 < f["self_percent"] <= f["children_percent"] <= 100.1
                                      for f in updates[-1]["functions"]) and updates[1]["samples"] > 0, "--json", p.out)
        check(boot.process.poll() is None, "it goes on")
        # To the end of the run, whose rounds are all alike, so that counts may fade: the last view.
        p = e2e.kvmprof("top", "--control", "ctl", "-n", "100", "-d", "0.5", "--sort", "self")
        boot.wait(60)
    finally:
        if boot.process.poll() is None:
            boot.process.terminate()
            boot.wait(20)
    shown = next(filter(None, (rows(part.split("\n")) for part in reversed(p.out.split("\n\n")))), {})
    table, _ = e2e.parse_truth(boot.text())
    truth = Counter()
    for t in table or []:
        truth[t.stack.split(";")[-1]] += t.percent
    check(truth, "no table of truth: " + boot.text())
    samples = e2e.parse_script(e2e.kvmprof("script", "-i", "watched.data").out)
    spread = max(len(samples), 1) ** -0.5 + e2e.doubt(samples)
    say("%d samples, doubt %.3f" % (len(samples), spread))
    for name, percent in truth.items():
        see(abs(shown.get(name, (0, 0))[1] - percent) < 1 + 400 * e2e.sigma(percent / 100, spread),
            "%s has %s in the view, the truth is %.2f %%" % (name, shown.get(name), percent), shown)
    p = top("--control", "ctl", want=1)
    see("ctl: there is no control socket" in p.err and p.err.count("\n") == 1, "nobody there", p.err)


def wrong_usage():
    for args, words in ((["-d", "0"], "seconds"), (["--sort", "x"], "children or self"),
                        (["--control", "x", "y"], "unexpected"), (["--bad"], "unknown option"),
                        (["-n", "0"], "updates")):
        p = top(*args, want=2)
        see(words in p.err and p.err.count("\n") == 1, "usage", p.err)
    p = top("--stdio", "nowhere.img", want=1)
    see("nowhere.img" in p.err, "the run's own words", p.err)
    p = top("--stdio", "--", "--bad", want=2)
    see("unknown option '--bad'" in p.err, "the run's own words", p.err)


try:
    wrong_usage()
    as_text()
    another_run()
    in_a_terminal()
finally:
    subprocess.run(["tmux", "-L", SOCKET, "kill-server"], capture_output=True, check=False)
e2e.finish()
