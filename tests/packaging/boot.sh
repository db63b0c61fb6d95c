#!/bin/sh
# The unit under a real systemd: a machine with the package is booted in a
# container, and the hub is started, reloaded, killed, hung and stopped there.
#
# usage: boot.sh FOLDER   with the packages
set -eu
. "$(dirname "$0")/layer.sh"

# -- in the container ----------------------------------------------------------

settings=/etc/stagger/stagger.yaml

property() { # NAME
    systemctl show -p "$1" --value stagger
}

is() { # NAME VALUE
    [ "$(property "$1")" = "$2" ]
}

must() {
    "$@" || fail "not so: $*"
}

must_not() {
    if "$@"; then
        fail "it is so: $*"
    fi
}

said() { # WORDS, by the hub or about it
    journalctl -u stagger --no-pager | grep -qF "$*"
}

spoil() {
    echo 'nonsense: 1' >>$settings
}

mend() {
    sed -i /nonsense/d $settings
}

check_start() {
    stagger check --strict -c $settings
    must systemctl start stagger
    must is ActiveState active
    echo "status: $(property StatusText)"
    property StatusText | grep -q '^serving: targets 1,'
    echo hello | stagger send --quiet
    until_well test -s /trial/receipts
}

check_confinement() {
    status=/proc/$(property MainPID)/status
    must grep -q "^Uid:[^0-9]*$(id -u stagger)[^0-9]" "$status"
    must grep -q '^CapBnd:[^0-9]*0*$' "$status"
    must grep -q '^NoNewPrivs:[^0-9]*1$' "$status"
    must grep -q '^Seccomp:[^0-9]*2$' "$status"
}

check_reload() {
    pid=$(property MainPID)
    must systemctl reload stagger
    until_well said event=reloaded
    spoil
    must_not systemctl reload stagger
    mend
    must is ActiveState active
    must is MainPID "$pid"
}

# Whatever ends it, but the settings: it comes back.
check_restarts() {
    kill -KILL "$(property MainPID)"
    until_well is NRestarts 1
    until_well is SubState running
    kill -STOP "$(property MainPID)"
    until_well said 'Watchdog timeout'
    until_well is NRestarts 2
    until_well is SubState running
    must systemctl stop stagger
    must is Result success

    spoil
    must_not systemctl start stagger
    mend
    sleep 1 # ten times as long as it takes to restart
    must is ActiveState failed
    must is ExecMainStatus 2

    stagger sink --quiet --listen 127.0.0.1:8080 >/trial/other &
    other=$!
    until_well grep -q listening /trial/other
    systemctl reset-failed stagger
    must_not systemctl start stagger
    kill $other
    until_well is SubState running
    must systemctl stop stagger
}

check_another() {
    sed 's#stagger/stagger.db#stagger/two/stagger.db#' $settings \
        >/etc/stagger/two.yaml
    must systemctl start stagger@two
    must test -s /var/lib/stagger/two/stagger.db
    must systemctl stop stagger@two
}

if [ "$1" = --inside ]; then
    exec >/trial/out 2>&1
    mkdir -p /etc/systemd/system/stagger.service.d
    printf '[Service]\nRestartSec=100ms\nWatchdogSec=4s\n' \
        >/etc/systemd/system/stagger.service.d/quick.conf
    systemctl daemon-reload
    stagger sink --quiet --listen 127.0.0.1:9000 --log /trial/receipts &
    check_start
    check_confinement
    check_reload
    check_restarts
    check_another
    touch /trial/is-well
    exit
fi

# -- below it ------------------------------------------------------------------

if [ "$1" = --mounted ]; then
    work=$2 root=$2/root
    layer_mount "$work" "$3"
    layer_run "$work" sh -c 'dpkg --install /packages/stagger_*.deb' \
        >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    mkdir "$root/trial"
    cp "$0" "$(dirname "$0")/layer.sh" "$root/trial"
    cat >"$root/etc/systemd/system/trial.service" <<'END'
[Unit]
Description=a trial
After=basic.target
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
ExecStart=/bin/sh /trial/boot.sh --inside
TimeoutStartSec=240
END
    cat >"$root/etc/systemd/system/trial.target" <<'END'
[Unit]
Requires=basic.target trial.service
AllowIsolate=yes
END
    timeout -k 5 280 systemd-nspawn --quiet --boot --directory="$root" \
        --register=no --keep-unit --private-network --machine="trial-$$" \
        systemd.unit=trial.target >"$work/console" 2>&1 </dev/null || true
    rmdir "/run/systemd/nspawn/propagate/trial-$$" 2>/dev/null || true
    cat "$root/trial/out" || { cat "$work/console"; exit 1; }
    [ -e "$root/trial/is-well" ] || fail "it did not go well"
    echo "boot: started, confined, reloaded, killed, hung, stopped"
    exit
fi

[ $# -eq 1 ] || { sed -n 's/^# usage/usage/p' "$0" >&2; exit 2; }
layer_or_leave boot
command -v systemd-nspawn >/dev/null || {
    echo "left out: boot (no systemd-nspawn)"
    exit 77
}
layer_enter "$0" "$1"
