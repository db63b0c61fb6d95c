#!/bin/sh
# Runs programs of tests against a PostgreSQL of their own.
#
# usage: tests/store/on_postgres.sh PROGRAM:PART...
#
# PROGRAM runs those of its tests that have PART in their name, with the
# server's URL in STAGGER_TEST_POSTGRES, and its folder, for scripts/postgres,
# in STAGGER_TEST_SERVER. Exits with 77 where there is no server to be run; in
# CI (CI=true) that is a failure.
set -eu
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/stagger-server.XXXXXX")
trap '"$scripts/postgres" down "$folder" >/dev/null 2>&1; rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

code=0
STAGGER_TEST_POSTGRES=$("$scripts/postgres" up "$folder") || code=$?
if [ "$code" -eq 77 ] && [ "${CI:-}" != true ]; then
    echo "left out: tests on PostgreSQL (no server: scripts/deps all)"
    exit 77
fi
[ "$code" -eq 0 ] || exit 1
# With a password in it: what is told of it must not have that.
password=$(cut -d: -f5 "$folder/passfile")
STAGGER_TEST_POSTGRES=$(echo "${STAGGER_TEST_POSTGRES%&passfile=*}" |
    sed "s/stagger@/stagger:$password@/")
STAGGER_TEST_SERVER=$folder
STAGGER_TEST_SCRIPT=$scripts/postgres
export STAGGER_TEST_POSTGRES STAGGER_TEST_SERVER STAGGER_TEST_SCRIPT
for test in "$@"; do
    "${test%:*}" "${test##*:}" || code=1
    [ "$code" -eq 0 ] || [ -z "${STAGGER_FAIL_FAST:-}" ] || break
done
exit "$code"
