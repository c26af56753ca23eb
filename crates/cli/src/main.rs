//! The one binary, `fanwire`.
//! In: the command line, the environment, signals → out: an exit code.
//! Uses: the library next to it, which cargo compiles while `fanwire` is still compiled. Never: commands.
//! Change here: the allocator.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Resident memory varies less than with the system's allocator.
#[cfg(all(feature = "mimalloc", not(feature = "heap-profile")))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(all(feature = "mimalloc", feature = "heap-profile"))]
#[global_allocator]
static ALLOCATOR: fanwire_profile::SamplingAllocator<mimalloc::MiMalloc> =
    fanwire_profile::SamplingAllocator(mimalloc::MiMalloc);

#[cfg(all(not(feature = "mimalloc"), feature = "heap-profile"))]
#[global_allocator]
static ALLOCATOR: fanwire_profile::SamplingAllocator<std::alloc::System> =
    fanwire_profile::SamplingAllocator(std::alloc::System);

fn main() -> ExitCode {
    fanwire_cli::main()
}
