# SPDX-License-Identifier: GPL-2.0-or-later
"""Examples of the documents, run: what tests/e2e/help_pages.py and doc_pages.py have in common.

An example is a line that begins with `kvmprof` or `perf` where its document has commands; with its
output, where the document shows one. It runs in a directory that has files of the names which examples
use, all of them the demo guest's, which also stands in for Linux images. What cannot be run so is in
NOT_RUN, with the test that runs its like; its options are compared with the command's help all the same.
"""

import os
import re
import shutil
import subprocess
import time
from collections import namedtuple

import e2e
from e2e import check

# output: the lines below it in the document; [] where there are none.
Example = namedtuple("Example", "command output where")

# Parts of examples that the demo guest cannot stand in for; other tests run their like.
NOT_RUN = {
    "kvmprof attach": "needs a VMM that runs: attach_qemu.py",
    "$I": "needs a disk image: disk_images.py and disk_boot.py",
    "debian.img": "needs a disk image: disk_images.py and disk_boot.py",
    "linux.efi": "needs a unified kernel image: disk_images.py",
    "--domain": "needs a libvirt: attach_libvirt.py",
    "kvmprof ps": "needs a guest that runs: tasks.py",
    "kvmprof top 4711": "needs a VMM that runs: attach_top.py",
    "kvmprof top --name": "needs a VMM that runs: attach_top.py",
    "kvmprof why": "needs a guest that stands still: why_causes.py",
    "kvmprof dmesg": "needs a guest that runs: dmesg_log.py",
    "vmlinux --control": "goes on until it is told to end: control.py",
    "off-cpu": "needs a Linux guest: tasks.py",
    "--boot bzimage": "needs a real bzImage: kaslr_boot.py",
    "--snapshot": "needs a kernel that comes to the marker: snapshots.py",
    "start_kernel": "needs a Linux kernel: doc_pages.py linux",
    "clear_page_orig": "a function of Linux: doc_pages.py linux",
    "--start-at": "needs a Linux kernel: markers_linux.py",
    "xen-4.17": "needs Debian's packages: other_kernels.py",
    "memtest86+": "needs Debian's packages: other_kernels.py",
    "vmlinuz-7.3.4": "needs Debian's package: kernel_tables.py",
    "--symbols live": "needs a Linux kernel: live_symbols.py",
    "--exec": "needs a Linux kernel: exec.py",
    "-- /srv/bench": "needs a Linux kernel: exec.py",
    "--engine exact": "needs a QEMU that may have to be fetched: exact.py",
    "counts.data": "needs the counts of an exact run: exact_counts.py",
    "kernel.info": "needs the counts of an exact run: exact_lcov.py",
    "kvmprof diverge": "needs two exact runs: exact_diverge.py",
    "gate --exact": "needs two exact runs: exact_counts.py",
    "--python": "needs a guest with Python: python_frames.py, attach_python.py",
    "kvmprof bench": "takes minutes, or needs two kernels: bench_command.py",
    "kvmprof push": "needs a server: push_profile.py",
    "--disk": "needs a disk and a Linux kernel: disk_io.py",
    "-e wall,net": "needs a Linux kernel with a network card: devices.py",
    "net.svg": "needs a profile of packets: devices.py",
    "io.svg": "needs a profile of a disk's requests: disk_io.py",
    "pvclock_clocksource_read": "a function of Linux: check of annotate in the unit tests",
    "run*.data": "needs six runs and more: gate_history.py",
    "--history perf-history": "needs a history: gate_history.py",
}

