//! The running process: CPU and heap profiles in the format of pprof, and the standard metrics.
//! In: a start and an end, allocations of the process, `/proc` → out: gzipped `profile.proto` with names of functions, metrics.
//! Uses a timer signal, the unwind tables of the binary, a wrapper of the allocator. Never: a thread, a socket, a clock of its own.
//! Changed here: the list of parts. Paths and limits of requests are in `routes`.

mod allocator;
pub mod cpu;
mod format;
pub mod heap;
pub mod process;
mod routes;
#[cfg(test)]
mod testing;

pub use allocator::SamplingAllocator;
pub use routes::routes;
