//! Tests of `growing`: which fragments a message takes, and when its text is due.
//! In: fragments, times → out: the time until the next publication, sizes.
//! Uses: messages without a broker. Never: streams; `broker/conformance/growing.rs` tests the rules of all engines.
//! Changed here: expectations of `growing.rs`.

use super::*;

#[test]
fn a_message_is_due_one_interval_after_its_last_publication() {
    let (limits, now) = (AppendLimits::default(), Instant::now());
    let fragment =
        |text: &str| Fragment { text: text.into(), head: "\"".into(), ..Fragment::default() };
    let after = |milliseconds| now + Duration::from_millis(milliseconds);
    let mut message = GrowingMessage::new(&fragment(""), now);
    message.append(&fragment("a"), &limits).expect("it fits");
    assert_eq!(message.due_after(&limits, now), Some(Duration::ZERO), "the first one at once");
    assert_eq!(message.publish(now), "\"a\"");
    message.position.offset = 1;
    assert_eq!(message.due_after(&limits, after(5)), None, "nothing waits");
    message.append(&fragment("b"), &limits).expect("it fits");
    assert_eq!(message.due_after(&limits, after(5)), Some(Duration::from_millis(35)));
    assert_eq!(message.due_after(&limits, after(40)), Some(Duration::ZERO));
    let last = Fragment { is_final: true, ..fragment("") };
    message.append(&last, &limits).expect("it fits");
    assert_eq!(message.due_after(&limits, after(5)), Some(Duration::ZERO), "the last one at once");
}
