#!/bin/sh
# Writes the completions of the command for a shell, made of what its commands say
# to --help: what is not there is not completed, and what is new there is.
#
# usage: make.sh STAGGER bash|zsh|fish
set -eu
[ $# -eq 2 ] || { sed -n 's/^# usage/usage/p' "$0" >&2; exit 2; }
stagger=$1 shell=$2 here=$(dirname "$0")

{
    "$stagger" --help
    for command in $("$stagger" --help | sed -n 's/^  \([a-z]*\)  *[^ ].*/\1/p' \
        | grep -vx stagger); do
        echo "@ $command"
        "$stagger" "$command" --help
    done
} | awk -v shell="$shell" -f "$here/read.awk" -f "$here/$shell.awk"
