//! CPU and heap profiles of the running process, in the format of pprof.
//! In: a start and an end, allocations of the process → out: gzipped `profile.proto`, with names of functions.
//! Uses a timer signal, the unwind tables of the binary, a wrapper of the allocator. Never: a thread, a socket, a clock of its own.
//! Change here: the list of parts. Paths and limits of requests live in the server.

mod allocator;
pub mod cpu;
mod format;
pub mod heap;
#[cfg(test)]
mod testing;

pub use allocator::SamplingAllocator;
