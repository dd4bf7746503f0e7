#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 5 s
# tests: not svm, files
"""What a newcomer types or has, and the answer: a path in place of a command, an archive in place of a profile, text
with the line ends of other systems, --control auto, a function of a name that several have, options of perf, units, a profile
without -i, a command name that no sample has, a host without libvirt, KVM or a new QEMU, `check --json` and `make uninstall`."""

import json
import os
import re
import shutil

import e2e
from e2e import check

FOLDED = "task;main;work 12\ntask;main;rest 4\n"
SCRIPT = "%s %s [002]  1.000001:     250000 cpu-clock: \n\tffffffff81000010 do_work+0x10 ([kernel.kallsyms])\n\n"


# A kernel with two functions of one name, out of one header, and a third one in a file of its own. The second is
# called first.
GUEST = {
    "one/first.c": '#include "../same.h"\nvoid first(int n) { same(n); }\n',
    "two/second.c": '#include "../same.h"\nvoid second(int n) { same(n); }\n',
    "same.h": """__attribute__((noipa)) static void same(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
}
""",
    "main.c": """void first(int n), second(int n);
__attribute__((noreturn)) void guest_main(void)
{
	for (int i = 0; i < 4; i++) {
		second(5000);
		first(5000);
	}
	for (;;)
		__asm__ volatile("mov $0xfe, %al; out %al, $0x64; hlt");
}
__asm__(".globl _start; _start: cli; lea stack+4096(%rip), %rsp; call guest_main\\n.lcomm stack, 4096");
""",
}
BUILD = ["gcc", "-O1", "-ffreestanding", "-fno-pie", "-fno-stack-protector", "-fcf-protection=none",
         "-fno-omit-frame-pointer", "-mno-red-zone", "-nostdlib", "-static", "-Wl,--build-id",
         "-Wl,-Ttext-segment=0x1000000"]


def write(name, text):
    with open(name, "w", newline="") as f:
        f.write(text)


def imports(name, text, samples_name):
    write(name, text)
    p = e2e.kvmprof("import", name, "-o", name + ".data")
    if not check(p.status == 0, "import %s: %s" % (name, p.err)):
        return
    out = e2e.kvmprof("report", "-i", name + ".data").out
    check(samples_name in out, "import %s: no %s in %s" % (name, samples_name, out[:300]))


def check_text():
    for i, end in enumerate(("\n", "\r\n", " \r\n")):
        imports("folded%d" % i, FOLDED.replace("\n", end), "work")
        imports("comment%d" % i, "# a comment" + end + end + FOLDED.replace("\n", end), "work")
    for i, task in enumerate(("12/34", "-1/-1", "-1")):
        imports("script%d" % i, SCRIPT % (":-1", task) + SCRIPT % ("work", "7/7"), "do_work")
        p = e2e.kvmprof("report", "-i", "script%d.data" % i)
        check(": 2 samples" in p.out, "task %s: %s" % (task, p.out[:200]))
    write("decimals", "task;main;work 1.5\n")
    one_line(["decimals: has no stacks", "task;main;work 12", "perf script"], "import", "decimals", status=1)


def check_paths():
    write("vmlinuz", "kernel")
    p = e2e.kvmprof("./vmlinuz")
    check(p.status == 2 and "kvmprof run ./vmlinuz" in p.err and "report -i ./vmlinuz" in p.err, "a path: " + p.err)
    p = e2e.kvmprof("recrod")
    check(p.status == 2 and "unknown command" in p.err, "no path: " + p.err)
    with open("x.tar.zst", "wb") as f:
        f.write(b"\x28\xb5\x2f\xfd" + b"\0" * 200)
    p = e2e.kvmprof("report", "-i", "x.tar.zst")
    check(p.status == 1 and "tar -xf" in p.err, "an archive: " + p.err)


def check_auto():
    os.mkdir("runtime", 0o700)
    env = dict(os.environ, XDG_RUNTIME_DIR=os.path.abspath("runtime"))
    p = e2e.kvmprof("top", "--control", "auto", "--stdio", env=env)
    check(p.status == 1 and "no run was started with --control auto" in p.err, "top --control auto: " + p.err)


