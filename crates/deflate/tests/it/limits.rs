//! Property tests: an `Inflater` never returns nor allocates more than its limit.
//! Random messages and limits, and a bomb → the message or `TooLarge`, with the capacity in bounds.
//! Uses the public items only.
//! Changed here: properties about size. Content is in `against_oracle`.

use fanwire_deflate::{Compressor, InflateError, Inflater};
use proptest::prelude::*;

use crate::messages::message;

proptest! {
    #[test]
    fn a_message_passes_exactly_when_it_is_within_the_limit(
        message in message(),
        bytes_max in 0..60_000usize,
    ) {
        check(&message, bytes_max)?;
        check(&message, message.len())?;
        check(&message, message.len().saturating_sub(1))?;
    }
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let bomb = vec![0; 4 << 20];
    check(&bomb, 65_536).expect("TooLarge, within bounds");
    check(&bomb, 0).expect("TooLarge, within bounds");
}

fn check(message: &[u8], bytes_max: usize) -> Result<(), TestCaseError> {
    let mut payload = Vec::new();
    Compressor::new(1).standalone(message, &mut payload);
    let mut out = Vec::new();
    let mut inflater = Inflater::new();
    let result = inflater
        .push(&payload, &mut out, bytes_max)
        .and_then(|()| inflater.finish(&mut out, bytes_max));
    if message.len() <= bytes_max {
        prop_assert_eq!(result, Ok(()));
        prop_assert_eq!(&out, message);
    } else {
        prop_assert_eq!(result, Err(InflateError::TooLarge { bytes_max }));
        prop_assert!(out.len() <= bytes_max);
    }
    prop_assert!(out.capacity() <= bytes_max + 1, "{} of {bytes_max}", out.capacity());
    Ok(())
}
