#!/bin/sh
# The Debian packages: they install, work, and leave nothing behind.
#
# They are put upon this machine, but on a layer above its file system that is
# gone with the test. For that it has to be root, and overlayfs has to be there.
#
# usage: deb.sh FOLDER   with the packages
set -eu
. "$(dirname "$0")/layer.sh"

# -- on the layer --------------------------------------------------------------

names() { # of all that is called after us
    find / -xdev \( -path /tmp -o -path /proc -o -path /packages \) -prune -o \
        -name '*stagger*' -print | sort
}

is_known() { # USER
    getent passwd "$1" >/dev/null
}

check_library() {
    cat >/tmp/user.c <<'END'
#include <stagger/curl.h>
#include <stagger/pq.h>
#include <stagger/stagger.h>
#include <stagger/uv.h>
int main(void)
{
    stg_rng rng = stg_rng_seed(1);

    return stg_rng_next(&rng) == stg_rng_next(&rng);
}
END
    cc -Wall -Wextra -Werror /tmp/user.c -o /tmp/user $(pkg-config --cflags --libs stagger-uv stagger-curl stagger-pq stagger)
    /tmp/user
}

# As the unit does: its user, its folder, its settings.
check_hub() {
    stagger sink --listen 127.0.0.1:0 --quiet --log /tmp/receipts >/tmp/sink &
    sink=$!
    until_well grep -q : /tmp/sink
    port=$(sed 's/.*://; q' /tmp/sink)
    sed -i "s/127.0.0.1:8080/127.0.0.1:0/; s/127.0.0.1:9000/127.0.0.1:$port/" \
        /etc/stagger/stagger.yaml
    as_stagger="setpriv --reuid stagger --regid stagger --init-groups"
    $as_stagger stagger check --strict -c /etc/stagger/stagger.yaml
    $as_stagger stagger hub -c /etc/stagger/stagger.yaml 2>/tmp/log &
    hub=$!
    until_well grep -q event=ready /tmp/log
    address=$(sed -n 's/.*event=ready.* listen=\([^ ]*\).*/\1/p' /tmp/log)
    echo hello | stagger send --quiet --hub "http://$address"
    until_well test -s /tmp/receipts
    kill "$hub"
    wait "$hub" || fail "the hub ended with $?"
    kill "$sink"
    wait "$sink" || true
    [ -s /var/lib/stagger/stagger.db ] || fail "there is no store"
}

if [ "$1" = --inside ]; then
    cd /packages
    names >/tmp/before
    is_known stagger && fail "there is a user stagger already"

    dpkg --install ./*.deb >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
    is_known stagger || fail "there is no user stagger"
    dpkg --verify stagger libstagger-dev
    stagger --version
    check_library
    check_hub

    dpkg --remove stagger >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
    [ ! -e /usr/bin/stagger ] || fail "the command is still there"
    [ -e /etc/stagger/stagger.yaml ] || fail "the settings are gone"
    [ -e /var/lib/stagger/stagger.db ] || fail "the store is gone"

    dpkg --purge $(for file in ./*.deb; do dpkg-deb -f "$file" Package; done) \
        >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
    is_known stagger && fail "the user is still there"
    names | diff /tmp/before - || fail "this is left"
    echo "deb: installed, used, removed, purged"
    exit
fi

# -- below it ------------------------------------------------------------------

if [ "$1" = --mounted ]; then
    layer_mount "$2" "$3"
    cp "$0" "$(dirname "$0")/layer.sh" "$2/root/packages"
    layer_run "$2" sh /packages/deb.sh --inside
    exit
fi

[ $# -eq 1 ] || { sed -n 's/^# usage/usage/p' "$0" >&2; exit 2; }
layer_or_leave deb
layer_enter "$0" "$1"
