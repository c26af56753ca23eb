//! A wrapper of the process's allocator that shows allocations to the heap profile.
//! In: calls of the global allocator → out: the same calls of the wrapped one; samples, while they are on.
//! Uses `heap`, which decides what is sampled. Never: changes a size, an alignment or a pointer.
//! Changed here: which calls are shown. While sampling is off, each call costs one relaxed load.

#![allow(unsafe_code)] // docs/decisions/0020

use std::alloc::{GlobalAlloc, Layout};

use crate::heap;

/// The allocator `A`, with samples for [`heap::profile`] after [`heap::enable`].
#[derive(Debug)]
pub struct SamplingAllocator<A>(pub A);

// SAFETY: every method passes its arguments to `A` unchanged and returns the result of `A`, which keeps the contract.
// `heap` allocates while it takes a sample, and a guard of the thread keeps that from recursing.
unsafe impl<A: GlobalAlloc> GlobalAlloc for SamplingAllocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let memory = unsafe { self.0.alloc(layout) };
        if heap::is_enabled() {
            heap::allocated(memory.addr(), layout.size(), trace);
        }
        memory
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let memory = unsafe { self.0.alloc_zeroed(layout) };
        if heap::is_enabled() {
            heap::allocated(memory.addr(), layout.size(), trace);
        }
        memory
    }

    /// Forgets the memory first: when it is free, another thread may get and record the same address.
    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if heap::is_enabled() {
            heap::freed(memory.addr());
        }
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.0.dealloc(memory, layout) }
    }

    /// Forgets the old memory first, as `dealloc` does.
    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if heap::is_enabled() {
            heap::freed(memory.addr());
        }
        // SAFETY: the caller keeps the contract of `realloc`.
        let memory = unsafe { self.0.realloc(memory, layout, size) };
        if heap::is_enabled() {
            heap::allocated(memory.addr(), size, trace);
        }
        memory
    }
}

/// Calls `take` with the return addresses of the stack, the innermost first, until it returns false.
fn trace(take: &mut dyn FnMut(usize) -> bool) {
    // SAFETY: only Windows needs calls in turn, for its library of symbols; the unwinder of other systems is reentrant.
    // `backtrace::trace` takes a lock that is held while names are looked up, for longer than an allocation may wait.
    unsafe { backtrace::trace_unsynchronized(|frame| take(frame.ip().addr())) }
}
