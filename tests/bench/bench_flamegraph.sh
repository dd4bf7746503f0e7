#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench_flamegraph.sh KVMPROF SCRATCH [SAMPLES [RUNS]]: the time and memory of
# `kvmprof flamegraph` beside the usual way on the same file:
# perf script | stackcollapse-perf.pl | flamegraph.pl.
#
# 1,000,000 samples of 2,000 different stacks, 16 to 24 frames deep. The two Perl
# scripts have no Debian package: the ones in PATH are taken, if there are both. Without
# them the peer is `perf script` into a fold of our own (the same rules, in Perl),
# which draws nothing: less than the whole way, so the ratio is a lower bound.
# The programs' runs alternate. Prints medians with (min-max), ratios of medians and
# the greatest resident memory of a process; asserts nothing.
set -eu

[ $# -ge 2 ] || { echo "usage: $0 KVMPROF SCRATCH [SAMPLES [RUNS]]" >&2; exit 2; }
kvmprof=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
samples=${3:-1000000}
runs=${4:-3}
mkdir -p "$2"
dir=$(cd "$2" && mktemp -d "$PWD/bench_flamegraph.XXXXXX")
trap 'rm -rf "$dir"' EXIT
HOME=$dir
export HOME
cd "$dir"

${CC:-gcc} -std=gnu11 -O2 -D_GNU_SOURCE -I"$root" ${CFLAGS:-} -o mkprofile \
	"$root/tests/e2e/mkprofile.c" "$(dirname "$kvmprof")/libkvmprof.a" ${LIBS:-}

# What stackcollapse-perf.pl makes of perf's text: a task's name, frames outermost first.
cat > fold.pl <<'PERL'
use strict;
my (%count, @stack, $comm);
while (<STDIN>) {
	if (/^\s*$/) {
		$count{join ';', $comm, reverse @stack}++ if defined $comm;
		undef $comm;
	} elsif (/^(\S.*?)\s+-?\d+/) {
		$comm = $1;
		$comm =~ tr/ /_/;
		@stack = ();
	} elsif (/^\s+[0-9a-f]+ (.+) \((.*)\)$/) {
		my $name = $1;
		$name =~ s/\+0x[0-9a-f]+$//;
		$name =~ tr/;/:/;
		push @stack, $name;
	}
}
$count{join ';', $comm, reverse @stack}++ if defined $comm;
print "$_ $count{$_}\n" for sort keys %count;
PERL

# Runs a command; appends its wall-clock seconds to $1 and the resident KiB of the
# largest process below it to $1.rss.
cat > clock.py <<'PYTHON'
import resource, subprocess, sys, time
start = time.monotonic()
status = subprocess.call(["/bin/sh", "-c", sys.argv[2]])
took = time.monotonic() - start
with open(sys.argv[1], "a") as f:
    f.write("%.3f\n" % took)
with open(sys.argv[1] + ".rss", "a") as f:
    f.write("%d\n" % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
PYTHON
clock() { python3 clock.py "$@" 2> err || { cat err >&2; exit 1; }; }

whole=
if command -v stackcollapse-perf.pl > /dev/null && command -v flamegraph.pl > /dev/null; then
	whole=y
fi

./mkprofile -n "$samples" -b 2000 perf.data
i=0
while [ $i -lt "$runs" ]; do
	clock ours "$kvmprof flamegraph -i perf.data -o ours.svg"
	clock chart "$kvmprof flamegraph -i perf.data --chart -o chart.svg"
	clock script "perf script -i perf.data > /dev/null"
	clock fold "perf script -i perf.data | perl fold.pl > folded"
	[ -z "$whole" ] || clock whole \
		"perf script -i perf.data | stackcollapse-perf.pl | flamegraph.pl > theirs.svg"
	i=$((i + 1))
done

summary() { # file: median min max
	sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)], v[1], v[NR] }'
}
row() { # label, file
	{ summary "$2"; summary "$2.rss"; summary ours; } | awk -v label="$1" '
		NR == 1 { m = $1; lo = $2; hi = $3 }
		NR == 2 { rss = $1 / 1024 }
		NR == 3 { printf "%-52s %8.3f s (%.3f-%.3f) %7.1f MiB  %6.1f times\n",
			label, m, lo, hi, rss, m / ($1 > 0 ? $1 : 0.001) }'
}
echo "samples: $samples, distinct stacks: $(wc -l < folded), runs: $runs"
row "kvmprof flamegraph" ours
row "kvmprof flamegraph --chart" chart
row "perf script" script
row "perf script | fold" fold
if [ -n "$whole" ]; then
	row "perf script | stackcollapse-perf.pl | flamegraph.pl" whole
else
	echo "stackcollapse-perf.pl and flamegraph.pl are not in PATH: the whole way takes longer than these"
fi
echo "bytes: graph $(stat -c %s ours.svg), chart $(stat -c %s chart.svg)"
