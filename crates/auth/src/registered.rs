//! Parts of every token: its header (RFC 7515 §4.1), the registered claims (RFC 7519 §4.1), and the user.
//! In: decoded JSON of a header or payload, expectations → out: typed values, yes or no.
//! May use: serde_json, regex. Pure; unknown members are ignored, `null` is absent.
//! Changed here: rules of time, audience and issuer; Centrifugo's own claims live in `claims.rs`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde::de::{IgnoredAny, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Fault, TokenError};

/// The JOSE header.
#[derive(Deserialize)]
pub(super) struct Header<'a> {
    #[serde(borrow)]
    pub(super) alg: Cow<'a, str>,
    /// The name of the published key that signed (RFC 7515 §4.1.4).
    #[serde(borrow)]
    pub(super) kid: Option<Cow<'a, str>>,
    crit: Option<IgnoredAny>,
}

/// The registered claims.
#[derive(Deserialize)]
pub(super) struct Registered {
    sub: Option<String>,
    exp: Option<Date>,
    nbf: Option<Date>,
    aud: Option<Audience>,
    iss: Option<String>,
    iat: Option<Date>,
    jti: Option<String>,
}

/// Seconds since 1970 (RFC 7519 §2 "NumericDate"); fractions are cut off.
#[derive(Clone, Copy)]
pub(super) struct Date(i64);

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl<'a> Header<'a> {
    /// Reads a header. One with `crit` demands extensions that we do not have (RFC 7515 §4.1.11).
    pub(super) fn parse(json: &'a [u8]) -> Result<Self, Fault> {
        let header: Self = object(json).ok_or(Fault::Format)?;
        if header.crit.is_some() {
            return Err(Fault::Extension);
        }
        Ok(header)
    }
}

impl Registered {
    pub(super) fn parse(json: &[u8]) -> Result<Self, Fault> {
        object(json).ok_or(Fault::Claims)
    }

    /// Moves `sub` out; "" = anonymous.
    pub(super) fn take_subject(&mut self) -> String {
        self.sub.take().unwrap_or_default()
    }

    /// Moves `jti` out; "" = none.
    pub(super) fn take_uid(&mut self) -> String {
        self.jti.take().unwrap_or_default()
    }

    /// Returns `iat` in Unix seconds; 0 without one.
    pub(super) fn issued_at(&self) -> u64 {
        self.iat.and_then(Date::unix).unwrap_or_default()
    }

    /// Returns the time at which the token ends; `None` = never.
    pub(super) fn expiry(&self) -> Option<Date> {
        self.exp
    }

    /// `now < exp` and `nbf <= now` (RFC 7519 §4.1.4 and §4.1.5), without leeway.
    pub(super) fn check_time(&self, now_unix: u64) -> Result<(), TokenError> {
        let now = i64::try_from(now_unix).unwrap_or(i64::MAX);
        let ended = self.exp.is_some_and(|exp| exp.0 <= now);
        let not_begun = self.nbf.is_some_and(|nbf| now < nbf.0);
        if ended || not_begun { Err(TokenError::Expired) } else { Ok(()) }
    }

    /// Returns the text that a named group of a pattern matches in `iss`, or else in the first entry of `aud` that the pattern fits.
    pub(super) fn group(
        &self,
        name: &str,
        issuer: Option<&Regex>,
        audience: Option<&Regex>,
    ) -> Option<String> {
        let in_text = |regex: Option<&Regex>, text: &str| {
            Some(regex?.captures(text)?.name(name)?.as_str().to_owned())
        };
        in_text(issuer, self.iss.as_deref().unwrap_or_default()).or_else(|| {
            let fitting = |entry: &&String| audience.is_some_and(|regex| regex.is_match(entry));
            in_text(audience, self.audiences().iter().find(fitting)?)
        })
    }

    fn audiences(&self) -> &[String] {
        match &self.aud {
            None => &[],
            Some(Audience::One(entry)) => std::slice::from_ref(entry),
            Some(Audience::Many(entries)) => entries,
        }
    }

    /// Whether one entry of `aud` is `exact` and one matches `regex`, as far as they are set.
    pub(super) fn has_audience(&self, exact: &str, regex: Option<&Regex>) -> bool {
        let entries = self.audiences();
        (exact.is_empty() || entries.iter().any(|entry| entry == exact))
            && regex.is_none_or(|regex| entries.iter().any(|entry| regex.is_match(entry)))
    }

    /// Whether `iss` is `exact` and matches `regex`, as far as they are set; a missing `iss` counts as "".
    pub(super) fn has_issuer(&self, exact: &str, regex: Option<&Regex>) -> bool {
        let issuer = self.iss.as_deref().unwrap_or_default();
        (exact.is_empty() || issuer == exact) && regex.is_none_or(|regex| regex.is_match(issuer))
    }
}

impl Date {
    /// Unix seconds; `None` for 1970 and earlier.
    pub(super) fn unix(self) -> Option<u64> {
        u64::try_from(self.0).ok().filter(|&seconds| seconds > 0)
    }
}

/// The user id from a claim other than `sub`: a string, or an integer as its digits (identity providers number users);
/// "" when the claim is missing.
pub(super) fn user_claim(json: &[u8], claim: &str) -> Result<String, Fault> {
    let claims: BTreeMap<String, &RawValue> = object(json).ok_or(Fault::Claims)?;
    let text = claims.get(claim).map_or("null", |value| value.get());
    if text == "null" {
        return Ok(String::new());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    serde_json::from_str(text).map_err(|_| Fault::Claims)
}

/// Reads a JSON object. Derived readers would also take an array of the members in order; a token may not be one.
pub(super) fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Option<T> {
    if json.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    serde_json::from_slice(json).ok()
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DateVisitor)
    }
}

struct DateVisitor;

impl Visitor<'_> for DateVisitor {
    type Value = Date;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of seconds since 1970")
    }

    fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Date, E> {
        Ok(Date(i64::try_from(seconds).unwrap_or(i64::MAX)))
    }

    fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Date, E> {
        Ok(Date(seconds))
    }

    /// Some libraries write the number as a text, and the reference reads it.
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Date, E> {
        match text.parse() {
            Ok(seconds) => self.visit_f64(seconds),
            Err(_) => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Date, E> {
        if !seconds.is_finite() {
            return Err(E::invalid_value(Unexpected::Float(seconds), &self));
        }
        Ok(Date(seconds.floor() as i64)) // `as` saturates
    }
}
