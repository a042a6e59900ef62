#!/bin/sh
# netprobe @VERSION@ for @ARCH@: this shell text, and behind it a packed Python with netprobe.
#   sh FILE [ARGUMENT ...]    runs netprobe; the first start unpacks it (docs/install.md)
#   sh FILE --verify          checks this file, and what was unpacked of it
#   sh FILE --extract DIR     unpacks it into a new folder; DIR/bin/netprobe starts it
[ -f "$0" ] && [ $(wc -c <"$0") -eq @SIZE@ ] || { echo "netprobe: $0: is not whole: it was changed or cut, or is not run as \`sh FILE\`; get it again" >&2; exit 4; }
np_sum=@SUM@
np_name=@VERSION@-@HASH@

set -f
np_no() { echo "netprobe: $*" >&2; exit 4; }
np_foreign() { np_no "$1: belongs to another user; give a folder of your own: XDG_CACHE_HOME=DIR"; }

# All of the file but the sum itself.
np_whole() {
    [ "$({ head -c @SUM_AT@ "$0"; tail -c +@SUM_END@ "$0"; } | sha256sum)" = "$np_sum  -" ] ||
        np_no "$0: its SHA-256 is not the one that it was made with: it was changed; get it again"
}

np_fill() { { tail -c +@PAYLOAD@ "$0" | gzip -dc | tar -x -o -f - -C "$1"; } 2>&1; }

# What is made of other files of it here, so that it is not in this file twice.
np_join() { { @START_1@ -S "$1/share/netprobe/join.py" "$1" @ARCH@ && np_state "$1" >"$1/.state"; } 2>&1; }

# Size and time of every file and folder of an unpacked one, as one sum.
np_state() { (cd "$1" && stat -c '%s %Y %n' $(cat NAMES) | sha256sum); }

np_good() {
    [ -x "$1/lib/ld.so" ] && read -r np_x <"$1/.state" && [ "$(np_state "$1")" = "$np_x" ]
} 2>/dev/null

