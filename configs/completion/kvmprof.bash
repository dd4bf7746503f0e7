# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of kvmprof's commands, options, values and files for bash:
#
#   . configs/completion/kvmprof.bash      (`make install` puts it where bash-completion looks)
#
# Commands and options are asked of the program, from its help, so they are those of the
# kvmprof that is being called. Needs nothing of the package bash-completion.

_kvmprof_commands()
{
	"$1" help 2>/dev/null | sed -n '/^Examples/q; s/^  \([a-z][a-z]*\)  *[^ ].*/\1/p'
}

_kvmprof_topics()
{
	"$1" help topics 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)  *[^ ].*/\1/p'
}

# Options stand at the beginning of a line: `  -o, --output FILE   text', or several with
# their arguments, two blanks between them.
_kvmprof_options()
{
	local line spec='^(-[A-Za-z]|--[a-z][-a-z]*)(\[?[ =][^ a-z-][^ ]*)?,? *(.*)$'

	"$1" "$2" --help 2>/dev/null | while IFS= read -r line; do
		[[ $line =~ ^\ {2,8}(-.*)$ ]] || continue
		line=${BASH_REMATCH[1]}
		while [[ $line =~ $spec ]]; do
			printf '%s\n' "${BASH_REMATCH[1]}"
			line=${BASH_REMATCH[3]}
		done
	done
}

# Those of libvirt whose names are one word.
_kvmprof_domains()
{
	"$1" list --domains --json 2>/dev/null | grep -o '"name":"[^" ]*"' | cut -d'"' -f4
}

# PIDs or names of the machines under KVM.
_kvmprof_machines()
{
	case "$2" in
	pid) "$1" list --machines --json 2>/dev/null | grep -o '"pid":[0-9]*' | cut -d: -f2 ;;
	name) "$1" list --machines --json 2>/dev/null | grep -o '"name":"[^" ]*"' | cut -d'"' -f4 ;;
	esac
}

# What the help calls the value of the option $3 of the command $2.
_kvmprof_placeholder()
{
	"$1" "$2" --help 2>/dev/null |
		sed -nE "s/^ {2,8}(-[A-Za-z], )?(--[-a-z]+, )?$3(, --[-a-z]+)? ([]0A-Z[][^ ]*).*/\\4/p"
}

# Words that the option $3 of the command $2 takes; fails where a file may stand.
_kvmprof_values()
{
	case "$2 $3" in
	"export -F"|"export --format")
		"$1" export --list 2>/dev/null | sed -n 's/^  \([a-z][-a-z]*\)  *.*/\1/p' ;;
	"import --format") echo folded perf-script kp iprof ;;
	"gate -f"|"gate --format") echo text markdown junit sarif github json badge ;;
	"export --names") echo function offset both ;;
	"report --sort"|"report -s") echo comm pid tid cpu mode sym dso srcline code_page_size data_page_size ;;
	"mem --sort"|"mem -s") echo page code space region node symbol ;;
	"mem --mode") echo kernel user ;;
	"report -g"|"report --call-graph") echo caller callee none ;;
	"report --color") echo auto always never ;;
	"report --order"|"diff --order"|"top --sort"|"top -s") echo children self ;;
	"flamegraph --by") echo comm thread none ;;
	"flamegraph --lanes") echo cpu thread ;;
	"run --virtio") echo pci mmio ;;
	"run --net") echo user ;;
	"run --rootfs-as") echo initramfs ext4 ;;
	"run --boot"|"stat --boot") echo auto vmlinux bzimage linux32 multiboot pvh ;;
	"run --hugepages") echo 2M 1G thp off ;;
	"bench --format") echo text markdown junit sarif github json ;;
	"push --protocol") echo pyroscope connect parca ;;
	"run --control"|"ps --control") echo auto ;;
	"ps --sort") echo pid cpu time comm state wchan ;;
	# Without those that have a colon, at which bash ends a word.
	"run -e"|"run --event") "$1" list --json 2>/dev/null | grep -o '"name":"[^":]*"' | cut -d'"' -f4 ;;
	"annotate -M"|"annotate --disassembler-style") echo att intel ;;
	"attach --technique") echo auto bpf ptrace ;;
	"dmesg -l"|"dmesg --level") echo emerg alert crit err warn notice info debug ;;
	"attach --domain"|"ps --domain"|"top --domain"|"why --domain"|"dmesg --domain") _kvmprof_domains "$1" ;;
	"attach --name"|"ps --name"|"top --name"|"why --name"|"dmesg --name") _kvmprof_machines "$1" name ;;
	"attach --pid"|"ps --pid"|"top --pid"|"why --pid"|"dmesg --pid") _kvmprof_machines "$1" pid ;;
	"script -F"|"script --fields") echo +srcline ;;
	# Of this host are FILE, PATH, DIR and the like; of other values nothing is known.
	"push --path"|"run --cwd"|"report --phase") : ;;
	*) case $(_kvmprof_placeholder "$@") in
	   ""|FILE*|PATH*|DIR*|KERNEL|BASE|DOMAIN) return 1 ;;
	   esac ;;
	esac
}

