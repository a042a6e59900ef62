#!/bin/sh
# Install the Debian packages that the demo or the labs use, where their commands are missing.
#
#   sh tests/lab/packages.sh demo|lab|bench
#
# Needs root and apt; else it does nothing, and what misses a command says so when it runs. No service
# of these packages is started: the labs start their own, in namespaces.
set -u
PATH="$PATH:/usr/sbin:/sbin"

commands="nft ip sysctl ping"
packages="nftables iproute2 procps iputils-ping"
if [ "${1:-lab}" = lab ]; then
    commands="$commands ss setpriv sshd ssh ssh-keygen sudo openssl dnsmasq chronyd conntrack nmap ansible-inventory"
    commands="$commands haproxy tinyproxy squid ethtool"
    packages="$packages util-linux openssh-server openssh-client sudo openssl dnsmasq-base chrony conntrack nmap ansible-core"
    packages="$packages haproxy tinyproxy-bin squid ethtool"
fi

missing=
for name in $commands; do
    command -v "$name" >/dev/null || missing="$missing $name"
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] || exit 0
command -v apt-get >/dev/null || exit 0

echo "missing commands:$missing"
echo "apt-get install --no-install-recommends $packages"
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages >/dev/null ||
    echo "not everything could be installed; tests that need it are skipped and say why"
