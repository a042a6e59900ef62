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
        NETPROBE_TESTS_PLACE=user \
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

# `make setup` takes a minute. The packages of this checkout are as good where the user has the same Python: as hard
# links, which the user cannot change. Scripts hold a path and are written again.
copy_venv() {
    local from=$PWD/.venv to=$1/.venv python name
    python=$(PATH=$path command -v "$(basename "$(readlink -f "$from/bin/python")")") || return 0
    "$python" -m venv --without-pip "$to"
    name=$(basename "$from"/lib/python*)
    rmdir "$to/lib/$name/site-packages"
    cp -al "$from/lib/$name/site-packages" "$to/lib/$name/" || cp -a "$from/lib/$name/site-packages" "$to/lib/$name/"
    for name in "$from"/bin/* "$from"/lib/python*/site-packages/*.pth; do
        name=${name#"$from"/}
        [ -f "$from/$name" ] && [ ! -L "$from/$name" ] || continue
        rm -f "$to/$name"
        sed "s|$PWD|$1|g" "$from/$name" >"$to/$name"
        chmod --reference="$from/$name" "$to/$name"
    done
    touch "$to/$(cd "$1" && make -s --eval='stamp: ; @basename $(STAMP)' stamp)"
}

path=/usr/local/bin:/usr/bin:/bin
export NETPROBE_TESTS_PLACE=$1
shift
case $NETPROBE_TESTS_PLACE in
files) exec "$@" ;;
user) as_user "$@" ;;
container) as_container_root "$@" ;;
*) echo "$0: $NETPROBE_TESTS_PLACE: no such place" >&2 && exit 2 ;;
esac
