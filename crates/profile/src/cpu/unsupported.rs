//! The sampler where there is none: on systems other than Linux and processors other than x86-64 and AArch64.
//! In: a start → out: an error.
//! Uses nothing. Never: a sample.
//! Changed here: the text of that error. `sampler.rs` is the sampler.

use std::io;

/// No stacks.
#[derive(Default)]
pub(super) struct Stacks {
    pub(super) lost: u64,
}

impl Stacks {
    pub(super) fn words(&self) -> &[u64] {
        &[]
    }
}

pub(super) fn start(_period_us: i64) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "it needs Linux on x86-64 or AArch64"))
}

pub(super) fn stop() -> Option<Stacks> {
    None
}