def check_numbers():
    p = e2e.kvmprof("run", "-q", "--no-output", "--mark-at", "left_leaf#2", "--append", "seconds=1")
    check(p.status != 0 and "left_leaf#1 (0x" in p.err and "no #2" in p.err, "a number that is not there: " + p.err)
    for mark in ("demo_main#1", "demo_main#all"):
        p = e2e.kvmprof("run", "-q", "-o", "one.data", "--mark-at", mark, "--append", "seconds=1")
        check(p.status == 0 and mark in [m["name"] for m in e2e.summary("one.data")["markers"]], "--mark-at %s: %s" % (mark, p.err))


def refused(what, argv, *texts):
    p = e2e.kvmprof(*argv)
    check(p.status == 1 and p.err.count("\n") == 1 and all(t in p.err for t in texts), "%s: %d %s" % (what, p.status, p.err))


def build_guest():
    for name, text in GUEST.items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        write(name, text)
    sources = ["main.c", "one/first.c", "two/second.c"]
    for image, option in (("guest", "-g"), ("bare", "-g0")):
        p = e2e.run(*BUILD, option, "-o", image, *sources)
        if p.status:
            check(False, "cannot build the guest: " + p.err)
            e2e.finish()
    e2e.run("objcopy", "--strip-debug", "guest", "stripped")  # takes STT_FILE, too


def check_symbols():
    """All functions of a name, with the files of their units: by debug information, by the symbol table, by neither."""
    def blocks(*argv):
        p = e2e.kvmprof("symbols", *argv)
        check(p.status == 0, "symbols %s: %s" % (argv, p.err))
        return [line for line in p.out.splitlines() if not line.startswith(" ")]

    both = blocks("guest", "same")
    check(len(both) == 2 and both[0].endswith(" same+0x0 (#1 of 2, one/first.c)") and
          both[1].endswith(" same+0x0 (#2 of 2, two/second.c)"), "symbols guest same: %s" % both)
    for text in ("same#2", "same@second.c", "same@two/second.c", both[1].split()[0]):
        check(blocks("guest", text) == both[1:], "symbols guest %s: %s" % (text, blocks("guest", text)))
    check(blocks("guest", "same@same.h") == both, "symbols guest same@same.h")
    check(all("(" not in line for line in blocks("guest", "first", "guest_main")), "names of one function")
    rows = json.loads(e2e.kvmprof("symbols", "--json", "guest", "same").out)["addresses"]
    check([(r["number"], r["of"], r["file"]) for r in rows] == [(1, 2, "one/first.c"), (2, 2, "two/second.c")],
          "symbols --json: %s" % rows)
    check([line.split("(")[1] for line in blocks("bare", "same")] == ["#1 of 2, first.c)", "#2 of 2, second.c)"],
          "symbols bare same: %s" % blocks("bare", "same"))
    check(len(blocks("bare", "same@second.c")) == 1, "symbols bare same@second.c")
    refused("no such directory", ["symbols", "bare", "same@two/second.c"], "without their directories", "same#2 (0x")
    refused("no such file", ["symbols", "guest", "same@third.c"], "no 'same' is in third.c", "two/second.c")
    refused("no files", ["symbols", "stripped", "same@second.c"], "neither debug information nor symbols", "same#2 (0x")


def check_places():
    """The same texts as places of a run; `all of them` begins at the first that is reached, and no second time."""
    def reached(*argv):
        p = e2e.kvmprof("run", "-q", "-o", "place.data", *argv)
        if not check(p.status == 0, "run %s: %s" % (argv, p.err)):
            return None, None
        s = e2e.summary("place.data")
        return [b["reached"] for b in s["breakpoints"]], [m["kind"] for m in s["markers"]]

    refused("an ambiguous place", ["run", "-q", "--no-output", "--mark-at", "same", "guest"],
            "'same' is 2 functions", "NAME@FILE", "same#1 (0x", "one/first.c", "same#2 (0x", "two/second.c")
    check(reached("--mark-at", "same@second.c", "--mark-at", "same@one/first.c", "guest") == ([4, 4], ["breakpoint"] * 8),
          "--mark-at same@FILE")
    check(reached("--mark-at", "same@second.c", "bare") == ([4], ["breakpoint"] * 4), "--mark-at by the symbol table")
    check(reached("--mark-at", "same#all", "guest") == ([4, 4], ["breakpoint"] * 8), "--mark-at same#all")
    check(reached("--start-at", "same#all", "--stop-at", "same@first.c", "guest") == ([0, 1, 1], ["start", "stop"]),
          "--start-at same#all")
    check(reached("--start-at", "first", "--stop-at", "same#all", "guest") == ([1, 1, 0], ["start", "stop"]),
          "--stop-at same#all")


