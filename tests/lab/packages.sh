#!/bin/sh
# Install the Debian packages that the demo, the benchmark or the tests use, where their commands are missing.
#
#   sh tests/lab/packages.sh demo|lab|full|bench        (full: what only `make lab` uses, too)
#
# Needs root and apt; else it does nothing, and what misses a command says so when it runs. No service of these
# packages is started, now or when the machine starts next: the labs start their own, in namespaces.
set -u
PATH="$PATH:/usr/sbin:/sbin"

# command=package
wanted="nft=nftables ip=iproute2 sysctl=procps ping=iputils-ping"
kind=${1:-lab}
if [ "$kind" = lab ] || [ "$kind" = full ]; then
    wanted="$wanted
        xmllint=libxml2-utils chromium=chromium tc=iproute2 ss=iproute2 bridge=iproute2 ethtool=ethtool conntrack=conntrack nmap=nmap
        setpriv=util-linux runuser=util-linux unshare=util-linux mount=mount useradd=passwd sudo=sudo
        ssh=openssh-client ssh-keygen=openssh-client sshd=openssh-server
        busybox=busybox-static bash=bash sh=dash dash=dash zsh=zsh tcsh=tcsh fish=fish mksh=mksh
        haproxy=haproxy tinyproxy=tinyproxy-bin squid=squid nghttpd=nghttp2-server curl=curl openssl=openssl ansible-inventory=ansible-core
        iptables=iptables firewall-cmd=firewalld dbus-daemon=dbus-daemon ufw=ufw
        dnsmasq=dnsmasq-base dig=bind9-dnsutils named=bind9 unbound=unbound pdns_recursor=pdns-recursor
        chronyd=chrony faketime=faketime serf=serf prometheus=prometheus promtool=prometheus prometheus-alertmanager=prometheus-alertmanager amtool=prometheus-alertmanager
        systemd-analyze=systemd openvpn=openvpn
        /usr/lib/ipsec/charon=strongswan-charon swanctl=strongswan-swanctl tshark=tshark tcpdump=tcpdump"
fi
if [ "$kind" = full ]; then
    wanted="$wanted
        keepalived=keepalived qemu-aarch64-static=qemu-user-static rpm=rpm dpkg=dpkg"
fi

missing=
packages=
for pair in $wanted; do
    command -v "${pair%%=*}" >/dev/null && continue
    missing="$missing ${pair%%=*}"
    case " $packages " in *" ${pair#*=} "*) ;; *) packages="$packages ${pair#*=}" ;; esac
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] || exit 0
command -v apt-get >/dev/null || exit 0

echo "missing commands:$missing"
echo "apt-get install --no-install-recommends$packages"
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi
# Ask nobody anything; tshark would ask whether all users may capture.
export DEBIAN_FRONTEND=noninteractive
starts=/etc/systemd/system/multi-user.target.wants
before=" $(ls "$starts" 2>/dev/null | tr '\n' ' ') "
# shellcheck disable=SC2086 # a list of words
apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages >/dev/null </dev/null ||
    echo "not everything could be installed; tests that need it are skipped and say why"
# chrony replaces the machine's other time service, so it may start with the machine.
for unit in $(ls "$starts" 2>/dev/null); do
    case "$before chrony.service " in *" $unit "*) ;; *) systemctl disable --quiet "$unit" ;; esac
done
