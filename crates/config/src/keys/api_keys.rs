//! Rows of one named key of the server API: the members of `http_api.keys`.
//! In: nothing → out: `API_KEY`, rows that set `ApiKeyOptions`.
//! Uses the kinds of `keys`. Never: the list as such (`settings`), relations between keys (`rules::api_keys`).
//! Change a default or a sentence here; what a key permits is decided in `fanwire_api`.

use fanwire_api::ApiKeyOptions;

use super::{LIST, RATE_INTERVAL, RATE_LIMIT, SECRET};
use crate::key::rows;

rows! { API_KEY: ApiKeyOptions;
    "key", SECRET, "" => [key],
        "Fanwire only: secret that this backend sends in X-API-Key, or over gRPC.";
    "methods", LIST, "" => [methods],
        "Fanwire only: methods that it may call, such as publish; empty for all. Others get 103.";
    "namespaces", LIST, "" => [namespaces],
        "Fanwire only: namespaces of the channels that its calls may name; empty for all.";
    "rate_limit.limit", RATE_LIMIT, "0" => [rate.limit],
        "Fanwire only: commands that it may send per interval, and at once after a quiet one; 0 for no limit. Others get 111.";
    "rate_limit.interval", RATE_INTERVAL, "1s" => [rate.interval],
        "Fanwire only: the interval of that limit.";
}
