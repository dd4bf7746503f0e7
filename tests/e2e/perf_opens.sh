#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 7 s
# tests: not svm, files
#
# perf_opens.sh KVMPROF SCRATCH: does stock perf read what we write, and does it
# say the same as we do?
#
# A made-up profile with known shares (tests/e2e/mkprofile.c) goes through perf
# report, script, annotate and diff, with an empty home directory, from where it
# was written and from where it was moved to, as a directory and as a file.
set -u

[ $# -eq 2 ] || { echo "usage: $0 KVMPROF SCRATCH" >&2; exit 2; }
kvmprof=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
lib=$(dirname "$kvmprof")/libkvmprof.a
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$2" || exit 1
dir=$(cd "$2" && mktemp -d "$PWD/perf_opens.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

fail() {
	echo "perf_opens: FAIL: $*" >&2
	failed=1
}

command -v perf >/dev/null || { echo "perf is not installed"; exit 77; }
perf --version >/dev/null 2>&1 || { echo "perf does not run here"; exit 77; }

# -- build the writer and a user program ----------------------------------------
# CFLAGS and LIBS: what the library was built with (sanitizers).
${CC:-gcc} -std=gnu11 -O2 -D_GNU_SOURCE -I"$root" ${CFLAGS:-} \
	-o "$dir/mkprofile" "$root/tests/e2e/mkprofile.c" "$lib" ${LIBS:-} || exit 1
cat > "$dir/user.c" <<'C'
void demo_leaf(void) { __asm__ volatile("nop; nop; nop; nop; nop; nop"); }
void demo_loop(void) { for (;;) demo_leaf(); }
void demo_start(void) { demo_loop(); }
C
${CC:-gcc} -O0 -fno-omit-frame-pointer -static -nostdlib -no-pie -Wl,--build-id=sha1 \
	-Wl,-e,demo_start -o "$dir/user.elf" "$dir/user.c" || exit 1

# -- checks ----------------------------------------------------------------------
# No complaint, no name that is not the guest's.
clean() { # what, file
	if grep -i -E 'warning|kptr|restricted|not found|failed|no symbols|out of order|corrupt' "$2"; then
		fail "$1: perf complains"
	fi
}

# `name self children` of the whole, from perf's report with comms summed up.
# $* = arguments of perf report
perf_shares() {
	perf report "$@" --stdio -g none --sort sym --percent-limit 0 2>"$dir/err" |
		sed -n 's/^ *\([0-9.]*\)% *\([0-9.]*\)% *\[[k.]\] \(.*[^ ]\) *$/\3 \2 \1/p' | sort
}

our_shares() {
	"$kvmprof" report "$@" -n 0 2>>"$dir/err" | grep -v '^#' |
		awk '{ sub(/%/, "", $1); sub(/%/, "", $2); print $5, $2, $1 }' | sort
}

true_shares() {
	awk '$1 == "total" { t = $2; next } { printf "%s %.2f %.2f\n", $1, 100 * $2 / t, 100 * $3 / t }' \
		"$dir/expected" | sort
}

same() { # what, file, file
	diff "$2" "$3" > "$dir/diff" || { fail "$1"; head -n 10 "$dir/diff" >&2; }
}

# Every check on one profile. $1 = what, $2 = path, $3 = can annotate the kernel
check() {
	perf_shares -i "$2" > "$dir/perf.shares"
	clean "$1: report" "$dir/err"
	same "$1: perf report differs from what was written" "$dir/true.shares" "$dir/perf.shares"
	our_shares -i "$2" > "$dir/our.shares"
	clean "$1: kvmprof report" "$dir/err"
	same "$1: kvmprof report differs from what was written" "$dir/true.shares" "$dir/our.shares"

	perf report -i "$2" --stdio --no-children > "$dir/chains" 2>&1
	clean "$1: report with call chains" "$dir/chains"
	for s in guest_start_kernel guest_startup guest_syscall demo_loop demo-user; do
		grep -q "$s" "$dir/chains" || fail "$1: perf report lacks $s"
	done
	grep -E '^ +[0-9.]+% .*\[k\]' "$dir/chains" | grep -v '\[k\] guest_' &&
		fail "$1: a kernel name that is not the guest's"
	grep -q "\[k\] guest_func" "$dir/chains" && fail "$1: a function that was never sampled"

	perf script -i "$2" > "$dir/perf.script" 2> "$dir/err"
	clean "$1: script" "$dir/err"
	"$kvmprof" script -i "$2" > "$dir/our.script" || fail "$1: kvmprof script"
	same "$1: kvmprof script differs from perf script" "$dir/perf.script" "$dir/our.script"
	perl -ne '
		if (/^$/) { die "line $.: blank\n" unless $frames; $head = $frames = 0; $n++ }
		elsif (/^\S.*? +\d+ \[\d{3}\] +\d+\.\d{6}: +\d+ \S+: $/) { die "line $.\n" if $head; $head = 1 }
		elsif (/^\t *[0-9a-f]+ (\[unknown\]|\S+\+0x[0-9a-f]+) \(\S+\)$/) { die "line $.\n" unless $head; $frames++ }
		else { die "line $.: $_" }
		END { exit($n == 10000 ? 0 : 1) unless $? }' "$dir/our.script" ||
		fail "$1: kvmprof script: not the grammar that stackcollapse-perf.pl reads"

	"$kvmprof" report -i "$2" | grep -q '^# time: 40.00 % idle, 50.00 % kernel, 10.00 % user' ||
		fail "$1: kvmprof report takes the wrong samples for idle"

	if [ "$3" = yes ]; then
		perf annotate -i "$2" --stdio guest_idle > "$dir/annotate" 2>&1
		grep -q '100.00.*nop' "$dir/annotate" || fail "$1: perf annotate shows no kernel code"
	fi
	perf annotate -i "$2" --stdio demo_leaf > "$dir/annotate" 2>&1
	grep -q '100.00.*mov' "$dir/annotate" || fail "$1: perf annotate shows no user code"

	perf diff "$2" "$2" > "$dir/perfdiff" 2>&1
	clean "$1: diff" "$dir/perfdiff"
	grep -q '40.00%.*guest_idle' "$dir/perfdiff" || fail "$1: perf diff"
	perf report -i "$2" --header-only --stdio > "$dir/header" 2>&1
	for s in 'os release : 6.9.0-guest' 'name = wall' 'sample_freq } = 1000' 'clockid: monotonic'; do
		grep -q "$s" "$dir/header" || fail "$1: header lacks '$s'"
	done
	perf buildid-list -i "$2" > "$dir/ids" 2>&1
	grep -q 'kernel.kallsyms' "$dir/ids" && grep -q demo-user "$dir/ids" || fail "$1: build ids"
}

# What perf says of a profile, but for the command line and the times of its header. $1 = path
all_of_perf() {
	all_of_perf_and_tips "$1" 2>&1 | grep -v '^# (Tip: '
}

all_of_perf_and_tips() {
	perf report -i "$1" --stdio
	perf report -i "$1" --stdio --no-children --sort comm,pid,tid,cpu,dso,sym -g none
	perf script -i "$1" -F +misc
	perf annotate -i "$1" --stdio guest_idle
	perf annotate -i "$1" --stdio guest_recurse
	perf annotate -i "$1" --stdio demo_leaf
	perf diff "$1" "$1"
}

# The bit that tells the running vCPU's samples from the halted one's is nothing to perf.
idle_bit() {
	mv perf.data new
	./mkprofile -p perf.data user.elf > "$dir/expected.past" || fail "mkprofile -p"
	all_of_perf perf.data > "$dir/perf.past"
	"$kvmprof" report -i perf.data | grep -q '^# time: 55.00 % idle, 35.00 % kernel, 10.00 %' ||
		fail "a profile that does not say what was idle: pid 0 does not count as it"
	rm -rf perf.data
	mv new perf.data
	all_of_perf perf.data > "$dir/perf.now"
	[ "$(wc -l < "$dir/perf.now")" -gt 50000 ] || fail "perf says too little"
	same "perf sees what was idle" "$dir/perf.past" "$dir/perf.now"
}

new_home() {
	rm -rf "$dir/home"
	mkdir "$dir/home"
	HOME=$dir/home
	export HOME
}

# perf refuses files of other users; run as we are, with our files.
new_home
cd "$dir" || exit 1
for id in "" -x; do
	new_home
	./mkprofile $id perf.data user.elf > expected || { fail mkprofile; exit 1; }
	true_shares > true.shares
	check "directory$id" perf.data yes
	[ -n "$id" ] || idle_bit
	cp -a perf.data copied
	mkdir elsewhere
	mv perf.data elsewhere/moved
	check "copied$id" copied yes
	check "moved$id" elsewhere/moved yes
	# Without the build-id cache: kvmprof still knows the user's names, perf the kernel's.
	new_home
	our_shares -i copied > our.shares
	same "copied$id without cache: kvmprof report" true.shares our.shares
	perf_shares -i copied | grep guest_ > perf.shares
	grep guest_ true.shares > kernel.shares
	same "copied$id without cache: perf report" kernel.shares perf.shares
	rm -rf copied elsewhere perf.data

	new_home
	./mkprofile $id -1 one.data user.elf > expected || { fail mkprofile; exit 1; }
	check "file$id" one.data no
	rm -rf one.data
done

# Tasks, modules, programs and a vdso: each line of what was written, by perf and by us.
${CC:-gcc} -std=gnu11 -O2 -D_GNU_SOURCE -I"$root" ${CFLAGS:-} \
	-o "$dir/mktasks" "$root/tests/e2e/mktasks.c" "$lib" ${LIBS:-} || exit 1
cat > prog.c <<'C'
void prog_work(void) { __asm__ volatile("nop; nop; nop; nop; nop; nop"); }
void prog_main(void) { for (;;) prog_work(); }
C
cat > lib.c <<'C'
void lib_work(void) { __asm__ volatile("nop; nop; nop; nop; nop; nop"); }
void lib_entry(void) { lib_work(); }
C
echo 'long vdso_time(void) { __asm__ volatile("nop; nop; nop"); return 5; }' > vdso.c
${CC:-gcc} -O0 -fno-omit-frame-pointer -static -nostdlib -no-pie -Wl,--build-id=sha1 \
	-Wl,-e,prog_main -o prog.elf prog.c || exit 1
# The library's functions are in .symtab alone, so that they can be renamed below.
${CC:-gcc} -O0 -fPIC -fvisibility=hidden -shared -nostdlib -Wl,--build-id=sha1 -o lib.so lib.c &&
	${CC:-gcc} -O0 -fPIC -shared -nostdlib -Wl,--build-id=sha1 -o vdso.so vdso.c || exit 1

# The library in the cache and in the profile gets a C++ name; perf printed the other before.
# $1 = what
renamed() {
	id=$(readelf -n lib.so | sed -n 's/.*Build ID: *//p')
	cached=$HOME/.debug/.build-id/$(echo "$id" | sed 's/^../&\//')/elf
	[ -f "$cached" ] && [ -f "perf.data/dso/$id" ] || fail "$1: no library in cache and profile"
	sed 's/lib_work+/lib::work+/' perf.script > want.script
	sed 's/lib_work+/_ZN3lib4workEi+/' perf.script > want.raw
	objcopy --redefine-sym lib_work=_ZN3lib4workEi lib.so cxx.so &&
		cp -f cxx.so "$cached" && cp -f cxx.so "perf.data/dso/$id" || fail "$1: objcopy"
	perf script > out 2> err
	clean "$1: perf script" err
	same "$1: perf script" want.script out
	"$kvmprof" script > out || fail "$1: kvmprof script"
	same "$1: kvmprof script" want.script out
	"$kvmprof" script --no-demangle > out || fail "$1: script --no-demangle"
	same "$1: kvmprof script --no-demangle" want.raw out
	"$kvmprof" report --sort sym -n 0 > out
	grep -q ' lib::work$' out && ! grep -q 'lib_work\|_ZN' out || fail "$1: report: $(cat out)"
	"$kvmprof" report --sort sym -n 0 --no-demangle > out
	grep -q ' _ZN3lib4workEi$' out && ! grep -q '::' out ||
		fail "$1: report --no-demangle: $(cat out)"
	"$kvmprof" report --sort sym -n 0 --json | grep -q '"symbol":"lib::work"' ||
		fail "$1: report --json"
}
for opt in "" -1; do
	new_home
	./mktasks $opt perf.data prog.elf lib.so vdso.so > expected || { fail mktasks; exit 1; }
	awk '$1 == "total" { t = $2; next }
		{ n = $1; sub(/^[0-9]+ /, ""); printf "%.2f%% %s\n", 100 * n / t, $0 }' expected |
		sort > true.tasks
	perf report --stdio --no-children -g none --sort comm,dso,sym > out 2> err
	clean "tasks$opt: perf report" err
	grep -v '^#' out | sed 's/ \[[k.]\] / /' | tr -s ' ' | sed 's/^ //; s/ $//; /^$/d' |
		sort > perf.tasks
	same "tasks$opt: perf report" true.tasks perf.tasks
	"$kvmprof" report --no-children --sort comm,dso,sym -n 0 | grep -v '^#' | tr -s ' ' |
		sed -E 's/^ //; s/^([0-9.]+%) [0-9]+/\1/' | sort > our.tasks
	same "tasks$opt: kvmprof report" true.tasks our.tasks
	perf script > perf.script 2> err
	clean "tasks$opt: perf script" err
	"$kvmprof" script > our.script || fail "tasks$opt: kvmprof script"
	same "tasks$opt: kvmprof script differs from perf script" perf.script our.script
	perf annotate --stdio vdso_time > out 2>&1
	grep -q '100.00.*mov' out || fail "tasks$opt: perf annotate shows no code of the vdso"
	[ -d perf.data ] || continue
	renamed "tasks: C++ names"
	# perf has the kcore and so the kernel's code, and has kept the modules nevertheless.
	perf annotate --stdio guest_idle > out 2>&1
	grep -q '100.00.*xchg' out || fail "tasks: perf annotate shows no kernel code"
	# By other keys, and only some of it.
	"$kvmprof" report --sort comm --comm shell,copy --no-children > out
	grep -q '^ *68.82% .* shell$' out && grep -q '^ *31.18% .* copy$' out ||
		fail "tasks: --sort comm --comm: $(cat out)"
	"$kvmprof" report --sort pid,tid --pid 100-200 --order self > out
	[ "$(grep -vc '^#' out)" = 3 ] || fail "tasks: --sort pid,tid: $(cat out)"
	"$kvmprof" report --sort dso --dso '[late]' --json | grep -q '"dso":"\[late\]","self":25000000' ||
		fail "tasks: --dso --json"
	for bad in "--sort self" "--sort sym,nonsense" "--sort ," "--order comm" "--cpu 3-1" "--pid x" "--tid 1," "--comm ,"; do
		"$kvmprof" report $bad > out 2> err && fail "report $bad succeeded"
		[ "$(wc -l < err)" = 1 ] || fail "report $bad: $(cat err)"
	done
done
rm -rf perf.data perf.data.old

# Kernels about which little is known: addresses, and never the host's names.
for opt in -s -u -1s -1u; do
	new_home
	./mkprofile $opt perf.data > expected || fail mkprofile
	perf report -i perf.data --stdio -g none > out 2> err
	grep '\[k\]' out | grep -v '\[k\] 0xffffffff81' && fail "$opt: a name for a kernel without symbols"
	grep -q '\[k\] 0xffffffff81' out || fail "$opt: no addresses"
	grep -i kptr err && fail "$opt: perf complains about the host's kernel"
	rm -rf perf.data
done

# What was there is kept once; other people's directories are left alone.
./mkprofile perf.data > expected && ./mkprofile perf.data > expected
[ -f perf.data/data ] && [ -f perf.data.old/data ] || fail "no perf.data.old"
mkdir precious && ./mkprofile precious 2>err >out && fail "replaced a directory that is no profile"
./mkprofile missing/dir/perf.data 2>err >out && fail "wrote into a missing directory"
[ -z "$(find . -name '*.tmp-*')" ] || fail "temporary files are left"

# What is no profile is told so, in one line.
printf 'hello' > junk
head -c 50000 perf.data/data > cut
for f in junk missing.data /; do
	"$kvmprof" report -i "$f" > out 2> err && fail "report of $f succeeded"
	[ "$(wc -l < err)" = 1 ] && grep -q '^kvmprof: ' err || fail "report of $f: $(cat err)"
done
"$kvmprof" report -i cut > out 2>err && fail "report of a file that is cut before the first sample"
grep -q PARTIAL out || fail "a cut file is not marked partial"
grep -q "no samples" err || fail "not told that a cut file has no samples"
head -c 200000 perf.data/data > cut
"$kvmprof" report -i cut > out || fail "report of a cut file"
grep -q PARTIAL out || fail "a file that is cut behind some samples is not marked partial"

# Files of perf's own, where this machine lets it record.
if perf record -q -e cpu-clock -g -o theirs.data -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' \
	> out 2> err; then
	perf script -i theirs.data 2>/dev/null | grep cpu-clock > perf.script
	"$kvmprof" script -i theirs.data | grep cpu-clock > our.script
	same "perf's own file: kvmprof script" perf.script our.script
else
	echo "perf_opens: note: perf cannot record here, its own files were not tried"
fi

[ $failed = 0 ] && echo "perf_opens: ok"
exit $failed
