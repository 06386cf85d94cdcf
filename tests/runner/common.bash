# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# Shared by the runner's scripts: where things lie, how to fail, and how a
# finished thing gets into the cache.

# shellcheck disable=SC2034  # used by the scripts that source this file
runner_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
project_root=$(cd "$runner_dir/../.." && pwd -P)
cache_dir=${HCAMEM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/hcamem}

# A make that these scripts start is not part of the one that started them.
unset MAKEFLAGS MFLAGS MAKELEVEL

# As whom say() speaks.
speaker=${0##*/}
say() { printf '%s: %s\n' "$speaker" "$*" >&2; }

# One line, then exit with $die_status (1 unless the script says otherwise).
die() {
	say "$*"
	exit "${die_status:-1}"
}

# need PROGRAM PACKAGE: refuse to go on without a program.
need() {
	command -v "$1" >/dev/null || die "$1 is missing: apt-get install $2"
}

# need_space DIR MIB: refuse to start what the disk cannot hold.
need_space() {
	local free
	free=$(df --output=avail -m "$1" | tail -n 1)
	((free >= $2)) || die "only $((free)) MiB free in $1, $2 MiB are needed"
}

# make_run_directory PREFIX: make a directory below $TMPDIR, held by a lock, and
# leave its path in $run. The caller removes it. Runners that were killed
# outright leave their directory, but not its lock: that is held by a living
# runner or its QEMU only. So the next one removes theirs.
make_run_directory() {
	local tmp=${TMPDIR:-/tmp} each
	for each in "$tmp/$1".*/lock; do
		if [[ -O $each ]] && flock --nonblock "$each" true; then
			rm -rf "${each%/lock}"
		fi
	done
	run=$(mktemp -d "$tmp/$1.XXXXXX") || die "cannot make a directory in $tmp"
	# It gets the name that is looked for above once it is locked.
	exec {run_lock}>"$run/lock.new"
	flock "$run_lock"
	mv "$run/lock.new" "$run/lock"
}

# publish NAME COMMAND [ARG...]: make $cache_dir/NAME unless it exists, and
# print its path. COMMAND, a program, gets a path as its last argument and
# creates it, with PATH.d to work in; the result appears under its final name
# only when complete, so a killed or failed build leaves nothing that looks
# finished. Runners that want the same thing at once wait for one another.
publish() {
	local target=$cache_dir/$1 lock=$cache_dir/locks/${1//\//-}
	shift
	if [[ ! -e $target ]]; then
		mkdir -p "${target%/*}" "${lock%/*}" 2>/dev/null ||
			die "cannot write to the cache $cache_dir (set HCAMEM_CACHE)"
		(
			flock 9 || exit 1
			# The lock is ours: what a killed builder left can go.
			partial=$target.partial
			rm -rf "$partial" "$partial.d"
			if [[ ! -e $target ]]; then
				trap 'rm -rf "$partial" "$partial.d"' EXIT
				trap 'exit 130' INT
				trap 'exit 143' TERM HUP
				mkdir "$partial.d"
				"$@" "$partial" >&2 || exit 1
				mv -T "$partial" "$target" || exit 1
			fi
		) 9>"$lock" || return 1
	fi
	printf '%s\n' "$target"
}
