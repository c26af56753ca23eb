#!/bin/sh
# Before a removal. An upgrade leaves the server alone: the installation after it restarts it, so that a failed one changes nothing.
set -e

case "$1" in
    remove | 0)
        if command -v systemctl > /dev/null; then
            # The next installation enables it again.
            if systemctl --quiet is-enabled fanwire.service; then
                : > /etc/fanwire/enabled-before-removal
            fi
            systemctl disable fanwire.service
        fi
        if [ -d /run/systemd/system ]; then
            systemctl stop fanwire.service
        fi
        ;;
esac
