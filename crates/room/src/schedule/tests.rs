//! Tests of `schedule`: no drift, both policies, any pauses.
//! In: rates and times. Out: nothing.
//! Uses proptest.
//! Changed here: tests of when ticks are due.

use proptest::prelude::*;

use super::*;

fn rate(ticks_per_second: u32) -> NonZeroU32 {
    NonZeroU32::new(ticks_per_second).expect("a rate")
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn an_hour_at_60_hz_has_216_000_ticks_and_no_drift() {
    let mut schedule = Schedule::new(rate(60), Overrun::Skip);
    let mut ticks = 0;
    while schedule.next() <= Duration::from_secs(3600) {
        let next = schedule.next();
        assert_eq!(schedule.due(next - Duration::from_nanos(1)).run, 0);
        assert_eq!(schedule.due(next), Due { run: 1, skipped: 0, next: schedule.next() });
        ticks += 1;
    }
    assert_eq!((ticks, schedule.overruns()), (216_000, 0));
}

#[test]
fn a_pause_is_skipped_or_caught_up_within_its_bound() {
    let mut skips = Schedule::new(rate(10), Overrun::Skip);
    assert_eq!(skips.due(ms(1000)), Due { run: 1, skipped: 9, next: ms(1100) });
    assert_eq!(skips.overruns(), 9);
    let at_most = rate(3);
    let mut catches_up = Schedule::new(rate(10), Overrun::CatchUp { at_most });
    assert_eq!(catches_up.due(ms(250)), Due { run: 2, skipped: 0, next: ms(300) });
    assert_eq!(catches_up.due(ms(1000)), Due { run: 3, skipped: 5, next: ms(1100) });
    assert_eq!(catches_up.overruns(), 8);
}

proptest! {
    #[test]
    fn every_due_tick_is_run_or_left_out_once(
        ticks_per_second in 1..1000_u32,
        at_most in 1..5_u32,
        pauses in prop::collection::vec(0..3_000_000_000_u64, 1..50),
    ) {
        let overrun = Overrun::CatchUp { at_most: rate(at_most) };
        let mut schedule = Schedule::new(rate(ticks_per_second), overrun);
        let (mut now, mut ticks) = (Duration::ZERO, 0);
        for pause in pauses {
            now += Duration::from_nanos(pause);
            let Due { run, skipped, next } = schedule.due(now);
            prop_assert!(run <= at_most && (skipped == 0 || run == at_most));
            prop_assert!(next > now && next <= now + schedule.period() + Duration::from_nanos(1));
            ticks += u64::from(run) + skipped;
        }
        let expected = now.as_nanos() * u128::from(ticks_per_second) / 1_000_000_000;
        prop_assert!(u128::from(ticks) >= expected && u128::from(ticks) <= expected + 1);
    }
}
