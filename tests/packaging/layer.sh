# For tests that install: a layer above this machine's file system, which is gone
# when the process that made it has ended. To be sourced.

# Whether it can be done: as root, in a mount namespace. Else the test is left
# out.
layer_or_leave() { # TEST
    [ "$(id -u)" -eq 0 ] || {
        echo "left out: $1 (not root)"
        exit 77
    }
    grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || {
        echo "left out: $1 (no overlayfs)"
        exit 77
    }
}

# Runs a script again, by itself: SCRIPT --mounted WORK ARGUMENT...
layer_enter() { # SCRIPT ARGUMENT...
    work=$(mktemp -d)
    trap 'rmdir "$work"' EXIT
    script=$1
    shift
    unshare --mount --propagation private \
        sh "$script" --mounted "$work" "$@"
}

# The layer at WORK/root, with the packages of a folder in /packages.
layer_mount() { # WORK PACKAGES
    root=$1/root
    mount -t tmpfs tmpfs "$1"
    mkdir "$1/upper" "$1/work" "$root"
    mount -t overlay overlay "$root" \
        -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work"
    mkdir "$root/packages"
    cp "$2"/*.deb "$root/packages"
    rm -f "$root"/packages/*-dbgsym_*.deb
}

# A command on it, with what commands expect.
layer_run() { # WORK COMMAND...
    root=$1/root
    shift
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/tmp"
    chmod 1777 "$root/tmp"
    chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"
    umount "$root/tmp" "$root/dev" "$root/proc"
}

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Runs a command again and again, until it goes well.
until_well() {
    for _ in $(seq 600); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    fail "never went well: $*"
}
