#!/bin/bash
# Run a command in this checkout as another login would.
#
#   tests/places.sh files|user|container COMMAND...      (tests/places.sh user make test)
#
# files      as who one is, with the limit of 1,024 open files that Debian gives every login
# user       as a throw-away user without any right, in a clone of the last commit, with a home of its own (root)
# container  as root with the rights that Docker gives a container and no others (root)
set -eu
cd "$(dirname "$0")/.."
ulimit -Sn 1024

as_container_root() {
    local rights=chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot
    rights=$rights,mknod,audit_write,setfcap
    exec setpriv --inh-caps=-all --bounding-set="-all,+${rights//,/,+}" "$@"
}

as_user() {
    user=npplace$$
    home=$(mktemp -d "${TMPDIR:-/tmp}/npplace-XXXXXX")
    trap leave_user EXIT
    trap 'exit 130' INT TERM
    useradd --no-create-home --home-dir "$home" --shell /bin/bash "$user"
    git clone -q . "$home/netprobe"
    mkdir "$home/tmp"
    copy_venv "$home/netprobe"
    chmod 755 "$home"
    find "$home" -type d -exec chown "$user:" {} +
    find "$home" -links 1 -exec chown -h "$user:" {} +
    # Nothing of this login's environment: what it may read is not theirs.
    (cd "$home/netprobe" && setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps=-all env -i \
        HOME="$home" USER="$user" LOGNAME="$user" SHELL=/bin/bash LANG="${LANG:-C.UTF-8}" PATH=$path TMPDIR="$home/tmp" \
        "$@" </dev/null)
}

leave_user() {
    for pid in $(pgrep -u "$user"); do
        echo "left behind: $(ps -o pid=,args= -p "$pid")" >&2
        kill -KILL "$pid" || true
    done
    userdel "$user"
    rm -rf "$home"
}

# `make setup` takes a minute. The packages of a virtual environment of this checkout are as good where the user has the
# same Python: as hard links, which the user cannot change. Scripts hold a path and are written again.
copy_venv() {
    local from name packages python to=$1/.venv
    for from in "$PWD"/.venv "$PWD"/.tox/python*; do
        [ -d "$from" ] || continue
        packages=$(cd "$from" && echo lib/python*/site-packages)
        name=${packages#lib/}
        python=$(PATH=$path command -v "${name%/*}") || continue
        "$python" -m venv --without-pip "$to"
        rmdir "$to/$packages"
        cp -al "$from/$packages" "$to/$packages" || cp -a "$from/$packages" "$to/$packages"
        (cd "$from" && find bin "$packages"/*.pth -maxdepth 1 -type f) | while read -r name; do
            rm -f "$to/$name"
            sed "s|$from/|$to/|g; s|^$PWD\$|$1|" "$from/$name" >"$to/$name"
            chmod --reference="$from/$name" "$to/$name"
        done
        touch "$to/$(make -s -C "$1" --eval='stamp: ; @basename $(STAMP)' stamp)"
        return
    done
}

path=/usr/local/bin:/usr/bin:/bin
place=$1
shift
case $place in
files) exec "$@" ;;
user) as_user "$@" ;;
container) as_container_root "$@" ;;
*) echo "$0: $place: no such place" >&2 && exit 2 ;;
esac
