//! Tests of renewals.
//! In: lives of certificates → out: the time of the renewal.
//! Uses made-up times, and one certificate. Never: the clock.
//! How early a certificate is renewed is a test here; how dates are read is tested in `tls::certificate`.

use super::*;

const DAY: u64 = 24 * 3600;

#[test]
fn both_dates_are_those_of_the_certificate() {
    let mut params = rcgen::CertificateParams::new(["a.example".to_owned()]).expect("a name");
    params.not_before = rcgen::date_time_ymd(2026, 2, 28);
    params.not_after = rcgen::date_time_ymd(2026, 3, 1);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("signed");
    let validity = Validity::of(certificate.der()).expect("dates");
    // `date -u -d 2026-02-28 +%s`
    let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_236_800);
    assert_eq!(validity.not_before, begin);
    assert_eq!(validity.not_after, begin + Duration::from_secs(DAY));
    assert_eq!(Validity::of(b"no certificate"), None);
}

fn renewal(life: Duration, jitter: f64) -> Duration {
    let not_before = SystemTime::UNIX_EPOCH + Duration::from_secs(20_000 * DAY);
    let validity = Validity { not_before, not_after: not_before + life };
    validity.renewal(jitter).duration_since(not_before).expect("later")
}

#[test]
fn long_lives_are_renewed_30_days_before_their_end_and_short_ones_after_two_thirds() {
    let days = |days: u64| Duration::from_secs(days * DAY);
    assert_eq!(renewal(days(365), 0.0), days(335));
    assert_eq!(renewal(days(90), 0.0), days(60));
    assert_eq!(renewal(days(45), 0.0), days(30));
    assert_eq!(renewal(days(6), 0.0), days(4));
    assert_eq!(renewal(Duration::from_secs(6), 0.0), Duration::from_secs(4));
    assert_eq!(renewal(Duration::ZERO, 1.0), Duration::ZERO);
}

#[test]
fn jitter_makes_a_renewal_earlier_by_up_to_a_hundredth_of_the_life() {
    let life = Duration::from_secs(100 * DAY);
    assert_eq!(renewal(life, 0.0) - renewal(life, 1.0), Duration::from_secs(DAY));
}
