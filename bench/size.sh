#!/bin/sh
# Writes a header with the bytes of code and constants in some objects.
#
# usage: size.sh SIZE HEADER OBJECT...
set -eu
[ $# -ge 3 ] || { sed -n 's/^# usage/usage/p' "$0" >&2; exit 2; }
size=$1 header=$2
shift 2
"$size" -A -d "$@" | awk '
    $1 ~ /^\.(text|rodata)/ { bytes += $2 }
    END { print "#define CORE_SIZE " bytes + 0 "ul" }' >"$header"
