//! Reads profiles in tests as `go tool pprof` does.
//! In: a gzipped file → out: its samples with names of functions.
//! Uses prost and zlib-rs. Never: part of a build that is not a test.
//! Changed here: what a test can ask of a profile.

use prost::Message as _;
use zlib_rs::{InflateConfig, decompress_slice};

use crate::format::messages::{Profile, Sample};

/// The message in a gzipped file.
pub(crate) fn decode(file: &[u8]) -> Profile {
    assert_eq!(file[..2], [0x1f, 0x8b], "RFC 1952 §2.3.1");
    let mut bytes = vec![0; 64 << 20];
    let (bytes, _) = decompress_slice(&mut bytes, file, InflateConfig { window_bits: 16 + 15 });
    Profile::decode(&*bytes).expect("profile.proto")
}

/// The names of the functions of a sample, the innermost first.
pub(crate) fn names<'a>(profile: &'a Profile, sample: &Sample) -> Vec<&'a str> {
    let lines = sample.location_id.iter().flat_map(|id| {
        let location = profile.location.iter().find(|location| location.id == *id);
        &location.expect("every location is in the table").line
    });
    let functions = lines.map(|line| {
        let function = profile.function.iter().find(|function| function.id == line.function_id);
        function.expect("every function is in the table").name
    });
    functions.map(|name| text(profile, name)).collect()
}

/// A string of the table.
pub(crate) fn text(profile: &Profile, index: i64) -> &str {
    &profile.string_table[index as usize]
}
