//! Tests of signatures: the known answer, other claims, replaced secrets, expiry.
//! In: secrets, signatures and times → out: expiries or refusals.
//! Uses the signing function with the checks. Never: a clock.
//! Changed here: tests of how a signature is checked.

use proptest::prelude::*;

use super::*;

const CLAIM: TrackClaim<'static> =
    TrackClaim { user: "42", channel: "prices:eu", keys: &["EURUSD", "EURGBP"] };

fn secrets() -> TrackSecrets {
    TrackSecrets {
        hmac_secret_key: "new".into(),
        hmac_previous_secret_key: "old".into(),
        hmac_previous_secret_key_valid_until: 500,
    }
}

fn verify(signature: &str, claim: TrackClaim<'_>, unix: u64) -> Result<Option<u64>, TrackError> {
    TrackVerifier::new(&secrets()).verify(signature, claim, unix)
}

fn sign(secret: &str, issued_at: u64, expires_at: u64) -> String {
    sign_track(&secret.into(), CLAIM, issued_at, expires_at).expect("a secret, and no NUL")
}

/// Made with Python: `hmac.new(b"new", b"100\x00200\x0042\x00prices:eu\x00" + sha256(b"EURUSD\x00EURGBP").hexdigest(), "sha256")`.
#[test]
fn the_form_is_that_of_other_programs() {
    let known = "100:200:909e8da69932dde38ddba2315b644eb6a8def8c871cf27f11ff60f03ee4b4a91";
    assert_eq!(sign("new", 100, 200), known);
    assert_eq!(verify(known, CLAIM, 200), Ok(Some(200)));
    assert_eq!(verify(&known.to_uppercase(), CLAIM, 200), Err(TrackError::Invalid));
}

#[test]
fn a_signature_expires_after_a_grace() {
    let signature = sign("new", 100, 200);
    assert_eq!(verify(&signature, CLAIM, 205), Ok(Some(200)));
    assert_eq!(verify(&signature, CLAIM, 206), Err(TrackError::Expired));
    assert_eq!(verify(&sign("new", 100, 0), CLAIM, u64::MAX), Ok(None), "0 is never");
    let last = u64::MAX;
    assert_eq!(verify(&sign("new", 100, last), CLAIM, last), Ok(Some(last)));
}

#[test]
fn the_previous_secret_signs_no_more_after_its_time() {
    assert_eq!(verify(&sign("old", 500, 0), CLAIM, 9_999), Ok(None));
    assert_eq!(verify(&sign("old", 501, 0), CLAIM, 9_999), Err(TrackError::Invalid));
    assert_eq!(verify(&sign("older", 100, 0), CLAIM, 9_999), Err(TrackError::Invalid));
    let unlimited = TrackSecrets { hmac_previous_secret_key_valid_until: 0, ..secrets() };
    let verifier = TrackVerifier::new(&unlimited);
    assert_eq!(verifier.verify(&sign("old", 501, 0), CLAIM, 9_999), Ok(None));
}

#[test]
fn without_a_secret_nothing_is_signed_or_taken() {
    let verifier = TrackVerifier::new(&TrackSecrets::default());
    assert_eq!(verifier.verify(&sign("new", 1, 0), CLAIM, 1), Err(TrackError::NoSecret));
    assert_eq!(sign_track(&"".into(), CLAIM, 1, 0), Err(TrackError::NoSecret));
}

#[test]
fn another_claim_is_refused() {
    let signature = sign("new", 100, 0);
    let claims = [
        TrackClaim { user: "43", ..CLAIM },
        TrackClaim { channel: "prices:us", ..CLAIM },
        TrackClaim { keys: &["EURGBP", "EURUSD"], ..CLAIM },
        TrackClaim { keys: &["EURUSD"], ..CLAIM },
        TrackClaim { keys: &["EURUSD", "EURGBP", ""], ..CLAIM },
        TrackClaim { keys: &["EURUSD\0EURGBP"], ..CLAIM },
        TrackClaim { user: "42\0prices:eu", channel: "", ..CLAIM },
    ];
    for claim in claims {
        assert_eq!(verify(&signature, claim, 100), Err(TrackError::Invalid), "{claim:?}");
    }
    for text in ["", "1", "1:2", "1:2:", "a:0:00", "+1:0:00", "1:0:0", "1:0:0g", "1:0:00:00"] {
        assert_eq!(verify(text, CLAIM, 100), Err(TrackError::Invalid), "{text:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_refused_and_any_changed_signature(text in ".{0,80}", at in 0_usize..80, byte in any::<u8>()) {
        prop_assert!(verify(&text, CLAIM, 100).is_err());
        let signature = sign("new", 100, 200);
        let mut bytes = signature.clone().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(changed) = String::from_utf8(bytes) && changed != signature {
            prop_assert!(verify(&changed, CLAIM, 100).is_err());
        }
    }
}
