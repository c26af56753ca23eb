//! Finds the part of a refused token to correct: a claim, the time, or the algorithm.
//! In: a token that the verifier refused, and the time → out: a text about the part that caused the refusal.
//! Uses the token's JSON. Never: decides whether a token is valid.
//! The rules for claims live in `claims.rs`; this file only finds the claim to name.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value as Json};

use crate::{Fault, TokenError};

pub(super) struct InvalidToken<'a> {
    pub(super) token: &'a str,
    pub(super) is_subscription: bool,
    /// The claim with the user instead of `sub`; "" = `sub`.
    pub(super) user_claim: &'a str,
    pub(super) now_unix: u64,
}

impl InvalidToken<'_> {
    /// The part that caused this error, if it is one of these.
    pub(super) fn part_of(&self, error: TokenError) -> Option<String> {
        match error {
            TokenError::Invalid(Fault::Claims) => self.claim(),
            TokenError::Invalid(Fault::Algorithm) => self.algorithm(),
            TokenError::Expired => self.time(),
            _ => None,
        }
    }

    /// The claim that is missing, forbidden or of a wrong type, with the expected type.
    fn claim(&self) -> Option<String> {
        let claims = self.part(PAYLOAD)?;
        let user: (&str, &str, fn(&Json) -> bool) = (self.user_claim, "a text", Json::is_string);
        let wrong = CLAIMS.into_iter().chain([user]).find_map(|(name, expected, has_type)| {
            let value = claims.get(name).filter(|value| !value.is_null() && !has_type(value))?;
            Some(format!("{name} is {value}, expected {expected}"))
        });
        let channel = claims.get("channel").and_then(Json::as_str).unwrap_or_default();
        wrong.or_else(|| match (self.is_subscription, channel) {
            (true, "") => Some("channel is missing, as in a connection token".to_owned()),
            (false, channel) if !channel.is_empty() => {
                Some(format!("channel is {channel:?}, as in a subscription token"))
            }
            _ => None,
        })
    }

    /// The algorithm of the header.
    fn algorithm(&self) -> Option<String> {
        let header = self.part(HEADER)?;
        Some(format!("alg is {}", header.get("alg")?))
    }

    /// Whether the token is expired or not yet valid, and by how many seconds.
    fn time(&self) -> Option<String> {
        let claims = self.part(PAYLOAD)?;
        let time = |name: &str| claims.get(name)?.as_f64().map(|unix| unix as i64);
        let now = i64::try_from(self.now_unix).ok()?;
        if let Some(begin) = time("nbf").filter(|begin| now < *begin) {
            return Some(format!("it becomes valid in {} s (nbf is {begin})", begin - now));
        }
        let end = time("exp").filter(|end| *end <= now)?;
        Some(format!("it expired {} s ago (exp is {end})", now - end))
    }

    fn part(&self, number: usize) -> Option<Map<String, Json>> {
        let text = self.token.split('.').nth(number)?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

const HEADER: usize = 0;
const PAYLOAD: usize = 1;

fn is_texts(value: &Json) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Json::is_string))
}

fn is_text_or_texts(value: &Json) -> bool {
    value.is_string() || is_texts(value)
}

type ClaimType = (&'static str, &'static str, fn(&Json) -> bool);

/// Claims with a required type.
const CLAIMS: [ClaimType; 13] = [
    ("sub", "a text", Json::is_string),
    ("exp", "seconds since 1970, a number", Json::is_number),
    ("nbf", "seconds since 1970, a number", Json::is_number),
    ("expire_at", "seconds since 1970, a number", Json::is_number),
    ("iss", "a text", Json::is_string),
    ("aud", "a text or a list of texts", is_text_or_texts),
    ("channel", "a text", Json::is_string),
    ("client", "a text", Json::is_string),
    ("channels", "a list of texts", is_texts),
    ("subs", "an object of channels", Json::is_object),
    ("override", "an object", Json::is_object),
    ("b64info", "a text in base64", Json::is_string),
    ("b64data", "a text in base64", Json::is_string),
];

#[cfg(test)]
mod tests;
