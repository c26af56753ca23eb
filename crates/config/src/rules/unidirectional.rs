//! Statuses that unidirectional streams answer refused connects with: they must exist, as must the codes.
//! In: a filled `Config` → out: a remark for each that does not.
//! Uses nothing. Never: codes of disconnects, which `fanwire_policy` checks.
//! Changed here: the range of statuses.

use super::{Config, Remark, Severity};

pub(super) fn statuses(config: &Config) -> Vec<Remark> {
    let streams = [
        ("uni_sse.connect_code_to_http_response.transforms", &config.uni_sse),
        ("uni_http_stream.connect_code_to_http_response.transforms", &config.uni_http_stream),
    ];
    let responses = streams.map(|(key, stream)| (key, &stream.connect_code_to_http_response));
    let rows = responses
        .into_iter()
        .filter(|(_, responses)| responses.enabled)
        .flat_map(|(key, responses)| responses.transforms.iter().map(move |row| (key, row)));
    let wrong = rows.filter_map(|(key, row)| {
        let (found, expected) = if row.code == 0 {
            ("code: 0".to_owned(), "codes of errors or disconnects, which are above 0")
        } else if !(200..=599).contains(&row.to.status_code) {
            (format!("to.status_code: {}", row.to.status_code), "HTTP statuses from 200 to 599")
        } else {
            return None;
        };
        Some((Severity::Error, key, format!("{key} is {found:?}, expected {expected}")))
    });
    wrong.collect()
}
