#!/usr/bin/env bash
# `make compose`: brings the lab up, runs netprobe with both matrices, holds the verdicts against
# compose/jump/expected.yaml, and takes the lab down, also after a failure and Ctrl-C.
# NETPROBE_DOCKER_ENGINE, where it is set, is put in front: a command that provides an engine for as long as the
# command after it runs, and ends with 75 where it cannot. No engine at all: SKIPPED, with the reason.
set -uo pipefail
cd "$(dirname "$0")/.."

NO_ENGINE=75
started=
reason=

skip() {
    echo "SKIPPED: make compose: $*"
    exit 0
}

# In the background and waited for, so that a signal is acted upon at once and not after the command.
run() {
    "$@" &
    child=$!
    wait "$child"
    local status=$?
    child=
    return $status
}

# Say what failed, with what was found, and end. `clean` says it again behind the logs of the machines: of a long
# CI log often only the end is kept.
fail() {
    found=$1
    reason=$2
    printf '%s\n' "$found"
    echo "compose: FAILED: $reason"
    exit 1
}

# Run a wordy command; its words matter only if it fails.
quietly() {
    echo "compose: $1 (${SECONDS} s)"
    shift
    run "$@" >"$work/log" 2>&1 && return
    fail "$(cat "$work/log")" "$*"
}

clean() {
    status=$?
    trap '' INT TERM HUP
    # A signal may have come while a command's output went to the log.
    exec 1>&3 2>&4
    if [ -n "${child:-}" ]; then kill "$child" 2>/dev/null; wait "$child" 2>/dev/null; fi
    if [ -n "$started" ]; then
        if [ "$status" -ne 0 ] && [ "$status" -lt 128 ]; then docker compose logs --no-color --tail 20 2>&1; fi
        docker compose down --volumes --remove-orphans --timeout 5 >"$work/log" 2>&1 || cat "$work/log"
        echo "compose: taken down (${SECONDS} s)"
    fi
    rm -rf "$work"
    if [ -n "$reason" ]; then
        tail -n 20 <<<"$found"
        echo "compose: FAILED: $reason"
    fi
    exit "$status"
}

netprobe_finds() {
    local matrix=$1
    echo
    echo "\$ docker compose exec jump netprobe run --matrix $matrix -i lab.yaml"
    run docker compose exec -T jump netprobe run --matrix "$matrix" -i lab.yaml \
        -o text -o "json=/tmp/$matrix.json" 2>"$work/log"
    local status=$?
    # 1: something is blocked, which is the point here.
    if [ $status -ne 1 ]; then
        fail "$(cat "$work/log")" "netprobe run --matrix $matrix ended with $status, expected 1"
    fi
}

every_rule_stopped_something() {
    local rules idle
    rules=$(docker compose exec -T firewall nft list table ip lab 2>&1) || fail "$rules" "nft lists no rules"
    idle=$(grep 'packets 0 ' <<<"$rules")
    if [ -z "$idle" ]; then return; fi
    fail "$idle" "these rules of the firewall met no packet"
}

if [ -n "${NETPROBE_DOCKER_ENGINE:-}" ]; then
    engine=$NETPROBE_DOCKER_ENGINE
    unset NETPROBE_DOCKER_ENGINE
    # Ctrl-C is for the lab's own script, which ends all; this one only waits for it.
    trap : INT
    # Unquoted: it may be several words.
    $engine "$PWD/compose/try.sh"
    status=$?
    if [ $status -eq $NO_ENGINE ]; then skip "no engine: $engine could start none (its words are above)"; fi
    exit $status
fi

command -v docker >/dev/null || skip "there is no docker command on this machine"
why=$(docker version 2>&1 >/dev/null) || skip "no Docker engine answers: ${why:-docker version failed}"
docker compose version >/dev/null 2>&1 || skip "docker has no compose plugin (docker compose version 2 is needed)"
if [ -n "$(docker compose ps --quiet)" ]; then
    echo "compose: the lab is up already; take it down first: docker compose down --volumes"
    exit 1
fi

work=$(mktemp -d)
exec 3>&1 4>&2
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

echo "compose: engine $(docker version --format '{{.Server.Version}}'), compose $(docker compose version --short)"
quietly "building the images" docker compose build
started=yes
quietly "starting the machines" docker compose up --wait --no-build
netprobe_finds deckhouse-nodes
netprobe_finds hypershift-hcp
echo
every_rule_stopped_something
run docker compose exec -T jump python3 /lab/check.py /tmp/deckhouse-nodes.json /tmp/hypershift-hcp.json \
    >"$work/check" 2>&1 || fail "$(cat "$work/check")" "netprobe did not report what the firewall does"
cat "$work/check"
echo "COMPOSE OK: netprobe reported exactly what the firewall stops, and all other flows pass (${SECONDS} s)"
