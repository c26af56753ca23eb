//! Rows of the gRPC listeners: `grpc_api`, `uni_grpc`.
//! In: nothing → out: `GRPC`, rows that set fields of `Config`.
//! Uses the kinds of `keys`. Never: a listener.
//! Change a default, a limit or a sentence here; the effects live in `fanwire_api::grpc`, in `grpc` of the server and in `edge`.

use super::server::error_mode;
use super::{PORT, SECRET, SWITCH, TEXT, integer};
use crate::key::{Kind, rows};
use crate::options::Config;

rows! { GRPC: Config;
    "grpc_api.enabled", SWITCH, "false" => [grpc_api.enabled],
        "Serves the server API by gRPC, on a port of its own.";
    "grpc_api.address", TEXT, "" => [grpc_api.address],
        "Address of the gRPC server API; empty means all addresses.";
    "grpc_api.port", PORT, "10000" => [grpc_api.port],
        "Port of the gRPC server API; 0 lets the system choose one.";
    "grpc_api.key", SECRET, "" => [grpc_api.key],
        "Secret that backends send in the metadata, as `authorization: apikey KEY`; when empty, everybody who reaches the port may call.";
    "grpc_api.error_mode", Kind::Choice(&["", "transport"]), "" => [grpc_api.error_mode = error_mode],
        "With `transport`, calls with API errors have a gRPC status instead of OK with an error in the response.";
    "grpc_api.reflection", SWITCH, "false" => [grpc_api.reflection],
        "Describes the services to tools such as grpcurl, without a key.";
    "grpc_api.max_receive_message_size", MESSAGE_BYTES, "0" => [grpc_api.max_receive_message_size],
        "Longest request message in bytes; 0 means 4 MiB.";
    "grpc_api.tls.enabled", SWITCH, "false" => [grpc_api.tls.enabled],
        "Speaks TLS 1.2 and 1.3 on the port of the gRPC server API, and only that.";
    "grpc_api.tls.cert_pem", TEXT, "" => [grpc_api.tls.cert_pem],
        "Certificate of that port and those that signed it, as PEM, base64 of it, or a file.";
    "grpc_api.tls.key_pem", SECRET, "" => [grpc_api.tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "grpc_api.tls.client_ca_pem", TEXT, "" => [grpc_api.tls.client_ca_pem],
        "Authorities that must have signed the certificate of a client of that port, as PEM, base64 of it, or a file; empty asks for none.";
    "uni_grpc.enabled", SWITCH, "false" => [uni_grpc.enabled],
        "Serves unidirectional gRPC, on a port of its own: a call has the connect request, and its response only pushes.";
    "uni_grpc.address", TEXT, "" => [uni_grpc.address],
        "Address of unidirectional gRPC; empty means all addresses.";
    "uni_grpc.port", PORT, "11000" => [uni_grpc.port],
        "Port of unidirectional gRPC; 0 lets the system choose one.";
    "uni_grpc.max_receive_message_size", MESSAGE_BYTES, "0" => [uni_grpc.max_receive_message_size],
        "Longest connect request of unidirectional gRPC in bytes; 0 means 4 MiB.";
    "uni_grpc.tls.enabled", SWITCH, "false" => [uni_grpc.tls.enabled],
        "Speaks TLS 1.2 and 1.3 on the port of unidirectional gRPC, and only that.";
    "uni_grpc.tls.cert_pem", TEXT, "" => [uni_grpc.tls.cert_pem],
        "Certificate of that port and those that signed it, as PEM, base64 of it, or a file.";
    "uni_grpc.tls.key_pem", SECRET, "" => [uni_grpc.tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "uni_grpc.tls.client_ca_pem", TEXT, "" => [uni_grpc.tls.client_ca_pem],
        "Authorities that must have signed the certificate of a client of that port, as PEM, base64 of it, or a file; empty asks for none.";
}

/// Up to 1 GiB; 0 = the default.
const MESSAGE_BYTES: Kind = integer(0, 0x4000_0000);