# Examples whose output is another one here, or that of another guest.
NOT_COMPARED = {
    "vmlinu": "a Linux guest's",
    "slow.data": "a Linux guest's",
    "worker.cpio": "a Linux guest's",
    "perf ": "of a Linux guest's profile",
    "symbols --debuginfo": "a Linux guest's",
    "kvmprof gate": "needs more runs than the fixtures have",
    "kvmprof diff": "of other profiles",
}
# Lines of the summary that have other words from run to run, and counters that not every host has.
VARIES = re.compile(r"kvmprof: (kernel|user) stacks: |kvmprof: warning: | .* kvm:\w+ ")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def text_examples(name):
    """Of a Markdown page: indented lines that begin with a program, behind a prompt or without one. An
    example may go on in the next line behind a backslash. Below one that has a prompt stands what it
    prints, up to the next prompt or the end of the indented lines."""
    found, command, prompted, output = [], None, False, []

    def end():
        if command:
            while output and not output[-1].strip():
                output.pop()
            found.append(Example(re.sub(r"\s{2,}# .*", "", command), output, name))

    for line in read(os.path.join(e2e.TOP, name)).split("\n") + ["end"]:
        m = re.match(r"    (\$ )?((?:build/)?kvmprof |perf )(.*)$", line)
        if command and command.endswith("\\") and line.startswith("     "):
            command = command[:-1] + line.strip()
        elif m and (m.group(1) or not prompted):
            end()
            command, output = (m.group(2) + m.group(3)).replace("build/kvmprof", "kvmprof"), []
            prompted = bool(m.group(1))
        elif line.startswith("    $ ") or (line.strip() and not line.startswith("    ")):
            end()
            command, prompted = None, line.startswith("    $ ")
        elif command and prompted:
            output.append(line[4:])
    end()
    return found


def make_fixtures():
    """What the examples find in their directory; all of it is the demo guest's."""
    os.mkdir("fixtures")
    os.chdir("fixtures")
    demo = os.path.join(e2e.BUILD, "guest", "demo.elf")
    os.makedirs("rootfs/lib")
    os.makedirs("dbg")
    os.makedirs("build")
    for name in ("vmlinux", "bzImage", "vmlinuz-demo", "rootfs/lib/kernel", "dbg/vmlinux"):
        shutil.copy(demo, name)
    os.symlink(os.path.join(e2e.BUILD, "guest"), "build/guest")
    os.symlink(os.path.join(e2e.TOP, "configs"), "configs")
    for name in ("initramfs.cpio", "test.cpio"):
        shutil.copy(e2e.INITRAMFS, name)
    made = "demo boot old1 new1".split()
    for name in made:
        p = e2e.kvmprof("run", "-q", "--append", "seconds=1", "-o", name + ".data")
        check(p.status == 0, "run: " + p.err)
    shutil.copy(os.path.join(e2e.TOP, "configs", "gate-share.toml"), "gate.toml")
    # A gate takes no copies: each is a run by itself, if a short one.
    for name in ("old2", "old3", "new2", "new3"):
        p = e2e.kvmprof("run", "-q", "--duration", "0.3", "-o", name + ".data")
        check(p.status == 0, "run: " + p.err)
    shutil.copytree("boot.data", "perf.data")
    for out, argv in (("System.map", ["symbols", "vmlinux"]), ("stacks.folded",
                      ["export", "--format", "folded", "-i", "demo.data"])):
        p = e2e.kvmprof(*argv)
        check(p.status == 0 and p.out, "%s: %s" % (argv, p.err))
        with open(out, "w") as f:
            f.write(p.out)
    os.chdir("..")


def shortened(line):
    """The same with a demo that ends after a second, and without scripts that are not there."""
    line = re.sub(r"seconds=\d+", "seconds=1", line).replace(" --stop-at sched_init", "")
    if line.startswith("kvmprof run") and "seconds=1" not in line:
        line += " --append seconds=1"
    if line.startswith("kvmprof stat") and "--append" not in line:
        line = line.replace("kvmprof stat", "kvmprof stat --append seconds=1", 1)
    if not shutil.which("stackcollapse-perf.pl"):
        line = line.replace("| stackcollapse-perf.pl | flamegraph.pl >", ">")
    return line


