//! Rows of events out: `events`.
//! In: nothing → out: `EVENTS`, rows that set fields of `Config`.
//! Uses the kinds of `keys`. Never: events.
//! Change a default, a limit or a sentence here; the effects live in `fanwire_events`.

use std::time::Duration;

use super::{COUNT, COUNT_FROM_1, DELAY, LIST, SECRET, SWITCH, TEXT, duration};
use crate::key::rows;
use crate::options::Config;

rows! { EVENTS: Config;
    "events.http.endpoint", TEXT, "" => [events.http.endpoint],
        "Fanwire only: URL that gets events of clients and channels as POST requests; empty for no events.";
    "events.http.secret", SECRET, "" => [events.http.secret],
        "Fanwire only: signs each request with HMAC-SHA256 in the headers X-Fanwire-Signature and X-Fanwire-Timed-Signature.";
    "events.http.timeout", duration(Duration::from_millis(1), Duration::from_secs(60)), "5s" => [events.http.timeout],
        "Fanwire only: how long one request may take; its events are sent again after it.";
    "events.http.tls.enabled", SWITCH, "false" => [events.http.tls.enabled],
        "Obeys the keys below for connections to that URL.";
    "events.http.tls.server_ca_pem", TEXT, "" => [events.http.tls.server_ca_pem],
        "Authorities that may have signed its certificate, as PEM, base64 of it, or a file; empty means those of the system.";
    "events.http.tls.cert_pem", TEXT, "" => [events.http.tls.cert_pem],
        "Certificate to show to it, as PEM, base64 of it, or a file.";
    "events.http.tls.key_pem", SECRET, "" => [events.http.tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "events.http.tls.server_name", TEXT, "" => [events.http.tls.server_name],
        "Name that its certificate must have; empty means that of the URL.";
    "events.http.tls.insecure_skip_verify", SWITCH, "false" => [events.http.tls.insecure_skip_verify],
        "Development only: believes any certificate.";
    "events.redis_stream.address", SECRET, "" => [events.redis_stream.address],
        "Fanwire only: Redis whose stream gets events instead of a URL, with the same forms as engine.redis.address except Clusters; empty for none.";
    "events.redis_stream.stream", TEXT, "fanwire.events" => [events.redis_stream.stream],
        "Fanwire only: key of that stream; each entry is a batch of events.";
    "events.redis_stream.max_len", COUNT, "100000" => [events.redis_stream.max_len],
        "Fanwire only: about so many entries are kept, older ones are removed whether they were read or not; 0 keeps all.";
    "events.redis_stream.tls.enabled", SWITCH, "false" => [events.redis_stream.tls.enabled],
        "Speaks TLS to that Redis, whatever the address says, and obeys the keys below.";
    "events.redis_stream.tls.server_ca_pem", TEXT, "" => [events.redis_stream.tls.server_ca_pem],
        "Authorities that may have signed its certificate, as PEM, base64 of it, or a file; empty means those of the system.";
    "events.redis_stream.tls.cert_pem", TEXT, "" => [events.redis_stream.tls.cert_pem],
        "Certificate to show to it, as PEM, base64 of it, or a file.";
    "events.redis_stream.tls.key_pem", SECRET, "" => [events.redis_stream.tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "events.redis_stream.tls.server_name", TEXT, "" => [events.redis_stream.tls.server_name],
        "Name that its certificate must have; empty means that of the address.";
    "events.redis_stream.tls.insecure_skip_verify", SWITCH, "false" => [events.redis_stream.tls.insecure_skip_verify],
        "Development only: believes any certificate.";
    "events.types", LIST, "" => [events.types],
        "Fanwire only: types of events to send, such as connected disconnected; empty for all.";
    "events.batch_size", COUNT_FROM_1, "500" => [events.batch_size],
        "Fanwire only: most events of one request.";
    "events.batch_delay", duration(Duration::from_millis(1), Duration::from_secs(60)), "200ms" => [events.batch_delay],
        "Fanwire only: how long events wait for others.";
    "events.queue_max", COUNT_FROM_1, "100000" => [events.queue_max],
        "Fanwire only: most events that wait while the backend takes none; further ones are lost and counted in an event.";
    "events.vacated_delay", DELAY, "5s" => [events.vacated_delay],
        "Fanwire only: how long a channel has no subscriber before the event vacated.";
}
