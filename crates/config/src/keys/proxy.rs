//! Rows of one event proxy, and of the choice of one: the same keys at every place that `PLACES` names, and in `proxies`.
//! In: nothing → out: `PROXY`, rows that set `ProxyOptions`; `PROXY_NOT_YET`; `CHOICE`, rows of RPC namespaces; `NAME`.
//! Uses the kinds of `keys`. Never: a list of proxies as such (`settings`), relations between keys (`rules::event_proxies`).
//! Change a default, a limit or a sentence here; the effects live in `fanwire_proxy`.

use std::time::Duration;

use fanwire_policy::options::ProxyChoice;
use fanwire_proxy::{ProxyOptions, StatusTransform};

use super::{DAY, LIST, SECRET, SWITCH, TEXT, duration, integer};
use crate::key::{FromValue, Kind, Value, not_yet, rows};
use crate::transforms::{self, Transforms};

/// Sections with the keys of `PROXY`.
pub(crate) const PLACES: [&str; 10] = [
    "client.proxy.connect",
    "client.proxy.refresh",
    "channel.proxy.subscribe",
    "channel.proxy.publish",
    "channel.proxy.sub_refresh",
    "channel.proxy.subscribe_stream",
    "channel.proxy.shared_poll_refresh",
    "channel.proxy.map_publish",
    "channel.proxy.map_remove",
    "rpc.proxy",
];

rows! { PROXY: ProxyOptions;
    "endpoint", TEXT, "" => [endpoint],
        "Address of the backend: `http://` or `https://` for POST requests with JSON, `grpc://host:port` or `host:port` for gRPC.";
    "timeout", duration(Duration::from_millis(1), DAY), "1s" => [timeout],
        "Time for a whole call.";
    "http_headers", LIST, "" => [http_headers],
        "Names of headers that calls carry from the request of the client, such as Cookie or Authorization.";
    "grpc_metadata", LIST, "" => [grpc_metadata],
        "Keys of metadata that calls carry from gRPC clients, in lower case.";
    "emulated_headers", LIST, "" => [emulated_headers],
        "Names of headers that calls carry from `headers` of the connect command, which clients can set to anything.";
    "binary_encoding", SWITCH, "false" => [binary_encoding],
        "Sends payloads as base64, for those that are not JSON.";
    "include_connection_meta", SWITCH, "false" => [include_connection_meta],
        "Sends the `meta` of the connection.";
    "in_flight_max", integer(1, 100_000), "256" => [in_flight_max],
        "Fanwire only: most calls at a time; further ones wait in a queue, the newest first.";
    "queue_max", integer(0, 1_000_000), "4096" => [queue_max],
        "Fanwire only: most calls that wait; further ones fail at once with a temporary error, so that clients return later.";
    "http.tls.enabled", SWITCH, "false" => [http.tls.enabled],
        "Obeys the keys below for HTTP connections to the backend.";
    "http.tls.server_ca_pem", TEXT, "" => [http.tls.server_ca_pem],
        "Authorities that may have signed the backend's certificate, as PEM, base64 of it, or a file; empty means those of the system.";
    "http.tls.cert_pem", TEXT, "" => [http.tls.cert_pem],
        "Certificate to show to the backend, as PEM, base64 of it, or a file.";
    "http.tls.key_pem", SECRET, "" => [http.tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "http.tls.server_name", TEXT, "" => [http.tls.server_name],
        "Name that the backend's certificate must have; empty means that of the address.";
    "http.tls.insecure_skip_verify", SWITCH, "false" => [http.tls.insecure_skip_verify],
        "Development only: believes any certificate of the backend.";
    "http.static_headers", Kind::Texts, "" => [http.static_headers],
        "Headers of every HTTP call; `${FANWIRE_VAR_NAME}` in a value is replaced by that variable, and so is `${CENTRIFUGO_VAR_NAME}`.";
    "http.status_to_code_transforms", Kind::Transforms(Transforms::Statuses), "" => [http.status_to_code_transforms = statuses],
        "Errors and disconnects that clients get for other statuses than 200; those without a row are error 100, which is temporary.";
    "grpc.tls.enabled", SWITCH, "false" => [grpc.tls.enabled],
        "Uses TLS for gRPC connections to the backend, and obeys the keys below.";
    "grpc.tls.server_ca_pem", TEXT, "" => [grpc.tls.server_ca_pem],
        "Authorities that may have signed the backend's certificate, as PEM, base64 of it, or a file; empty means those of the system.";
    "grpc.tls.cert_pem", TEXT, "" => [grpc.tls.cert_pem],
        "Certificate to show to the backend, as PEM, base64 of it, or a file.";
    "grpc.tls.key_pem", SECRET, "" => [grpc.tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "grpc.tls.server_name", TEXT, "" => [grpc.tls.server_name],
        "Name that the backend's certificate must have; empty means that of the address.";
    "grpc.tls.insecure_skip_verify", SWITCH, "false" => [grpc.tls.insecure_skip_verify],
        "Development only: believes any certificate of the backend.";
    "grpc.static_metadata", Kind::Texts, "" => [grpc.static_metadata],
        "Metadata of every gRPC call, with variables as in http.static_headers.";
    "grpc.credentials_key", TEXT, "" => [grpc.credentials_key],
        "Key of one more entry of metadata, with grpc.credentials_value as its value; empty for none.";
    "grpc.credentials_value", SECRET, "" => [grpc.credentials_value],
        "Value of that entry, also without TLS.";
    "grpc.compression", SWITCH, "false" => [grpc.compression],
        "Compresses messages to the backend with gzip.";
}

not_yet! { PROXY_NOT_YET;
    "http.tls.client_ca_pem", TEXT, "", Tuning, "Authorities of clients; the backend is a server.";
    "grpc.tls.client_ca_pem", TEXT, "", Tuning, "Authorities of clients; the backend is a server.";
}

rows! { CHOICE: ProxyChoice;
    "proxy_enabled", SWITCH, "false" => [enabled],
        "RPC methods are answered by the backend; without it clients get 108.";
    "proxy_name", TEXT, "default" => [name],
        "Name of the proxy in `proxies` that is called; default is rpc.proxy.";
}

rows! { NAME: String;
    "name", TEXT, "" => (|name, value| *name = String::from_value(value)),
        "Name of the section: letters, digits, `-`, `_` and `.`, at least two of them.";
}

fn statuses(value: Value) -> Vec<StatusTransform> {
    transforms::statuses(&FromValue::from_value(value))
}