def shape(line):
    """A line without what differs from run to run: numbers, addresses, and a table's names."""
    row = re.match(r"\s*-?\d+\.\d+%", line)
    line = re.sub(r"\b[0-9a-f]{8,}\b", "N", line)
    line = re.sub(r"-?\d[\d,]*(?:\.\d+)?", "N", line)
    words = line.split()
    if row:
        words = [w if "%" in w or w in ("N", "kernel", "user", "idle") else "*" for w in words]
    return " ".join(words)


def missing_lines(output, printed):
    """The lines of a document's output of which nothing like it was printed."""
    have = {shape(x) for x in printed.split("\n")}
    found = []
    for line in output:
        text = shape(line)
        if not text or text == "..." or VARIES.match(line):
            continue
        start = text[:-3].rstrip("; ") if text.endswith("...") else None
        if text not in have and not (start and any(h.startswith(start) for h in have)):
            found.append(line)
    return found


def check_options(example):
    """Of what is not run: the command is one, and its help knows each long option."""
    line = re.sub(r"'[^']*'|\"[^\"]*\"|\$\([^)]*\)", "X", example.command)
    m = re.match(r"(?:.*?\| )?kvmprof ([a-z]+)(.*)", line)
    if not m:
        return
    command, rest = m.groups()
    texts = [e2e.kvmprof("help", command)]
    if not check(texts[0].status == 0, "%s: `%s`: no such command" % (example.where, example.command)):
        return
    if command in ("iosnoop", "stat", "top"):    # these take options of run, too
        texts.append(e2e.kvmprof("help", "run"))
    known = {o for p in texts for o in re.findall(r"--[a-z][-a-z]*", p.out)}
    for option in re.findall(r"(?<=\s)--[a-z][-a-z]*", re.split(r" -- | \| |; ", rest)[0]):
        check(option in known, "%s: `%s`: %s has no option %s" %
              (example.where, example.command, command, option))


def is_run(example):
    return (not any(part in example.command for part in NOT_RUN) and
            all(shutil.which(tool) for tool in ("perf", "jq") if re.search(r"\b%s " % tool, example.command)))


class Controlled:
    """A run that goes on while examples of `kvmprof ctl` talk to it."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(["bash", "-c", "exec " + re.sub(r" *&$", "", command) +
                                         " -q --append seconds=120"], env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end and not e2e.kvmprof("ctl", "status", env=env).out:
            time.sleep(0.1)

    def close(self):
        self.process.terminate()
        self.process.wait()


def run_examples(source, examples):
    """All of one source, in order, in one directory. Returns how many were run, and compared."""
    here = os.getcwd()
    work = os.path.join(here, "work-" + os.path.basename(source))
    shutil.copytree("fixtures", work, symlinks=True)
    os.chdir(work)
    env = dict(os.environ, K=work, D=work)
    ran = compared = 0
    running = None
    os.mkdir("sockets", 0o700)
    env["XDG_RUNTIME_DIR"] = os.path.abspath("sockets")
    for x in examples:
        if not is_run(x) or (x.command.startswith("kvmprof ctl") and not running):
            check_options(x)
            continue
        if x.command.startswith("kvmprof run") and "--control auto" in x.command:
            check(not running, "%s: `%s`: another run is controlled already" % (source, x.command))
            running = Controlled(x.command, env)
            ran += 1
            continue
        p = e2e.run("bash", "-o", "pipefail", "-c", shortened(x.command), env=env)
        # A gate's answer is no failure of the example.
        fine = (0, 1, 3) if x.command.startswith("kvmprof gate") else (0,)
        check(p.status in fine, "%s: `%s`: status %d: %s" % (source, x.command, p.status, p.err.strip()[-400:]))
        ran += 1
        if x.output and not any(part in x.command for part in NOT_COMPARED):
            for lacks in missing_lines(x.output, p.out + p.err):
                check(False, "%s: `%s` prints no line like %r; it prints:\n%s" %
                      (source, x.command, lacks, (p.out + p.err)[-2000:]))
            compared += 1
    if running:
        running.close()
    os.chdir(here)
    shutil.rmtree(work)
    return ran, compared