# All places, as arguments: the folder of caches first; outside of it our folder has the user's id.
np_places() {
    np_cache=
    case ${HOME-} in /*) np_cache=${HOME%/}/.cache/netprobe ;; esac
    case ${XDG_CACHE_HOME-} in /*) np_cache=${XDG_CACHE_HOME%/}/netprobe ;; esac
    "$@" ${np_cache:+"$np_cache"} ${XDG_RUNTIME_DIR:+"$XDG_RUNTIME_DIR/netprobe-$np_uid"} \
        "/dev/shm/netprobe-$np_uid" "/run/netprobe-$np_uid" "/tmp/netprobe-$np_uid" "/var/tmp/netprobe-$np_uid"
}

# The first place where it lies whole.
np_find() {
    for np_base; do
        np_dir=$np_base/$np_name
        [ -e "$np_dir" ] || [ -L "$np_dir" ] || continue
        set -- $(stat -c '%u %f' "$np_base" "$np_dir")
        case $1:$3 in $np_uid:$np_uid) ;; *) np_foreign "$np_dir" ;; esac
        case $np_base:$2 in "$np_cache:"* | *:4[15]c0) ;; *) np_no "$np_base: is open to others; remove it" ;; esac
        case $4 in 4[15]c0) np_good "$np_dir" && return 0 ;; esac
    done
    return 1
}

# Whoever owns a folder above ours could put another one into its place.
np_owner() {
    np_above=$1
    while [ ! -e "$np_above" ] && [ ! -L "$np_above" ] && [ -n "$np_above" ]; do np_above=${np_above%/*}; done
    if [ "$np_above" = "$1" ]; then
        set -- "$1" $(stat -c '%u %f' "$1")
        [ "$2" = "$np_uid" ] || np_foreign "$1"
        case $1:$3 in "$np_cache:"* | *:4[15]c0) ;; *) np_no "$1: is open to others; remove it" ;; esac
    else
        case $(stat -L -c %u "${np_above:-/}") in 0 | "$np_uid") ;; *) np_foreign "$np_above" ;; esac
    fi
}

# Unpack it in one place; else np_why says why that will not do.
np_try() {
    np_new=
    np_why="its name has a colon, a semicolon or a dollar sign"
    case $1 in *[:\;\$]*) return 1 ;; esac
    np_why="not writable"
    mkdir -p "$1" && np_new=$(mktemp -d "$1/.new-XXXXXX") || return 1
    np_why=noexec
    : >"$np_new/x" && chmod 700 "$np_new/x" && "$np_new/x" && rm "$np_new/x" || return 1
    np_why="no room"
    np_free=$(df -Pk "$1" | while read -r np_x np_x np_x np_free np_x; do echo "$np_free"; done | tail -n 1)
    case $np_free in '' | *[!0-9]*) ;; *) [ "$np_free" -ge @KILOBYTES@ ] || return 1 ;; esac
    np_why=$(np_fill "$np_new") || { np_why="no room: $(echo "$np_why" | head -n 1)"; return 1; }
    np_why=$(np_join "$np_new") || { np_why="it does not start there: $(echo "$np_why" | tail -n 1)"; return 1; }
    np_settle "$np_new" "$1/$np_name"
} 2>/dev/null

# Its own Python puts it in its place: no shell can do that at once. What lies there already is that of another
# start, or a damaged one.
np_settle() {
    np_why=$(@START_NEW@ -c 'import os, sys; os.rename(*sys.argv[1:])' "$@" 2>&1) && return 0
    case $(stat -c %u:%f "$2") in $np_uid:4[15]c0) np_good "$2" ;; *) false ;; esac ||
        @START_NEW@ -c 'import os, sys; new, old = sys.argv[1:]; os.rename(old, new + "/old"); os.rename(new, old)' "$@"
    rm -rf "$1" "$2/old"
    np_why="$np_name cannot be replaced there"
    np_good "$2"
}

# Leave nothing where it could not be unpacked.
np_undo() {
    [ -z "$np_new" ] || rm -rf "$np_new"
    np_x=$np_base
    while [ "$np_x" != "$np_above" ] && rmdir "$np_x" 2>/dev/null; do np_x=${np_x%/*}; done
}

# Nothing of this file runs on another kind of machine.
np_machine() {
    np_x=$(uname -m 2>/dev/null) || return 0
    case $np_x in
    @ARCH@) ;;
    @OTHER@) np_no "this file is for @ARCH@, this machine is $np_x: take netprobe-@VERSION@-$np_x.run" ;;
    *) np_no "this file is for @ARCH@, this machine is $np_x: there are files for @ARCHES@" ;;
    esac
}

np_unpack() {
    np_machine
    for np_x in cat chmod df gzip head mkdir mktemp rm rmdir sha256sum stat tail tar; do
        command -v $np_x >/dev/null || np_no "$0: $np_x is not installed here"
    done
    np_whole
    umask 077
    np_all= np_new=
    trap 'np_undo; exit 130' HUP INT TERM
    for np_base; do
        np_owner "$np_base"
        np_try "$np_base" && return 0
        np_undo
        np_all="$np_all${np_all:+, }${np_base%/*} ($np_why)"
    done
    np_no "$0: no place to unpack it: $np_all; make @MEGABYTES@ MB free in one of them, or give another: XDG_CACHE_HOME=DIR"
}

np_extract() {
    np_whole
    mkdir -- "$1" 2>/dev/null || np_no "--extract '$1': cannot be made as a new folder"
    trap 'rm -rf -- "$1"; exit 130' HUP INT TERM
    np_why=$(np_fill "$1") || { rm -rf -- "$1"; np_no "$1: cannot be unpacked there: $(echo "$np_why" | head -n 1)"; }
    np_why=$(np_join "$1") || echo "netprobe: note: $1: its Python does not start here: $(echo "$np_why" | tail -n 1)" >&2
    echo "$1/bin/netprobe"
}

np_verify() {
    np_whole
    echo "$0: as it was made"
    np_places np_find || return 0
    np_why=$(cd "$np_dir" && LC_ALL=C sha256sum -c SHA256SUMS 2>/dev/null | grep -v ': OK$')
    [ -z "$np_why" ] || np_no "$np_dir: was changed: $(echo $np_why); remove it, and the next start unpacks it again"
    echo "$np_dir: as it was made"
}

np_uid=$(id -u)
case ${1-} in
--verify) np_verify; exit ;;
--extract) np_extract "${2-}"; exit ;;
esac
# A plugin of kubectl is the part about clusters.
case ${0##*/}:${1-} in *:--version) ;; kubectl-netprobe:*) set -- cluster "$@" ;; esac
if ! np_places np_find; then
    (np_places np_unpack) || exit
    np_places np_find || np_no "$0: what was unpacked is gone, or was changed at once"
fi
exec @START@ -m netprobe "$@"
