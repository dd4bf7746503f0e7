#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of the stacks of this machine's programs is found, and how much of that is wrong,
against libdwfl on stopped processes (tests/bench/bench_user_stacks.c).

    tests/bench/bench_user_stacks.py KVMPROF SCRATCH [STACKS [PROGRAM...]]

STACKS (500) of each program; a program that is not installed is named and left out. `--no-cfi`
among the programs: by frame pointers and the reading of code alone, as it was before call frame
information was read.
"""
import glob
import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CXX = r"""
#include <algorithm>
#include <map>
#include <string>
#include <vector>
struct shape { virtual ~shape() {} virtual double area(int depth) = 0; };
struct square : shape { double area(int depth) override; };
struct pair : shape { double area(int depth) override; };
static std::vector<shape *> all;
double square::area(int depth) { try { if (depth % 97 == 0) throw depth; return depth; } catch (int n) { return n * 2; } }
double pair::area(int depth) { return depth ? all[depth % all.size()]->area(depth - 1) * .5 : 1; }
int main() {
    std::map<std::string, double> sums;
    all = { new square, new pair, new pair, new pair };
    for (int i = 0; i < 3000000; i++) {
        std::vector<int> v;
        for (int k = 0; k < 20; k++) v.push_back(k * i % 31);
        std::sort(v.begin(), v.end(), [](int a, int b) { return all[1]->area(a % 7) < all[2]->area(b % 7); });
        sums["k" + std::to_string(v[3])] += all[1]->area(i % 50);
    }
    return sums.size() == 0;
}
"""
RUST = r"""
use std::collections::HashMap;
fn main() {
    let mut m: HashMap<String, Vec<u64>> = HashMap::new();
    for i in 0..3_000_000u64 { m.entry(format!("{}", i % 1000)).or_default().push(i); }
    let mut t = 0;
    for (_, v) in &m { let mut w = v.clone(); w.sort_by(|a, b| b.cmp(a)); t += w[0]; }
    println!("{}", t);
}
"""
GO = r"""
package main
import ("fmt"; "sort"; "strings")
func main() {
	m := map[string][]int{}
	for i := 0; i < 3000000; i++ { k := fmt.Sprint(i % 1000); m[k] = append(m[k], i) }
	for _, v := range m { sort.Slice(v, func(a, b int) bool { return v[a] > v[b] }) }
	fmt.Println(len(strings.Repeat("a", len(m))))
}
"""
SIGNALS = r"""
#include <signal.h>
#include <sys/time.h>
static volatile int n;
__attribute__((noinline)) static int work(int a) { for (int i = 0; i < 200000; i++) n += i * a; return n; }
static void handler(int s) { work(s); }
__attribute__((noinline)) static int outer(int a) { return work(a) + 1; }
int main(void) {
    struct itimerval t = { { 0, 500 }, { 0, 500 } };
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &t, 0);
    for (int i = 0; i < 20000; i++) outer(i);
    return 0;
}
"""


def write(scratch, name, text):
    path = os.path.join(scratch, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def built(scratch, tool, name, source, argv):
    """A program made of a source, or None where its compiler is missing or refuses."""
    if not shutil.which(tool):
        return None
    out = os.path.join(scratch, name.split(".")[0])
    path = write(scratch, name, source)
    p = subprocess.run([tool] + [a.format(src=path, out=out) for a in argv], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, check=False)
    return [out] if p.returncode == 0 else None


def with_sframe(scratch):
    """C++ for which .sframe was written, too, and beside it the same without .eh_frame."""
    argv = built(scratch, "g++", "frames.cc", CXX, ["-O2", "-Wa,--gsframe", "-o", "{out}", "{src}"])
    if argv and subprocess.run(["objcopy", "-R", ".eh_frame", "-R", ".eh_frame_hdr", argv[0], argv[0] + "-bare"],
                               check=False).returncode:
        return None
    return argv


def go_stripped(scratch, name, alone):
    """Go without any table that libdwfl reads. Not alone: libdwfl has the tables of the same code, and unwind() has none
    but those of the stripped file. Alone: libdwfl guesses by rbp, and what it guesses counts for nothing."""
    argv = built(scratch, "go", name + ".go", GO, ["build", "-o", "{out}", "{src}"])
    if not argv:
        return None
    bare = argv[0] + ("-alone" if alone else "-bare")
    return [bare if alone else argv[0]] if subprocess.run(["strip", "-o", bare, argv[0]], check=False).returncode == 0 else None


def installed(name, *argv):
    path = shutil.which(name)
    return [path, *argv] if path else None


def compiler(scratch):
    """cc1 itself, not the driver, on a file that has no includes."""
    found = sorted(glob.glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1"))
    text = "".join("int f%d(int a, int b) { int s = 0; for (int i = 0; i < a; i++) { if (i %% %d == b) s += i * b;"
                   " else s ^= f%d(a / 2, i); } return s; }\n" % (i, i % 7 + 2, i - 1) for i in range(1, 400))
    path = write(scratch, "many.c", "int f0(int a, int b) { return a * b; }\n" + text)
    return [found[-1], "-quiet", "-O2", path, "-o", "/dev/null"] if found else None


def rust_compiler(scratch):
    if not shutil.which("rustc"):
        return None
    root = subprocess.run(["rustc", "--print", "sysroot"], stdout=subprocess.PIPE, check=False,
                          universal_newlines=True).stdout.strip()
    path = os.path.join(root, "bin", "rustc")
    return [path, "-O", "-o", os.path.join(scratch, "of-rustc"), write(scratch, "r.rs", RUST)] \
        if os.path.exists(path) else None


def numbers(scratch):
    path = os.path.join(scratch, "numbers")
    if not os.path.exists(path):
        x = 1
        with open(path, "w", encoding="ascii") as f:
            for _ in range(1000000):
                x = x * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
                f.write("%d\n" % (x >> 40))
    return path


def programs(scratch):
    """(name, makes its command): what is compiled or looked for is so when it is asked for."""
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    return [
        ("sort", lambda: installed("sort", "-n", numbers(scratch))),
        ("xz", lambda: installed("xz", "-T2", "-k", "-c", numbers(scratch))),
        ("perl", lambda: installed(
            "perl", "-e", "my %h; for my $i (1..3000000) { $h{$i % 5000} .= chr(65 + $i % 26); "
            "my @a = sort { $b <=> $a } map { $_ * 3 } 1..20; my $x = 'abab'; $x =~ s/b+/c/g; }")),
        ("python3", lambda: [
            python, "-c", "import re, json\n"
            "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\n"
            "for i in range(1000000): json.dumps({'a': [i] * 10}); re.sub('a+b', 'c', 'aaab' * 20); "
            "sorted(range(100), key=lambda x: -x); f(8)"]),
        ("git", lambda: installed("git", "-C", TOP, "log", "-p", "--stat") if os.path.exists(
            os.path.join(TOP, ".git")) else None),
        ("bash", lambda: installed(
            "bash", "-c", "for ((i = 0; i < 1000000; i++)); do x=$((x + i)); y=${x//1/2}; done")),
        ("cc1", lambda: compiler(scratch)),
        ("c++", lambda: built(scratch, "g++", "shapes.cc", CXX, ["-O2", "-o", "{out}", "{src}"])),
        ("sframe", lambda: with_sframe(scratch)),
        ("static", lambda: built(scratch, "g++", "whole.cc", CXX, ["-O2", "-static", "-o", "{out}", "{src}"])),
        ("signals", lambda: built(scratch, "gcc", "signals.c", SIGNALS, ["-O2", "-o", "{out}", "{src}"])),
        ("rust", lambda: built(scratch, "rustc", "map.rs", RUST, ["-O", "-o", "{out}", "{src}"])),
        ("rustc", lambda: rust_compiler(scratch)),
        ("go", lambda: built(scratch, "go", "map.go", GO, ["build", "-o", "{out}", "{src}"])),
        ("go-stripped", lambda: go_stripped(scratch, "bare", False)),
        ("go-alone", lambda: go_stripped(scratch, "alone", True)),
        ("node", lambda: installed(
            "node", "-e", "let o = {}; function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) } "
            "for (let i = 0; i < 1e7; i++) { o['k' + i % 1000] = [i, JSON.stringify({a: i})].sort(); f(12) }")),
    ]


def measure(bench, scratch, stacks, name, argv, options=()):
    """The figures of one program, as a dictionary."""
    out = os.path.join(scratch, "out." + name)
    tables = ["--tables", argv[0] + "-bare"] if os.path.exists(argv[0] + "-bare") else []
    with open(out, "wb") as f:
        p = subprocess.run([bench, "--figures", os.path.join(scratch, "figures"), "--stacks", str(stacks),
                            *options, *tables, "--", *argv], stdout=f, stderr=subprocess.STDOUT, check=False)
    if p.returncode:
        with open(out, errors="replace", encoding="utf-8") as f:
            sys.exit("%s: bench_user_stacks ended with %d: %s" % (name, p.returncode, f.read()[-500:]))
    with open(os.path.join(scratch, "figures"), encoding="ascii") as f:
        return {k: int(v) for k, v in (w.split("=") for w in f.read().split())}


def main():
    bench = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "bench", "bench_user_stacks")
    scratch = os.path.abspath(sys.argv[2])
    stacks = int(sys.argv[3]) if len(sys.argv) > 3 else 500
    asked = [a for a in sys.argv[4:] if not a.startswith("-")]
    options = [a for a in sys.argv[4:] if a.startswith("-")]
    os.makedirs(scratch, exist_ok=True)
    total = {}
    print("%-9s %6s %8s %8s %7s %6s %6s %9s %8s" % ("program", "stacks", "whole", "frames", "found",
                                                  "wrong", "cut", "no tables", "us each"))
    for name, make in programs(scratch):
        if asked and name not in asked:
            continue
        argv = make()
        if not argv:
            print("%-9s not here" % name)
            continue
        n = measure(bench, scratch, stacks, name, argv, options)
        for k, v in n.items():
            total[k] = total.get(k, 0) + v
        show(name, n)
    if total:
        total["ns"] //= max(1, total["programs"])
        show("all", total)
    shutil.rmtree(scratch, ignore_errors=True)


def show(name, n):
    print("%-9s %6d %6.1f %% %8d %5.1f %% %6d %6d %9d %8.2f" % (
        name, n["stacks"], 100 * n["whole"] / max(1, n["stacks"]), n["frames"],
        100 * n["found"] / max(1, n["frames"]), n["wrong"], n["cut"], n["untold"], n["ns"] / 1000), flush=True)


if __name__ == "__main__":
    main()
