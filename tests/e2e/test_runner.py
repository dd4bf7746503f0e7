#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 2 s
# tests: not svm, files
"""tests/run.py and e2e.py themselves: what is skipped is counted, and hides no failure."""

import contextlib
import glob
import importlib.util
import io
import os
import re
import stat
import time

import e2e
import tiers
from e2e import check

spec = importlib.util.spec_from_file_location("run", os.path.join(e2e.TOP, "tests", "run.py"))
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)

CMOCKA = r"""
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
static void passes(void **s) { (void)s; }
static void fails(void **s) { (void)s; print_message("why it fails\n"); assert_int_equal(1, 2); }
static void lacks_a(void **s) { (void)s; print_message("skipped: no A here\n"); skip(); }
static void lacks_b(void **s) { (void)s; skip(); }
int main(void)
{
	const struct CMUnitTest t[] = { %s };
	const struct CMUnitTest more[] = { cmocka_unit_test(passes), cmocka_unit_test(fails),
		cmocka_unit_test(lacks_a), cmocka_unit_test(lacks_b) };
	(void)more;
	return cmocka_run_group_tests(t, NULL, NULL);
}
"""


def unit(name, *subtests):
    """A program as tests/unit has them."""
    with open(name + ".c", "w") as f:
        f.write(CMOCKA % ", ".join("cmocka_unit_test(%s)" % s for s in subtests))
    p = e2e.run("gcc", "-O0", "-o", name, name + ".c", "-lcmocka")
    if not check(p.status == 0, p.err):
        e2e.finish()
    return run.Test("unit/" + name, [os.path.abspath(name)], 60)


def end_to_end(name, body):
    with open(name + ".py", "w") as f:
        f.write("#!/usr/bin/env python3\nimport sys\nsys.path.insert(0, %r)\nimport e2e\n%s\n" %
                (os.path.join(e2e.TOP, "tests", "e2e"), body))
    os.chmod(name + ".py", stat.S_IRWXU)
    return run.Test("e2e/" + name, [os.path.abspath(name + ".py"), e2e.KVMPROF, "{scratch}"], 60)


def expect(test, result, passed, failed, skipped, *texts, accepted=None):
    runner = run.Runner(os.path.abspath("results"), accepted)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runner.run_all([test])
    runner.clean()
    line = out.getvalue() if result == "FAIL" else out.getvalue().split("\n")[0]
    got = (runner.count["ok"], runner.count["FAIL"], runner.count["skip"])
    check(re.split(r":? ", line)[0] == result, "%s: not %s: %s" % (test.name, result, line))
    check(got == (passed, failed, skipped), "%s: %d passed, %d failed, %d skipped" % ((test.name,) + got))
    for text in texts:
        check(text in line, "%s: no '%s' in: %s" % (test.name, text, line))


expect(unit("whole", "passes", "passes"), "ok", 1, 0, 0)
expect(unit("some", "passes", "lacks_a", "lacks_b"), "ok", 1, 0, 2,
       "2 of 3 skipped: lacks_a (no A here); lacks_b")
expect(unit("none", "lacks_a", "lacks_b"), "skip", 0, 0, 1, "2 of 2 skipped")
expect(unit("broken", "fails", "lacks_a"), "FAIL", 0, 1, 1, "1 of 2 skipped: lacks_a (no A here)")

expect(end_to_end("fine", "e2e.finish('7 samples')"), "ok", 1, 0, 0, "7 samples")
expect(end_to_end("lacks", "e2e.skip('no tool')"), "skip", 0, 0, 1, "no tool")
expect(end_to_end("fails_first", "e2e.check(False, 'first')\ne2e.skip('no tool')"), "FAIL", 0, 1, 0)
expect(end_to_end("needs_first", "e2e.check(False, 'first')\ne2e.need_tool('no-such-tool')"), "FAIL", 0, 1, 0)

# NO_SKIP=1: by the test and by what it says.
NO_A = [(re.compile("unit/some"), re.compile("no A"))]
expect(unit("some", "passes", "lacks_a"), "ok", 1, 0, 1, accepted=NO_A)
expect(unit("some", "passes", "lacks_a", "lacks_b"), "FAIL", 0, 1, 2, "does not accept: lacks_b", accepted=NO_A)
expect(unit("other", "passes", "lacks_a"), "FAIL", 0, 1, 1, "does not accept: lacks_a", accepted=NO_A)
expect(end_to_end("lacks", "e2e.skip('no tool')"), "FAIL", 0, 1, 0, "does not accept:  no tool", accepted=NO_A)
expect(end_to_end("lacks", "e2e.skip('no tool')"), "skip", 0, 0, 1,
       accepted=[(re.compile("e2e/lacks"), re.compile("tool"))])
expect(end_to_end("parts", "e2e.left_out('no A here')\ne2e.finish('7 samples')"), "ok", 1, 0, 1, "7 samples; skipped: no A here")
expect(end_to_end("parts", "e2e.left_out('no A here')"), "FAIL", 0, 1, 1, "does not accept:  no A here", accepted=[])
expect(end_to_end("parts", "e2e.has_tool('no-such-tool')"), "ok", 1, 0, 1, "skipped: no-such-tool is not installed")

