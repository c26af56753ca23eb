//! Tests of counts that last as long as somebody looks.
//! In: publications, deliveries, looks, time → out: asserted lists.
//! Uses: instants made by the test. Never: waits.
//! Changed here: tests of how long is counted.

use super::*;

#[test]
fn only_what_comes_after_a_look_is_counted() {
    let (hot, start) = (HotChannels::default(), Instant::now());
    let after = |seconds| start + Duration::from_secs(seconds);
    hot.count_publication("before");
    assert!(!hot.is_on());
    let first = hot.counts(5, start);
    assert_eq!((first.counted, first.publications.len()), (Duration::ZERO, 0));
    assert!(hot.is_on());
    (0..3).for_each(|_| hot.count_publication("news"));
    hot.count_publication("chat");
    hot.count_deliveries("chat", 70);
    hot.count_deliveries("none", 0);
    let second = hot.counts(5, after(10));
    assert_eq!(second.counted, Duration::from_secs(10));
    assert_eq!(second.publications, [(3, "news".to_owned()), (1, "chat".to_owned())]);
    assert_eq!(second.deliveries, [(70, "chat".to_owned())]);

    // More than a minute later the counts begin again, behind the question that returns them.
    assert_eq!(hot.counts(5, after(61)).deliveries.len(), 1);
    let fresh = hot.counts(5, after(62));
    assert_eq!((fresh.counted, fresh.deliveries.len()), (Duration::from_secs(1), 0));
}

#[test]
fn a_channel_that_became_hot_has_its_rate_of_the_last_seconds() {
    let (hot, start) = (HotChannels::default(), Instant::now());
    let after = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(hot.counts(5, start).recent, Duration::ZERO);
    for second in 1..=50 {
        hot.count_publication("always");
        (0..60).filter(|_| second > 43).for_each(|_| hot.count_publication("new"));
        hot.count_deliveries("new", 2);
        hot.tick(after(second));
        if second % 5 == 0 {
            hot.counts(5, after(second));
        }
    }
    let counts = hot.counts(1, after(50));
    let seconds = counts.recent.as_secs_f64();
    assert!((3.0..=8.0).contains(&seconds), "{seconds}");
    let rates = |list: &[(u64, String)]| {
        list.iter().map(|(count, name)| (name.clone(), *count as f64 / seconds)).collect::<Vec<_>>()
    };
    assert_eq!(rates(&counts.recent_publications), [("new".to_owned(), 60.0)]);
    assert_eq!(rates(&counts.recent_deliveries), [("new".to_owned(), 2.0)]);
    let whole = counts.publications[0].0 as f64 / counts.counted.as_secs_f64();
    assert!(whole < 10.0, "the average over the whole time: {whole}");
}

#[test]
fn counting_ends_half_a_minute_after_the_last_look() {
    let (hot, start) = (HotChannels::default(), Instant::now());
    hot.tick(start);
    hot.counts(5, start);
    hot.count_publication("news");
    hot.tick(start + UNSEEN - Duration::from_millis(1));
    assert!(hot.is_on());
    hot.tick(start + UNSEEN);
    assert!(!hot.is_on());
    let later = hot.counts(5, start + UNSEEN);
    assert_eq!((later.counted, later.publications.len()), (Duration::ZERO, 0));
}
