#!/bin/sh
# After an installation or an upgrade, on Debian (`configure`, with the version before) and RPM systems (number of installed versions).
set -e

config=/etc/fanwire/fanwire.yaml
# before-remove.sh makes it, for a removal that is followed by another installation.
was_enabled=/etc/fanwire/enabled-before-removal

getent group fanwire > /dev/null || groupadd --system fanwire
getent passwd fanwire > /dev/null || useradd --system --gid fanwire --no-create-home \
    --home-dir /nonexistent --shell /usr/sbin/nologin fanwire

if [ ! -e "$config" ]; then
    # Random secrets; the text that `init` prints has a token, and does not belong into a log.
    fanwire init "$config" --snapshot /var/lib/fanwire/snapshot > /dev/null
    chown root:fanwire "$config"
    chmod 640 "$config"
    echo "fanwire: $config is written, with secrets of its own: http_api.key, client.token.hmac_secret_key."
fi

# An upgrade restarts a server that runs, and leaves alone what its operator has stopped or disabled.
start=try-restart
if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; } || [ -e "$was_enabled" ]; then
    start=restart
fi
rm -f "$was_enabled"
# Also where the system is being made and does not run yet.
if [ "$start" = restart ] && command -v systemctl > /dev/null; then
    systemctl enable fanwire.service
fi

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    if fanwire check-config "$config"; then
        # The new program goes on with the connections of one that runs. Where it cannot, as with a Redis Cluster, the old process closes
        # them over shutdown.timeout. A server that does not start, because its port is taken, is no reason to leave the package half configured.
        { [ "$start" = try-restart ] && systemctl start fanwire-upgrade.service; } ||
            systemctl "$start" fanwire.service ||
            echo "fanwire: the server did not start: systemctl status fanwire, journalctl -u fanwire" >&2
    else
        echo "fanwire: this version cannot run with $config, the server was not restarted: mend the file, then" >&2
        echo "fanwire: systemctl restart fanwire" >&2
    fi
fi
