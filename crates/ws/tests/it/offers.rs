//! Property tests: negotiation against a model that decides from structured offers (RFC 7692 §7).
//! Random offers, written in every allowed form → the answer to the first acceptable one.
//! Uses the model below as the oracle.
//! Changed here: which offers are generated.

use fanwire_ws::extension::{ClientTakeover, ExtensionSettings, negotiate};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_first_acceptable_offer_is_answered_as_the_model_says(
        offers in vec(offer(), 0..4),
        settings in settings(),
    ) {
        let expect = offers.iter().find_map(|offer| offer.answer(settings));
        let values: Vec<_> = offers.iter().map(|offer| offer.text.as_str()).collect();
        let in_one_header = values.join(", ");
        let answer = negotiate([in_one_header.as_str()].into_iter(), settings);
        prop_assert_eq!(answer.map(|agreement| agreement.response()), expect.clone());
        let in_several = negotiate(values.into_iter(), settings);
        prop_assert_eq!(in_several.map(|agreement| agreement.response()), expect);
    }
}

#[derive(Clone, Debug)]
struct Offer {
    name: &'static str,
    parameters: Vec<(&'static str, Option<String>)>,
    text: String,
}

impl Offer {
    fn answer(&self, settings: ExtensionSettings) -> Option<String> {
        let count = |name| self.parameters.iter().filter(|parameter| parameter.0 == name).count();
        let value = |name| {
            let found = self.parameters.iter().find(|parameter| parameter.0 == name);
            found.map(|parameter| parameter.1.as_deref())
        };
        let bits = |text: &str| (8..=15).find(|bits: &u8| bits.to_string() == text);
        let valid = self.name == "permessage-deflate"
            && self.parameters.iter().all(|(name, value)| {
                count(*name) == 1
                    && match (*name, value.as_deref()) {
                        ("server_no_context_takeover" | "client_no_context_takeover", value) => {
                            value.is_none()
                        }
                        ("server_max_window_bits", Some(value)) => {
                            bits(value).is_some_and(|it| it > 8)
                        }
                        ("client_max_window_bits", Some(value)) => bits(value).is_some(),
                        ("client_max_window_bits", None) => true,
                        _ => false,
                    }
            });
        let takeover =
            settings.client_takeover.filter(|_| value("client_no_context_takeover").is_none());
        let client_window = value("client_max_window_bits");
        if !valid || client_window.is_none() && takeover.is_some_and(|it| it.requires_choice) {
            return None;
        }
        let mut answer = "permessage-deflate".to_owned();
        if takeover.is_none() {
            answer += "; client_no_context_takeover";
        }
        if value("server_no_context_takeover").is_some() {
            answer += "; server_no_context_takeover";
        }
        let server_bits = value("server_max_window_bits").flatten().and_then(bits);
        if server_bits.is_some() || settings.server_window_bits < 15 {
            let smaller = server_bits.unwrap_or(15).min(settings.server_window_bits);
            answer += &format!("; server_max_window_bits={smaller}");
        }
        if let (Some(takeover), Some(value)) = (takeover, client_window) {
            let smaller = value.and_then(bits).unwrap_or(15).min(takeover.window_bits);
            answer += &format!("; client_max_window_bits={smaller}");
        }
        Some(answer)
    }
}

fn settings() -> impl Strategy<Value = ExtensionSettings> {
    let takeover = (9..=15u8, any::<bool>())
        .prop_map(|(window_bits, requires_choice)| ClientTakeover { window_bits, requires_choice });
    let server_window_bits = prop_oneof![Just(15), 9..=15u8];
    (server_window_bits, proptest::option::of(takeover)).prop_map(
        |(server_window_bits, client_takeover)| ExtensionSettings {
            enabled: true,
            server_window_bits,
            client_takeover,
        },
    )
}

fn offer() -> impl Strategy<Value = Offer> {
    let name = prop_oneof![9 => Just("permessage-deflate"), 1 => Just("x-webkit-deflate-frame")];
    let parameter = prop_oneof![
        8 => Just("server_no_context_takeover"),
        8 => Just("client_no_context_takeover"),
        12 => Just("server_max_window_bits"),
        12 => Just("client_max_window_bits"),
        1 => Just("mystery"),
    ];
    let value = prop_oneof![
        10 => Just(None),
        10 => (8..=15u8).prop_map(|bits| Some(bits.to_string())),
        1 => "[0-9a-z]{1,3}".prop_map(Some),
    ];
    let form = prop_oneof![Just(("", "")), Just((" ", "")), Just(("\t", " "))];
    let parameters = vec(((parameter, value), form, any::<bool>()), 0..4);
    (name, parameters).prop_map(|(name, parameters)| {
        let mut text = name.to_owned();
        for ((parameter, value), (before, after), quoted) in &parameters {
            text += &format!("{after};{before}{parameter}");
            match value {
                Some(value) if *quoted => text += &format!("=\"{value}\""),
                Some(value) => text += &format!("={value}"),
                None => {}
            }
        }
        let parameters = parameters.into_iter().map(|(parameter, ..)| parameter).collect();
        Offer { name, parameters, text }
    })
}