def check_annotate():
    p = e2e.kvmprof("run", "-q", "-F", "5000", "-o", "both.data", "guest")
    check(p.status == 0, "run guest: " + p.err)
    annotate = ["annotate", "-i", "both.data", "--debuginfo", "guest"]
    p = e2e.kvmprof(*annotate, "same")
    check(p.status == 1 and "#1 one/first.c" in p.err and "#2 two/second.c" in p.err and "2 functions" in p.err,
          "annotate same: %s" % p.err)
    by_file = e2e.kvmprof(*annotate, "same@two/second.c")
    by_number = e2e.kvmprof(*annotate, "same#2")
    check(by_file.status == 0 and "Disassembly of same" in by_file.out and by_file.out == by_number.out,
          "annotate same@two/second.c: %s%s" % (by_file.err, by_number.err))
    check(e2e.kvmprof(*annotate, "same#1").out not in ("", by_number.out), "annotate same#1")
    refused("no such file", annotate + ["same@third.c"], "no 'same' is in third.c")
    refused("no such number", annotate + ["same#3"], "there is no #3")


def one_line(words, *argv, status=2):
    p = e2e.kvmprof(*argv)
    check(p.status == status and all(w in p.err for w in words) and p.err.count("\n") == 1,
          "%s: status %d: %s" % (" ".join(argv), p.status, p.err))


def check_perf_words():
    with open(os.path.join(e2e.TOP, "VERSION")) as f:
        version = "kvmprof %s\n" % f.read().strip()
    names = [line.split()[0] for line in e2e.kvmprof("help").out.split("Examples")[0].split("\n") if line[:3].strip() and line[:2] == "  "]
    check(len(names) > 20 and "run" in names, "commands: %s" % names)
    for name in names:
        p = e2e.kvmprof(name, "--version")
        check(p.status == 0 and p.out == version and not p.err, "%s --version: %d %s%s" % (name, p.status, p.out, p.err))
    for argv in (["-p", "12"], ["--pid=12"], ["-p12"], ["12"]):
        one_line(["stat counts a guest that it boots", "kvmprof attach PID"], "stat", *argv)
    for argv in (["-e", "cycles"], ["--event", "cycles"]):
        one_line(["takes no events", "kvmprof run -e EVENTS"], "stat", *argv)
    write("12", "no kernel")
    p = e2e.kvmprof("stat", "12")
    check(p.status == 1 and "looks like a PID" not in p.err, "a file that is called 12: %d %s" % (p.status, p.err))
    os.remove("12")


def check_units():
    # The image is looked at after the options.
    for argv in (["--duration", "1s"], ["--duration", "500ms"], ["--duration", "5m"], ["--delay", "1h"], ["-m", "2GB"], ["-m", "64MiB"]):
        p = e2e.kvmprof("run", *argv, "missing")
        check(p.status == 1 and "missing: cannot open" in p.err, "%s: %d %s" % (argv, p.status, p.err))
    for argv in (["--duration", "1y"], ["--duration", "0ms"], ["--duration", "nans"], ["-m", "2GX"], ["-m", "64MiBB"]):
        p = e2e.kvmprof("run", *argv, "missing")
        check(p.status == 2 and "expected" in p.err, "%s: %d %s" % (argv, p.status, p.err))


