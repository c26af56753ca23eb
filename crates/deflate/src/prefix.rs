//! The length of the common prefix of two byte strings.
//! In: two slices → out: how many bytes at their beginnings are equal.
//! Uses eight bytes at a time; never allocates.
//! The matcher, the choice of strategy and the window search with it.

/// The number of equal bytes at the beginnings, at most the length of `b`.
#[inline]
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    let a = &a[..b.len()];
    let mut length = 0;
    let a_words = a.as_chunks::<8>().0;
    let b_words = b.as_chunks::<8>().0;
    for (a, b) in a_words.iter().zip(b_words) {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return length + differing.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    length + a[length..].iter().zip(&b[length..]).take_while(|(a, b)| a == b).count()
}
