//! Tests of axes.
//! In: values → out: places and ticks.
//! Uses the room's functions. Never: draws.
//! A rule about ticks is a test here.

use super::Axis;

fn labels(values: &[f64]) -> Vec<f64> {
    let axis = Axis::new(values.iter().copied(), 0.0, 100.0);
    axis.ticks().into_iter().map(|(value, _)| value).collect()
}

#[test]
fn values_keep_their_order_and_stay_inside() {
    let axis = Axis::new([1.0, 1_000.0].into_iter(), 10.0, 110.0);
    let places = [1.0, 10.0, 100.0, 1_000.0].map(|value| axis.place(value));
    assert!(places.is_sorted() && places[0] > 10.0 && places[3] < 110.0, "{places:?}");
    assert_eq!(axis.place(0.0), 10.0);
    assert_eq!(axis.place(1e12), 110.0);
}

#[test]
fn an_axis_may_run_backwards() {
    let axis = Axis::new([1.0, 10.0].into_iter(), 200.0, 0.0);
    assert!(axis.place(1.0) > axis.place(10.0));
}

#[test]
fn ticks_are_round_and_few() {
    assert_eq!(labels(&[4.0, 60.0]), [5.0, 10.0, 20.0, 50.0]);
    assert_eq!(labels(&[1.0, 1e3]), [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0]);
    assert!(labels(&[1.0, 1e20]).len() <= 7);
}

#[test]
fn one_value_and_none_make_an_axis_too() {
    assert!(Axis::new([50.0].into_iter(), 0.0, 100.0).place(50.0).is_finite());
    assert_eq!(Axis::new([].into_iter(), 0.0, 100.0).place(1.0), 0.0);
}
