#!/bin/sh
# Installs into an empty folder, and uses what lies there as a stranger would:
# through pkg-config, shared and static, and through find_package().
#
# usage: check_install.sh CMAKE BUILD_DIR CC
set -eu
[ $# -eq 3 ] || { sed -n 's/^# usage/usage/p' "$0" >&2; exit 2; }
cmake=$1 build=$2 cc=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/usr
$cmake --install "$build" --prefix "$prefix" >"$work/log"
cd "$work"

cat >user.c <<'END'
#include <stagger/stagger.h>
int main(void)
{
    stg_rng rng = stg_rng_seed(1);

    return stg_rng_next(&rng) == stg_rng_next(&rng);
}
END

# Below the prefix there is each of these, and something is in it.
there() {
    for file in "$@"; do
        [ -s "$prefix/$file" ] || {
            echo "$file is missing, or empty"
            exit 1
        }
    done
}

source=$STAGGER_SOURCE
for page in "$source"/docs/man/*.[135]; do
    there "share/man/man${page##*.}/${page##*/}"
done
[ ! -e "$build/web/stagger-sim.html" ] \
    || there share/doc/stagger/stagger-sim.html
for page in "$source"/docs/*.md; do
    there "share/doc/stagger/${page##*/}"
done
if [ -e "$prefix/bin/stagger" ]; then
    "$prefix/bin/stagger" --help >/dev/null
    there share/bash-completion/completions/stagger \
        share/zsh/site-functions/_stagger \
        share/fish/vendor_completions.d/stagger.fish
fi
if [ -e "$prefix/bin/stagger" ] && "$prefix/bin/stagger" hub --help >/dev/null
then
    there lib/systemd/system/stagger.service \
        lib/systemd/system/stagger@.service lib/sysusers.d/stagger.conf \
        share/doc/stagger/examples/stagger.yaml \
        share/doc/stagger/examples/minimal.yaml
    for file in "$source"/docs/*.yaml "$source"/packaging/*.json; do
        [ ! -e "$file" ] || there "share/stagger/${file##*/}"
    done
    for file in "$source"/packaging/grafana/* "$source"/packaging/prometheus/*
    do
        [ ! -e "$file" ] || there "share/stagger/${file#"$source"/packaging/}"
    done
    echo "the hub: units, settings, contracts"
fi
for file in "$source"/examples/*.c "$source"/examples/*.cpp \
    "$source"/examples/*.conf; do
    there "share/doc/stagger/examples/${file##*/}"
done
lib=$(dirname "$(find "$prefix" -name libstagger.a)")
export LD_LIBRARY_PATH="$lib" PKG_CONFIG_PATH="$lib/pkgconfig"

# The SONAME holds the minor version; the library is found under it.
if [ -e "$lib/libstagger.so" ]; then
    version=$(sed -n 's/^Version: //p' "$lib/pkgconfig/stagger.pc")
    ls "$lib/libstagger.so.${version%.*}" >/dev/null
fi

if command -v pkg-config >/dev/null; then
    $cc -std=c11 -Wall -Wextra -Werror user.c -o user \
        $(pkg-config --cflags --libs stagger)
    ./user
    $cc -std=c11 user.c -o user-static \
        $(pkg-config --cflags stagger) "$lib/libstagger.a"
    LD_LIBRARY_PATH='' ./user-static
    echo "pkg-config: shared and static"
    if command -v c++ >/dev/null; then
        c++ -std=c++17 -Wall -Wextra -Werror "$source/examples/retry.cpp" \
            -o retry $(pkg-config --cflags --libs stagger)
        ./retry >/dev/null
        echo "pkg-config: C++"
    fi
else
    echo "pkg-config: not there, not tried"
fi

adapters=
targets='stagger::stagger stagger::static'
for adapter in uv curl pq; do
    if [ -e "$lib/pkgconfig/stagger-$adapter.pc" ]; then
        adapters="${adapters:-COMPONENTS} $adapter"
        targets="$targets stagger::$adapter stagger::$adapter-static"
        sed "1i #include <stagger/$adapter.h>" user.c >"user-$adapter.c"
        $cc -std=gnu11 -Wall -Wextra -Werror "user-$adapter.c" \
            -o "user-$adapter" $(pkg-config --cflags --libs "stagger-$adapter")
        "./user-$adapter"
    fi
done
cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(stagger 0.1 REQUIRED $adapters)
foreach(target $targets)
    string(MAKE_C_IDENTIFIER \${target} name)
    add_executable(\${name} user.c)
    target_link_libraries(\${name} PRIVATE \${target})
    list(APPEND runs COMMAND \${name})
endforeach()
add_custom_target(run ALL \${runs})
END
CC=$cc $cmake -S . -B by-cmake -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" \
    || { cat "$work/log"; exit 1; }
$cmake --build by-cmake >"$work/log" || { cat "$work/log"; exit 1; }
echo "find_package: $targets"

# -- and away again: no file stays

make -s -C "$source" uninstall BUILD="$build"
left=$(find "$prefix" -type f -o -type l)
[ -z "$left" ] || {
    echo "make uninstall has left:" "$left"
    exit 1
}
