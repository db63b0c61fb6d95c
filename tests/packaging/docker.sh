#!/bin/sh
# The image: its Dockerfile is linted, its question after the hub's health is
# asked of a hub, and where there is docker it is built and run.
#
# usage: docker.sh STAGGER
set -eu
[ $# -eq 1 ] || { sed -n 's/^# usage/usage/p' "$0" >&2; exit 2; }
. "$(dirname "$0")/layer.sh"
stagger=$(realpath "$1")
cd "$(dirname "$0")/../.."
file=packaging/docker/Dockerfile

PATH=$PATH:$PWD/build/tools/bin
command -v hadolint >/dev/null || {
    echo "left out: docker (no hadolint)"
    exit 77
}
hadolint --failure-threshold warning "$file"

# What it copies from the tree is there.
for from in $(sed -n 's/^COPY \([^-][^ ]*\) .*/\1/p' "$file"); do
    [ -e "$from" ] || fail "there is no $from"
done

work=$(mktemp -d)
hub=
clean_up() {
    [ -z "$hub" ] || kill "$hub" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
"$stagger" hub --to http://127.0.0.1:1/ --listen 127.0.0.1:0 \
    --store "$work/hub.db" 2>"$work/log" &
hub=$!
until_well grep -q event=ready "$work/log"
address=$(sed -n 's/.*event=ready.* listen=\([^ ]*\).*/\1/p' "$work/log")
packaging/docker/health "$address" || fail "the hub is not well"
kill "$hub"
wait "$hub"
hub=
if packaging/docker/health "$address" 2>/dev/null; then
    fail "a hub that has ended is well"
fi
echo "docker: linted, and the hub asked after its health"

if docker info >/dev/null 2>&1; then
    image=stagger-test-$$
    docker build -q -t $image -f "$file" .
    docker run --rm $image --version
    container=$(docker run -d $image hub --to http://127.0.0.1:1/)
    until_well docker exec "$container" /usr/share/stagger/health 127.0.0.1:8080
    docker stop "$container" >/dev/null
    docker rm "$container" >/dev/null
    docker rmi -f $image >/dev/null
    echo "docker: built and run"
else
    echo "docker: there is none here, the image was not built"
fi
