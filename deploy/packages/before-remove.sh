#!/bin/sh
# Before a removal. An upgrade leaves the server alone: the installation after it restarts it, so that a failed one changes nothing.
set -e

case "$1" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl disable --now fanwire.service
        fi
        ;;
esac
