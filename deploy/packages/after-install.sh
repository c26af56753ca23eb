#!/bin/sh
# After an installation or an upgrade, on Debian (`configure`) and RPM systems (number of installed versions).
set -e

config=/etc/fanwire/fanwire.yaml

getent group fanwire > /dev/null || groupadd --system fanwire
getent passwd fanwire > /dev/null || useradd --system --gid fanwire --no-create-home \
    --home-dir /nonexistent --shell /usr/sbin/nologin fanwire

is_first=no
if [ ! -e "$config" ]; then
    is_first=yes
    # Random secrets; the text that `init` prints has a token, and does not belong into a log.
    fanwire init "$config" > /dev/null
    chown root:fanwire "$config"
    chmod 640 "$config"
    echo "fanwire: $config is written, with secrets of its own: http_api.key, client.token.hmac_secret_key."
fi

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    if [ "$is_first" = yes ]; then
        systemctl enable fanwire.service
    fi
    if fanwire check-config "$config"; then
        # An old process closes its connections over shutdown.timeout. A server that does not start, because its port
        # is taken, is no reason to leave the package half configured.
        systemctl restart fanwire.service ||
            echo "fanwire: the server did not start: systemctl status fanwire, journalctl -u fanwire" >&2
    else
        echo "fanwire: this version cannot run with $config, the server was not restarted: mend the file, then" >&2
        echo "fanwire: systemctl restart fanwire" >&2
    fi
fi