# Words of `kvmprof ctl', after those in $3...; $2 is the last of them. Fails where a file may stand.
_kvmprof_ctl_words()
{
	local program=$1 prev=$2 word

	shift 2
	case "$prev" in
	collect|all|[0-9]|[0-9][0-9]) [[ " $* " == *" collect "* || " $* " == *" vcpu "* ]] && echo on off ;;
	vcpu) echo all ;;
	--control|snapshot) return 1 ;;
	*)
		for word; do
			case "$word" in
			status|stats|list|arm|disarm|event|period|freq|stack-size|max-stack|mark|stop|vcpu|collect) return 0 ;;
			esac
		done
		"$program" ctl --help 2>/dev/null | sed -n 's/^    \([a-z][-a-z]*\) .*/\1/p'
		echo disarm ;;
	esac
}

_kvmprof()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words head=
	local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]}

	type "$program" >/dev/null 2>&1 || program=kvmprof
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "$(_kvmprof_commands "$program") help --help --version" -- "$cur"))
		return
	fi
	if [[ $command == help ]]; then
		((COMP_CWORD > 2)) || COMPREPLY=($(compgen -W "$(_kvmprof_commands "$program") topics --json
			$(_kvmprof_topics "$program")" -- "$cur"))
		return
	fi
	# Bash makes words of `--option=value' and of the sign itself.
	if [[ $cur == "=" ]]; then
		cur=
	elif [[ $prev == "=" ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if [[ $cur == -?* || $cur == - ]]; then
		COMPREPLY=($(compgen -W "$(_kvmprof_options "$program" "$command")" -- "$cur"))
		return
	fi
	if [[ $prev == -* ]] && words=$(_kvmprof_values "$program" "$command" "$prev"); then
		# A list: what is before its last comma stays.
		[[ $cur == *,* ]] && head=${cur%,*},
		COMPREPLY=($(compgen -P "$head" -W "$words" -- "${cur##*,}"))
		return
	fi
	[[ $command == check ]] && return
	if [[ $command == ctl ]] && words=$(_kvmprof_ctl_words "$program" "$prev" "${COMP_WORDS[@]:2:COMP_CWORD-2}"); then
		COMPREPLY=($(compgen -W "$words" -- "$cur"))
		return
	fi
	if [[ $command == @(attach|ps|top|why|dmesg) && $prev != -* ]]; then
		words="$(_kvmprof_machines "$program" pid) $(_kvmprof_domains "$program")"
		COMPREPLY=($(compgen -W "$words" -- "$cur"))
		# top takes an image, too.
		[[ $command == top || ! ${words// /} ]] || return
	fi
	compopt -o filenames 2>/dev/null
	local IFS=$'\n'
	COMPREPLY+=($(compgen -f -- "$cur"))
}

complete -F _kvmprof kvmprof
