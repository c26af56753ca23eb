//! Rows of the transports without commands of clients: `uni_websocket`, `uni_sse`, `uni_http_stream`.
//! In: nothing → out: `UNIDIRECTIONAL`, rows that set fields of `Config`.
//! Uses the kinds of `keys`. Never: sessions; the codes of their ends are a key of `client`.
//! Change a default, a limit or a sentence here; the effects live in `edge::clients::unidirectional` of the server and in `fanwire_shard`.

use std::time::Duration;

use fanwire_edge::ConnectCodeResponse;

use super::{BYTES, COUNT, DAY, PATH, SWITCH, duration, integer};
use crate::key::{FromValue, Kind, Value, rows};
use crate::options::Config;
use crate::transforms::{self, Transforms};

rows! { UNIDIRECTIONAL: Config;
    "uni_websocket.enabled", SWITCH, "false" => [uni_websocket.enabled],
        "Serves unidirectional WebSocket: clients send one connect request and only receive from then on.";
    "uni_websocket.handler_prefix", PATH, "/connection/uni_websocket" => [uni_websocket.handler_prefix],
        "Path of the unidirectional WebSocket endpoint.";
    "uni_websocket.compression", SWITCH, "false" => [uni_websocket.compression],
        "Compresses messages for clients that offer permessage-deflate, publications in context as those of `websocket`.";
    "uni_websocket.compression_min_size", COUNT, "128" => [uni_websocket.compression_min_size],
        "Messages shorter than this many bytes go out uncompressed; Centrifugo's default is 0.";
    "uni_websocket.compression_level", integer(1, 9), "6" => [uni_websocket.compression_level],
        "Compression effort, from 1 (fastest) to 9 (smallest); Centrifugo's default is 1.";
    "uni_websocket.message_size_limit", BYTES, "65536" => [uni_websocket.message_size_limit],
        "Longest incoming message in bytes; a longer one closes the connection with 1009.";
    "uni_websocket.decompressed_message_size_limit", COUNT, "0" => [uni_websocket.decompressed_message_size_limit],
        "Longest incoming message in bytes after inflating; 0 means ten times uni_websocket.message_size_limit.";
    "uni_websocket.write_timeout", duration(Duration::from_millis(1), DAY), "1s" => [uni_websocket.write_timeout],
        "How long a connection may accept no outgoing bytes before it is closed.";
    "uni_websocket.join_push_messages", SWITCH, "false" => [uni_websocket.join_push_messages],
        "Joins pushes for one connection that leave together in one message, with line feeds between; publications to several connections are always messages of their own.";
    "uni_websocket.disable_disconnect_push", SWITCH, "false" => [uni_websocket.disable_disconnect_push],
        "Ends connections with a close frame alone, without a disconnect push before it.";
    "uni_websocket.disable_closing_handshake", SWITCH, "false" => [uni_websocket.disable_closing_handshake],
        "Ends connections without a close frame, behind the disconnect push.";
    "uni_sse.enabled", SWITCH, "false" => [uni_sse.enabled],
        "Serves unidirectional Server-Sent Events: the request has the connect request, and the response only pushes.";
    "uni_sse.handler_prefix", PATH, "/connection/uni_sse" => [uni_sse.handler_prefix],
        "Path of the endpoint of unidirectional Server-Sent Events.";
    "uni_sse.max_request_body_size", BYTES, "65536" => [uni_sse.max_request_body_size],
        "Longest request of that endpoint in bytes; a longer one gets 413.";
    "uni_sse.compression", SWITCH, "true" => [uni_sse.compression],
        "Fanwire only: compresses these events for clients that accept gzip or deflate, in context as WebSocket messages.";
    "uni_sse.connect_code_to_http_response.enabled", SWITCH, "false" => [uni_sse.connect_code_to_http_response.enabled],
        "Answers a refused connect with an HTTP status instead of a stream with a disconnect push; the response begins when connect is decided.";
    "uni_sse.connect_code_to_http_response.transforms", RESPONSES, "" => [uni_sse.connect_code_to_http_response.transforms = responses],
        "Statuses and bodies by codes of errors and disconnects; other codes get 500, and without a body it is the text of the code.";
    "uni_http_stream.enabled", SWITCH, "false" => [uni_http_stream.enabled],
        "Serves unidirectional HTTP streaming: the request has the connect request, and the response a push on each line.";
    "uni_http_stream.handler_prefix", PATH, "/connection/uni_http_stream" => [uni_http_stream.handler_prefix],
        "Path of the unidirectional HTTP streaming endpoint.";
    "uni_http_stream.max_request_body_size", BYTES, "65536" => [uni_http_stream.max_request_body_size],
        "Longest request of that endpoint in bytes; a longer one gets 413.";
    "uni_http_stream.compression", SWITCH, "true" => [uni_http_stream.compression],
        "Fanwire only: compresses these streams for clients that accept gzip or deflate, in context as WebSocket messages.";
    "uni_http_stream.connect_code_to_http_response.enabled", SWITCH, "false" => [uni_http_stream.connect_code_to_http_response.enabled],
        "As uni_sse.connect_code_to_http_response.enabled.";
    "uni_http_stream.connect_code_to_http_response.transforms", RESPONSES, "" => [uni_http_stream.connect_code_to_http_response.transforms = responses],
        "As uni_sse.connect_code_to_http_response.transforms.";
}

const RESPONSES: Kind = Kind::Transforms(Transforms::Responses);

fn responses(value: Value) -> Vec<ConnectCodeResponse> {
    transforms::responses(&FromValue::from_value(value))
}
