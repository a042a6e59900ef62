#!/bin/sh
np_dir=$(readlink -f "$0") && np_dir=${np_dir%/bin/*} || exit 4
case ${0##*/}:${1-} in *:--version) ;; kubectl-netprobe:*) set -- cluster "$@" ;; esac
exec @START@ @MODULE@"$@"
