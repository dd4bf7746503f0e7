#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_perfdata.sh KVMPROF SCRATCH [SAMPLES [RUNS]]: the size of our perf.data
# and the time of `kvmprof report` and `script` beside perf's on the same file.
#
# 1,000,000 samples of 2,000 different stacks, 16 to 24 frames deep. The runs of
# the two programs alternate, so that what else the machine does hits both alike.
# Prints medians with (min-max), ratios of medians, the largest resident sets, and
# beside our bytes per sample those of a file that perf makes of the same records
# (perf inject). Asserts nothing.
set -eu

[ $# -ge 2 ] || { echo "usage: $0 KVMPROF SCRATCH [SAMPLES [RUNS]]" >&2; exit 2; }
kvmprof=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
samples=${3:-1000000}
runs=${4:-3}
mkdir -p "$2"
dir=$(cd "$2" && mktemp -d "$PWD/bench_perfdata.XXXXXX")
trap 'rm -rf "$dir"' EXIT
HOME=$dir
export HOME
cd "$dir"

${CC:-gcc} -std=gnu11 -O2 -D_GNU_SOURCE -I"$root" ${CFLAGS:-} -o mkprofile \
	"$root/tests/e2e/mkprofile.c" "$(dirname "$kvmprof")/libkvmprof.a" ${LIBS:-}

# Wall-clock seconds of a command, appended to $1, and its largest resident set in KiB to $1.rss.
clock() {
	out=$1
	shift
	python3 - "$out" "$@" <<'P'
import resource, subprocess, sys, time
out, command = sys.argv[1], sys.argv[2:]
start = time.monotonic()
subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
seconds = time.monotonic() - start
with open(out, "a") as f:
    f.write("%.3f\n" % seconds)
with open(out + ".rss", "a") as f:
    f.write("%d\n" % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
P
}

summary() { # file: median min max
	sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)], v[1], v[NR] }'
}

i=0
while [ $i -lt "$runs" ]; do
	clock write ./mkprofile -n "$samples" -b 2000 perf.data
	clock ours "$kvmprof" report -i perf.data
	clock perf_self perf report -i perf.data --stdio --no-children -g none
	clock perf_children perf report -i perf.data --stdio --children -g none
	# Once: perf takes minutes for it.
	if [ $i -eq 0 ]; then
		clock ours_graph "$kvmprof" report -g caller -i perf.data
		clock perf_graph perf report -i perf.data --stdio --children -g caller
	fi
	clock ours_script "$kvmprof" script -i perf.data
	clock perf_script perf script -i perf.data
	i=$((i + 1))
done

size=$(stat -c %s perf.data/data)
echo "samples: $samples, runs: $runs"
awk "BEGIN { printf \"bytes per sample: %.1f\n\", $size / $samples }"
# The same records as perf itself writes them: perf inject takes each and writes it anew.
./mkprofile -1 -n "$samples" -b 2000 one.data
# perf 6.1 crashes behind the last byte of a file this large, so its status says nothing.
perf inject -i one.data -o injected 2> err || true
awk "BEGIN { printf \"bytes per sample of perf inject: %.1f\n\", $(stat -c %s injected) / $samples }"
row() { # label, file, label of the reference, file of the reference
	{ summary "$2"; summary "$4"; } | awk -v a="$1" -v b="$3" '
		NR == 1 { m = $1; lo = $2; hi = $3 }
		NR == 2 { printf "%s: %.2f s (%.2f-%.2f); %s: %.2f s (%.2f-%.2f); ratio %.1f\n",
			a, m, lo, hi, b, $1, $2, $3, $1 / (m > 0 ? m : 0.001) }'
}
row "kvmprof report" ours "perf report --no-children -g none" perf_self
row "kvmprof report" ours "perf report --children -g none" perf_children
row "kvmprof report -g caller" ours_graph "perf report --children -g caller" perf_graph
memory() { # label, file, label, file
	{ summary "$2.rss"; summary "$4.rss"; } | awk -v a="$1" -v b="$3" '
		NR == 1 { m = $1 }
		NR == 2 { printf "memory of %s: %.0f MiB; %s: %.0f MiB\n", a, m / 1024, b, $1 / 1024 }'
}
memory "kvmprof report" ours "perf report --children -g none" perf_children
memory "kvmprof report -g caller" ours_graph "perf report --children -g caller" perf_graph
row "kvmprof script" ours_script "perf script" perf_script
summary write | awk -v n="$samples" '{ printf "writing: %.2f s (%.2f-%.2f), %.0f ns a sample, with making it up\n",
	$1, $2, $3, 1e9 * $1 / n }'