def check_profile_words():
    write("two.folded", "task;main;work 12\nother;main;rest 4\n")
    e2e.kvmprof("import", "two.folded", "-o", "two.data")
    for argv in (["flamegraph", "-o", "-"], ["script"], ["export", "-F", "folded"], ["archive", "-o", "-"]):
        named, word = e2e.kvmprof(*argv, "-i", "two.data"), e2e.kvmprof(*argv, "two.data")
        check(word.status == 0 and word.out == named.out and word.out, "%s two.data: %d %s" % (argv, word.status, word.err))
        one_line(["unexpected argument 'two.data'"], *argv, "-i", "two.data", "two.data")
        one_line(["unexpected argument 'x'"], *argv, "two.data", "x")
    p = e2e.kvmprof("mem", "two.data")
    check("unexpected argument" not in p.err and "two.data" in p.err, "mem two.data: " + p.err)
    known = "no sample has the command name 'nosuch'; those of the samples are task, other"
    for argv in (["report", "-i", "two.data"], ["flamegraph", "-o", "-", "-i", "two.data"], ["export", "-F", "folded", "-i", "two.data"],
                 ["diff", "two.data", "two.data"]):
        p = e2e.kvmprof(*argv, "--comm", "nosuch")
        check(p.status == 1 and known in p.err and not p.out, "%s --comm nosuch: %d %s%s" % (argv[0], p.status, p.err, p.out))
    p = e2e.kvmprof("report", "-i", "two.data", "--comm", "nosuch,task")
    check(p.status == 0 and "work" in p.out, "--comm nosuch,task: %s" % p.err)


def check_empty_paths():
    """An empty variable of a script: the message names the option."""
    for argv, option in ((["report", "-i", ""], "--input: ''"), (["script", "-i", ""], "--input ''"), (["export", "-F", "folded", "-i", ""], "--input ''"), (["gate", "--history", ""], "--history ''"),
                         (["gate", "--html", ""], "--html ''"), (["gate", "-c", ""], "--config ''"), (["gate", "--flamegraph", ""], "--flamegraph ''"),
                         (["bench", "--config", ""], "--config ''"), (["flamegraph", "-o", ""], "--output ''"), (["flamegraph", "--diff", ""], "--diff ''"),
                         (["diff", "-o", ""], "--output ''"), (["annotate", "-o", ""], "--output ''"), (["archive", "-o", ""], "--output ''"),
                         (["scan", "-o", ""], "--output ''"), (["import", "-o", ""], "--output ''"),
                         (["run", "x", "-o", ""], "--output ''"), (["run", "x", "--initrd", ""], "--initrd ''"),
                         (["run", "x", "--kernel", ""], "--kernel ''"), (["run", "x", "--symbols", ""], "--symbols ''"),
                         (["run", "x", "--debuginfo", ""], "--debuginfo ''"), (["run", "x", "--guest-root", ""], "--guest-root ''"),
                         (["run", "x", "--buildid-dir", ""], "--buildid-dir ''"), (["attach", "1", "--image", ""], "--image ''"),
                         (["push", "--token-file", "", "http://x"], "--token-file ''"), (["push", "--cacert", "", "http://x"], "--cacert ''"),
                         (["top", "--control", ""], "--control ''"), (["ctl", "--control", "", "status"], "--control ''"),
                         (["report", "--debuginfo", ""], "--debuginfo ''"), (["bench", "--base", ""], "--base ''")):
        one_line([option + ": expected a"], *argv)
    one_line(["'': expected a profile"], "report", "")
    one_line(["--input '': expected a profile"], "script", "")


def check_names_of_machines():
    for option, what in (("--name", "a machine's name"), ("--pid", "a PID"), ("--domain", "a domain")):
        one_line(["expected %s, not ''" % what], "attach", option, "")
    p = e2e.kvmprof("attach", "--name", "nosuch")
    check(p.status == 1 and re.match(r"kvmprof: no machine of this host is called nosuch(: there are \d.*)?"
                                     r"( \(processes that may not be looked into without CAP_SYS_PTRACE: \d+\))?"
                                     r"; `kvmprof list --machines` lists them\n$", p.err), "attach --name nosuch: %d %s" % (p.status, p.err))