# tests/skips.txt: facts of the host are accepted, what apt could give is not. Without KVM the tier `without_kvm` runs.
KERNELS = "debian_6_1 (no debian-6.1%s.*/vmlinuz-* or debian-6.1%s.*/dbg/%s-* in the cache of the scripts)"
runner = run.Runner(os.path.abspath("list"))
for without, test, reason, accepted in (
        ((), "e2e/attach_kvm", "this host's KVM interprets the guest's kernel: QEMU cannot boot a Linux on it", True),
        ((), "asan/kernel/test_livekernel", KERNELS % ("", "", "System.map"), True),
        ((), "unit/symbolizer/types/test_btf_kernel", KERNELS % ("2", "2", "vmlinux"), True),
        ((), "asan/pvm/test_complete_bmi", "this CPU has no bmi2", True),
        ((), "e2e/attach_tasks", "no BPF on this host: not allowed", True),
        ((), "e2e/other_kernels", "Debian's package memtest86+ cannot be fetched", True),
        ((), "e2e/attach_libvirt", "libvirtd as root is needed, and this is not root", True),
        ((), "e2e/lockstep", "the host kept the vCPU waiting in more than 5 % of the periods", True),
        ((), "e2e/demo_truth", "perf is not installed", False),
        (("linux-perf",), "e2e/demo_truth", "perf is not installed", True),
        (("chromium",), "e2e/demo_truth", "perf is not installed", False),
        ((), "e2e/demo_truth", "/dev/kvm: No such file or directory", True),
        ((), "unit/vmm/attach/test_tracer", "/dev/kvm cannot be opened", True),
        ((), "e2e/exec", "no C compiler for the program: gcc", False)):
    runner.accepted = run.accepted_skips(set(without))
    check((not runner.unaccepted(run.Test(test, [], 1), [("", reason)])) == accepted,
          "tests/skips.txt: %s is %saccepted of %s" % (reason, "not " if accepted else "", test))
runner.clean()
# A sub-test says why it is skipped.
for path in glob.glob(os.path.join(e2e.TOP, "tests", "unit", "**", "*.[ch]"), recursive=True):
    with open(path, encoding="utf-8") as f:
        check(path.endswith("unit/skip.h") or not re.search(r"\bskip\(\)", f.read()), path + ": skip() without a reason: see skip.h")
names = [t.name for t in run.checks_of(e2e.BUILD)]
check(len(names) > 100 and not [n for n in names if n.startswith(("e2e/", "asan/"))], "make check: %s" % names[:9])

# The rule for a busy host: repeated by how disturbed a run was, never by what it found.
P = 1e9 / e2e.HZ


def profile(*periods):
    return [e2e.Sample("x", 0, 0.0, n * P, "s", "") for n in periods]


check(e2e.doubt(profile(*[1] * 50)) == 0, "doubt where no period was missed")
check(abs(e2e.doubt(profile(10001)) - 1) < 0.001, "doubt where all rests on one sample")
check(abs(e2e.doubt(profile(*[1] * 90 + [11])) - 10 / 101) < 1e-9, "doubt: one sample for ten more")
check(e2e.doubt([]) == 1 and e2e.sigma(0.5, 0.1) == 0.05 and e2e.sigma(0.0, 1) == 0, "sigma")
for disturbed, want, runs in (((0.1, 0.9), (0.1, 0), 1), ((0.9, 0.1), (0.1, 1), 2),
                              ((0.7, 0.5, 0.6, 0.1), (0.5, 1), 3)):
    seen = []
    got = e2e.quietest(lambda i: (seen.append(i) or disturbed[i], i), 0.2)
    check(got == want and seen == list(range(runs)), "quietest of %s: %s after %s" % (disturbed, got, seen))

# Kernels are made one after the other, beside what needs none.
runner, told = run.Runner(os.path.join(e2e.SCRATCH, "lane")), []
runner.run = lambda test: (told.append("begin " + test.name), time.sleep(0.2 if test.lane else 0.02),
                           told.append("end " + test.name))
many = [run.Test(n, [], 1, True) for n in ("one", "full", "two", "tiny", "three")]
for t in many:
    t.lane = t.name in ("full", "tiny")
runner.run_all(many)
runner.clean()
check([x for x in told if x.split()[1] in ("full", "tiny")] == ["begin full", "end full", "begin tiny", "end tiny"] and
      len(told) == 10 and (os.cpu_count() == 1 or told.index("end three") < told.index("end full")),
      "the lane: %s" % told)

# `make test` is for each change: on two quiet cores it takes about 20 minutes, as far as its scripts know.
UNITS_S = 250    # of units, corpora and checks, one after the other
seconds = {tier: sum(line.seconds for line in tiers.of_tier(tier)) for tier in tiers.TIERS}
total = seconds["alone"] + (UNITS_S + seconds["beside"] + seconds["together"]) / 2
check(total < 20 * 60 + 20, "make test: %d s of %s" % (total, seconds))
check([line.seconds for line in tiers.of_tier("alone")] == sorted(line.seconds for line in tiers.of_tier("alone")) and
      tiers.of_tier("beside")[0].seconds == max(line.seconds for line in tiers.of_tier("beside")), "the order within a tier")

# What reads kernels from the cache comes when they are there.
for slow in (False, True):
    names = [t.name for t in run.tests_of(e2e.BUILD, slow)]
    last_boot = max(i for i, n in enumerate(names) if n.startswith("e2e/"))
    for name in ("unit/symbolizer/kernel/test_livekernel", "unit/symbolizer/types/test_btf_kernel"):
        check(names.count(name) == 1 and names.index(name) > last_boot, "%s is not behind the kernels" % name)
    check(slow or len(names) == len(set(names)), "a test is named twice")
e2e.finish()
