//! Tests of spans: the header, sampling, limits of the queues.
//! In: headers, samplers, spans → out: contexts, decisions, counts.
//! Uses a tracer of its own. Never: that of the process, a clock.
//! A rule of sampling gets a test here.

use super::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn tracer_with(follows_parent: bool, ratio: f64) -> Tracer {
    Tracer::new(Sampler { follows_parent, ratio })
}

fn begin(tracer: &Tracer, parent: Option<&str>) -> Option<Span> {
    let parent = parent.and_then(TraceContext::parse);
    tracer.begin(|| "call".to_owned(), SpanKind::Server, parent, SystemTime::UNIX_EPOCH)
}

#[test]
fn a_valid_header_is_continued_and_another_is_not() {
    let context = TraceContext::parse(PARENT).expect("valid");
    assert_eq!((context.span, context.is_sampled), (0xb7ad_6b71_6920_3331, true));
    assert_eq!(context.header(), PARENT);
    assert!(TraceContext::parse(&format!("{PARENT}-later").replacen("00", "01", 1)).is_some());
    for wrong in [
        "",
        "00",
        "garbage",
        &PARENT.to_uppercase(),
        &PARENT.replacen("00", "ff", 1),
        &format!("{PARENT}-more"),
        &PARENT[..PARENT.len() - 1],
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ] {
        assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn the_parent_decides_and_without_one_the_ratio() {
    let unsampled = PARENT.replace("-01", "-00");
    let all = tracer_with(true, 1.0);
    let span = begin(&all, Some(PARENT)).expect("sampled");
    assert_eq!(span.context.trace, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
    assert_eq!(span.parent, 0xb7ad_6b71_6920_3331);
    assert_ne!(span.context.span, span.parent);
    assert!(begin(&all, Some(&unsampled)).is_none() && begin(&all, None).is_some());
    let none = tracer_with(true, 0.0);
    assert!(begin(&none, Some(PARENT)).is_some() && begin(&none, None).is_none());
    let never = tracer_with(false, 0.0);
    assert!(begin(&never, Some(PARENT)).is_none());
    let half = tracer_with(false, 0.5);
    let chosen = (0..1000).filter(|_| begin(&half, None).is_some()).count();
    assert!((300..700).contains(&chosen), "{chosen} of 1,000");
}

#[test]
fn queues_have_limits_and_what_is_dropped_is_counted() {
    let tracer = tracer_with(true, 1.0);
    for _ in 0..SPANS_MAX + 5 {
        tracer.push(begin(&tracer, None).expect("sampled"));
    }
    assert_eq!(tracer.dropped(), 5);
    assert_eq!((tracer.take(2000).len(), tracer.take(2000).len()), (2000, SPANS_MAX - 2000));
    let (parent, start) = (TraceContext::parse(PARENT).expect("valid"), SystemTime::UNIX_EPOCH);
    for receipt in 0..200 {
        let channel = "news".to_owned();
        tracer.await_delivery(TracedDelivery { receipt, channel, parent, start });
    }
    assert!(!tracer.has_room_for_delivery());
    assert!(tracer.take_deliveries(start).is_empty(), "they are not over");
    let later = start + std::time::Duration::from_secs(1);
    assert_eq!(tracer.take_deliveries(later).len(), DELIVERIES_MAX);
}
