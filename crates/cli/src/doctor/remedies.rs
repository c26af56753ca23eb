//! Lines of configuration that mend what `fanwire doctor` finds.
//! In: a fault → out: for each proxy, cloud or our own configuration, the line.
//! Pure: a table. Never: a judgement, which is made in `rules`.
//! A line or another proxy is a row here.

use super::rules::Fault;

/// Place and line, in the order in which they are printed.
type Remedies = &'static [(&'static str, &'static str)];

impl Fault {
    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        self.row().0
    }

    pub(crate) fn remedies(self) -> Remedies {
        self.row().1
    }

    fn row(self) -> (&'static str, Remedies) {
        match self {
            Self::Certificate => ("certificate", CERTIFICATE),
            Self::CertificateEnds => ("certificate_ends", CERTIFICATE),
            Self::Redirect => ("redirect", REDIRECT),
            Self::NoBackend => ("no_backend", NO_BACKEND),
            Self::NotRouted => ("not_routed", NOT_ROUTED),
            Self::NotAServer => ("not_a_server", NOT_ROUTED),
            Self::Failed => ("failed", NO_BACKEND),
            Self::UpgradeMissing => ("upgrade_missing", UPGRADE),
            Self::OriginRefused => ("origin_refused", ORIGIN),
            Self::ConnectRefused => ("connect_refused", CONNECT),
            Self::Buffered => ("buffered", BUFFERED),
            Self::IdleCut => ("idle_cut", IDLE),
            Self::EmulationNotRouted => ("emulation_not_routed", EMULATION),
            Self::DeflateStripped => ("deflate_stripped", DEFLATE),
            Self::AddressLost => ("address_lost", ADDRESS),
            Self::AddressForged => ("address_forged", FORGED),
            Self::Clock => ("clock", CLOCK),
            Self::NotChecked => ("not_checked", &[]),
        }
    }
}

const CERTIFICATE: Remedies = &[
    (
        "nginx",
        "ssl_certificate /etc/ssl/fullchain.pem;  # the server's own first, then its issuers",
    ),
    ("HAProxy", "bind :443 ssl crt /etc/haproxy/site.pem  # own certificate, issuers, key"),
    ("Caddy", "example.com { reverse_proxy 127.0.0.1:8000 }  # orders and renews by itself"),
    ("Fanwire", "http_server.tls_autocert.enabled: true, with host_whitelist: [example.com]"),
];
const REDIRECT: Remedies = &[
    ("client", "use the address that it redirects to: WebSockets follow no redirect"),
    (
        "nginx",
        "location /connection/ { proxy_pass http://127.0.0.1:8000; }  # before the return 301",
    ),
    (
        "HAProxy",
        "http-request redirect scheme https unless { ssl_fc } || { path_beg /connection/ }",
    ),
];
const NO_BACKEND: Remedies = &[
    ("nginx", "proxy_pass http://127.0.0.1:8000;  # the address and port at which Fanwire listens"),
    ("HAProxy", "server fanwire 127.0.0.1:8000 check"),
    ("Caddy", "reverse_proxy 127.0.0.1:8000"),
    (
        "AWS",
        "target group: health check path /health, port 8000; its security group admits the balancer",
    ),
];
const NOT_ROUTED: Remedies = &[
    ("Fanwire", "sse.enabled: true and http_stream.enabled: true, for these transports"),
    ("nginx", "location /connection/ { proxy_pass http://127.0.0.1:8000; }"),
    ("HAProxy", "use_backend fanwire if { path_beg /connection/ } || { path /emulation }"),
    ("Caddy", "reverse_proxy /connection/* 127.0.0.1:8000"),
];
const UPGRADE: Remedies = &[
    (
        "nginx",
        "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection \"upgrade\";",
    ),
    ("HAProxy", "remove `http-request del-header Upgrade`; mode http passes upgrades by itself"),
    (
        "Caddy",
        "remove `header_up -Upgrade` and `header_up -Connection`; it passes upgrades by itself",
    ),
    ("Cloudflare", "Network: WebSockets on"),
    (
        "AWS",
        "an Application Load Balancer, or a TCP listener: classic HTTP listeners pass no upgrades",
    ),
];
const ORIGIN: Remedies = &[
    ("Fanwire", "client.allowed_origins: [\"https://app.example.com\"]  # the origin of the page"),
    ("nginx", "remove `proxy_set_header Origin …;`"),
    (
        "HAProxy",
        "remove `http-request set-header Origin …` and `http-request deny` for this origin",
    ),
];
const CONNECT: Remedies = &[
    ("doctor", "--token \"$(fanwire token --user doctor --config fanwire.yaml)\""),
    ("Fanwire", "client.token.hmac_secret_key: the secret with which your backend signs"),
];
const BUFFERED: Remedies = &[
    (
        "nginx",
        "proxy_buffering off;  # and no proxy_ignore_headers X-Accel-Buffering; no gzip for text/event-stream",
    ),
    (
        "HAProxy",
        "remove `filter compression`, `compression` and `http-response wait-for-body` for these paths",
    ),
    ("Caddy", "reverse_proxy 127.0.0.1:8000 { flush_interval -1 }"),
    ("Cloudflare", "Rules: bypass the cache and compression for /connection/*"),
    ("AWS", "CloudFront: CachingDisabled for /connection/*; no Lambda@Edge on the response"),
];
const IDLE: Remedies = &[
    ("nginx", "proxy_read_timeout 90s; proxy_send_timeout 90s;"),
    ("HAProxy", "timeout tunnel 1h, timeout client 90s, timeout server 90s"),
    ("Caddy", "remove read_timeout of `transport http` and stream_timeout"),
    ("AWS", "idle_timeout.timeout_seconds = 90 of the load balancer"),
    ("Google Cloud", "timeoutSec: 86400 of the backend service"),
    ("Fanwire", "client.ping_interval: 10s  # below the limit of a proxy that you cannot change"),
];
const EMULATION: Remedies = &[
    ("nginx", "location = /emulation { proxy_pass http://127.0.0.1:8000; }"),
    ("HAProxy", "use_backend fanwire if { path /emulation }"),
    ("Caddy", "reverse_proxy /emulation 127.0.0.1:8000"),
];
const DEFLATE: Remedies = &[
    ("nginx", "remove `proxy_set_header Sec-WebSocket-Extensions …;`"),
    (
        "HAProxy",
        "remove `http-request del-header Sec-WebSocket-Extensions` and the one of the response",
    ),
    ("Caddy", "remove `header_up -Sec-WebSocket-Extensions`"),
    ("Fanwire", "websocket.compression: true"),
];
const ADDRESS: Remedies = &[
    ("nginx", "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"),
    ("HAProxy", "option forwardfor"),
    (
        "Caddy",
        "nothing: it sends X-Forwarded-For; behind another proxy, servers { trusted_proxies … }",
    ),
    ("Fanwire", "http_server.trusted_proxies: [ADDRESS_OF_THE_PROXY]"),
    FORWARDED,
];
const FORGED: Remedies = &[
    ("nginx", "proxy_set_header X-Forwarded-For $remote_addr;"),
    ("HAProxy", "http-request del-header X-Forwarded-For, then option forwardfor"),
    ("Fanwire", "http_server.trusted_proxies: only addresses of proxies, never of clients"),
    FORWARDED,
];
/// With both headers neither counts, and a client could hide its address by sending the one that the proxy does not write.
const FORWARDED: (&str, &str) = ("every proxy", "remove the header Forwarded of the client");
const CLOCK: Remedies =
    &[("both machines", "timedatectl set-ntp true  # tokens are refused before nbf and after exp")];
