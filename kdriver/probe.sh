#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# probe.sh HEADER DIRECTORY COMPILER...: for each DIRECTORY/NAME.c, define
# HCAMEM_HAVE_NAME in HEADER if it compiles. A probe that must compile on every
# kernel (control.c) tells a missing interface from a broken build set-up.
set -eu
header=$1 directory=$2
shift 2

compiles()
{
	"$@" >/dev/null 2>&1
}

if ! compiles "$@" -fsyntax-only "$directory/control.c"; then
	echo "probe.sh: the control probe does not compile; the compiler says:" >&2
	"$@" -fsyntax-only "$directory/control.c" >&2 || true
	exit 1
fi

{
	echo "/* SPDX-License-Identifier: GPL-2.0-only */"
	for probe in "$directory"/*.c; do
		name=$(basename "$probe" .c)
		[ "$name" != control ] || continue
		if compiles "$@" -fsyntax-only "$probe"; then
			echo "#define HCAMEM_HAVE_$(echo "$name" | tr '[:lower:]' '[:upper:]') 1"
		fi
	done
} >"$header.tmp"
mv "$header.tmp" "$header"
