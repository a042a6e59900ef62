#!/bin/sh
# The jump host: makes its ssh key, waits until every machine lets it in and every service answers, and stays.
set -eu
rm -f /tmp/lab-ready
mkdir -p -m 700 ~/.ssh
[ -e ~/.ssh/id_ed25519 ] || ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519
cp ~/.ssh/id_ed25519.pub /lab/authorized/jump.pub
# Each machine wrote its own host key into a file of its address.
echo 'UserKnownHostsFile /lab/known/%h' >~/.ssh/config

for node in $LAB_NODES; do
    until ssh -n -o BatchMode=yes -o ConnectTimeout=2 -l admin "$node" sudo -n true 2>/tmp/ssh.log; do
        sleep 0.5
    done
done
for service in $LAB_SERVICES; do
    until python3 -c 'import socket, sys; socket.create_connection(sys.argv[1:], 2).close()' \
        "${service%:*}" "${service#*:}" 2>/dev/null; do
        sleep 0.5
    done
done
touch /tmp/lab-ready
exec sleep infinity
