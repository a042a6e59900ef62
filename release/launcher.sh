#!/bin/sh
np_dir=$(readlink -f "$0") && np_dir=${np_dir%/bin/*} || exit 4
exec @START@ @MODULE@"$@"
