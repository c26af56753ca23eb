//! Tests of heap profiles: what is in use is found with its function, and what was freed is not.
//! In: large allocations in named functions → out: what a reader finds in the file.
//! Uses the allocator of this test binary, which is a `SamplingAllocator`; other tests run at the same time.
//! Changed here: expectations of `heap`.

use super::*;
use crate::SamplingAllocator;
use crate::testing::{decode, names, text};

#[global_allocator]
static ALLOCATOR: SamplingAllocator<std::alloc::System> = SamplingAllocator(std::alloc::System);

#[inline(never)]
fn allocate_many_for_the_profile() -> Vec<Vec<u8>> {
    (0..4096).map(|_| std::hint::black_box(vec![1; 16 * 1024])).collect()
}

#[test]
fn memory_in_use_is_found_by_its_function_until_it_is_freed() {
    assert!(enable());
    let memory = allocate_many_for_the_profile();
    let (bytes, innermost) = in_use();
    let expected = (memory.len() * 16 * 1024) as f64;
    // 128 samples are expected; the standard deviation of their number is 11.
    assert!((bytes as f64 / expected - 1.0).abs() < 0.5, "{bytes} of {expected}");
    assert!(!innermost.contains("__rust_alloc"), "{innermost}");
    drop(memory);
    assert_eq!(in_use().0, 0);
}

/// Bytes in use that `allocate_many_for_the_profile` allocated, and the innermost function of one sample.
fn in_use() -> (i64, String) {
    let profile = decode(&profile().expect("samples are taken"));
    let kinds: Vec<_> =
        profile.sample_type.iter().map(|kind| text(&profile, kind.r#type)).collect();
    assert_eq!(kinds, ["inuse_objects", "inuse_space"]);
    let mut found = (0, String::new());
    for sample in &profile.sample {
        let names = names(&profile, sample);
        if names.iter().any(|name| name.contains("allocate_many_for_the_profile")) {
            found.0 += sample.value[1];
            found.1 = names[0].to_owned();
        }
    }
    found
}

#[test]
fn a_sample_stands_for_as_many_allocations_as_its_probability_says() {
    let sample = |bytes| HeapSample { bytes, stack: Box::default() }.stands_for();
    assert!((sample(SAMPLE_BYTES) - 1.582).abs() < 0.001);
    assert!((sample(512) - 1024.5).abs() < 0.1);
    assert!((sample(100 << 20) - 1.0).abs() < 1e-9, "large memory is always sampled");
}
