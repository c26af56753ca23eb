//! Tests of tokens and keys from outside the crate.
//! In: bytes of clients and key servers → out: no panic.
//! Uses the public face of the crate and its fuzz targets. Never: sessions, sockets.
//! A new theme is a module here; each module has its own tests.
#![forbid(unsafe_code)]

mod any_bytes;
