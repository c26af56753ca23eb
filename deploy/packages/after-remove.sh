#!/bin/sh
# After a removal; Debian's `purge` leaves nothing. RPM has no such step: it leaves the configuration and the user.
set -e

if [ "$1" = purge ]; then
    rm -rf /etc/fanwire /var/lib/fanwire /var/log/fanwire
    if getent passwd fanwire > /dev/null; then
        userdel fanwire
    fi
    if getent group fanwire > /dev/null; then
        groupdel fanwire
    fi
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