def check_lacks():
    p = e2e.kvmprof("list", "--domains", "-c", "qemu+unix:///system?socket=" + os.path.abspath("no-socket"))
    check(p.status == 1 and "kvmprof attach PID" in p.err and ("start its daemon" in p.err or "libvirt0" in p.err), "no libvirt: " + p.err)
    write("qemu-old", "#!/bin/sh\necho QEMU emulator version 7.2.22\n")
    os.chmod("qemu-old", 0o755)
    env = dict(os.environ, KVMPROF_QEMU=os.path.abspath("qemu-old"))
    p = e2e.kvmprof("check", "--json", env=env)
    told = json.loads(p.out)
    check(told["works"] == (p.status == 0) and len(told["checks"]) > 5, "check --json: %s" % p.out[:300])
    exact = [c for c in told["checks"] if c["name"] == "run --engine exact"][0]
    if os.path.exists(os.path.join(e2e.BUILD, "kvmprof-exact.so")):
        check(exact["verdict"] == "note" and "7.2.22" in exact["mend"] and "scripts/fetch-qemu.sh unpacks" in exact["mend"],
              "an old QEMU: %s" % exact)
    if os.geteuid() or not shutil.which("unshare"):
        e2e.left_out("not root: a host without /dev/kvm is not tried")
        return
    hide = "mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9 && exec \"$@\""
    for command, words in (("run", ["no KVM on this host", "or add --engine exact, which needs no KVM, but QEMU 9.1 or later: `kvmprof check`"]),
                           ("stat", ["no KVM on this host"])):
        p = e2e.run("unshare", "-m", "sh", "-c", hide, "sh", e2e.KVMPROF, command, "-q", env=env)
        check(p.status == 1 and all(w in p.err for w in words) and ("exact" in p.err) == (command == "run"), "%s without KVM: %s" % (command, p.err))
    program = shutil.copy(e2e.KVMPROF, "/tmp/kvmprof-of-all-%d" % os.getpid())
    try:
        p = e2e.run("unshare", "-m", "sh", "-c", hide.replace("&& exec", "&& mknod -m 600 /dev/kvm c 10 232 && exec"), "sh",
                    "setpriv", "--reuid", "65534", "--clear-groups", program, "attach", str(os.getpid()))
        check(p.status == 1 and "belongs to user 0: attach as that user or as root" in p.err, "attach as another user: " + p.err)
    finally:
        os.remove(program)


def files_of(top):
    return sorted(os.path.join(d, f) for d, _, files in os.walk(top) for f in files)


def check_uninstall():
    # The script's path is long: messages must have room for it.
    tail = "/opt/x/share/kvmprof/scripts/fetch-qemu.sh"
    root = "root".ljust(230 - len(os.path.abspath("x" + tail)), "-")
    make = ["make", "-s", "-C", e2e.TOP, "BUILD=" + e2e.BUILD, "DESTDIR=" + os.path.abspath(root), "PREFIX=/opt/x"]
    if not shutil.which("make") or not os.path.exists(os.path.join(e2e.BUILD, "kvmprof-exact.so")):
        e2e.left_out("no make, or no plugin: make uninstall is not tried")
        return
    p = e2e.run(*make, "-o", e2e.BUILD + "/kvmprof", "-o", e2e.BUILD + "/kvmprof-exact.so", "install")
    check(p.status == 0 and len(files_of(root)) > 40, "make install: %d %s" % (p.status, p.err))
    script = os.path.abspath(root + tail)
    p = e2e.run(script, "nonsense")
    check(p.status == 2 and "usage" in p.err, "the installed fetch-qemu.sh: %d %s" % (p.status, p.err))
    env = dict(os.environ, KVMPROF_QEMU=os.path.abspath("qemu-old"))
    p = e2e.run(root + "/opt/x/bin/kvmprof", "check", env=env)
    check(script + " unpacks one" in p.out, "an installed kvmprof does not name its script: " + p.out[-500:])
    mine = [root + p for p in ("/opt/x/bin/other", "/opt/x/share/kvmprof/mine", "/usr/bin/kvmprof")]
    for path in mine:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write(path, "")
    p = e2e.run(*make, "uninstall")
    check(p.status == 0 and files_of(root) == sorted(mine), "make uninstall: %d %s, left: %s" % (p.status, p.err, files_of(root)))
    check(not os.path.exists(root + "/opt/x/lib/kvmprof"), "make uninstall leaves its directories")


check_text()
check_paths()
check_perf_words()
check_units()
check_profile_words()
check_empty_paths()
check_names_of_machines()
check_lacks()
check_uninstall()
build_guest()
check_symbols()
check_auto()
if os.access("/dev/kvm", os.R_OK | os.W_OK):
    check_numbers()
    check_places()
    check_annotate()
else:
    e2e.left_out("no /dev/kvm: places and samples of NAME#NUMBER and NAME@FILE are not tried")
e2e.finish()
