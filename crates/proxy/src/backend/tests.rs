//! Tests of which headers a call carries, and which of two wins.
//! In: rules, headers of a request and of a connect command → out: the headers of a call.
//! Uses values only. Never: calls.
//! Changed here: cases of headers.

use super::*;

fn apply(rules: &HeaderRules, headers: &[(&str, &[u8])], emulated: &[(&str, &str)]) -> Vec<String> {
    let mut context = ClientContext::default();
    let value = |value: &[u8]| Bytes::copy_from_slice(value);
    context.headers = headers.iter().map(|(name, it)| ((*name).to_owned(), value(it))).collect();
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    context.emulated_headers = emulated.iter().map(owned).collect();
    let line = |(name, value): (&HeaderName, &HeaderValue)| {
        format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
    };
    rules.apply(&context).iter().map(line).collect()
}

#[test]
fn a_header_of_the_request_wins_over_an_emulated_and_a_fixed_one() {
    let fixed = BTreeMap::from([("X-A".to_owned(), "fixed".to_owned())]);
    let lists = ["x-a".to_owned(), "X-B".to_owned(), "Host".to_owned()];
    let rules = HeaderRules::new(&fixed, &lists, &lists).expect("good headers");
    assert_eq!(apply(&rules, &[], &[]), ["x-a: fixed"]);
    assert_eq!(apply(&rules, &[], &[("x-a", "emulated")]), ["x-a: emulated"]);
    let both: [(&str, &[u8]); 2] = [("x-a", b"1"), ("x-a", b"2")];
    assert_eq!(apply(&rules, &both, &[("x-a", "emulated")]), ["x-a: 1", "x-a: 2"]);
    assert_eq!(
        apply(&rules, &[("host", b"evil"), ("x-c", b"unlisted")], &[("host", "evil")]),
        ["x-a: fixed"]
    );
}

#[test]
fn a_name_in_http_headers_alone_is_not_taken_from_the_client() {
    let rules = HeaderRules::new(&BTreeMap::new(), &[], &["cookie".to_owned()]).expect("good");
    assert!(apply(&rules, &[], &[("cookie", "forged")]).is_empty());
}

#[test]
fn values_with_control_characters_are_left_out_and_others_pass_as_they_are() {
    let lists = ["x-a".to_owned()];
    let rules = HeaderRules::new(&BTreeMap::new(), &lists, &lists).expect("good");
    assert!(apply(&rules, &[], &[("x-a", "a\r\nx-admin: 1")]).is_empty());
    assert_eq!(apply(&rules, &[], &[("x-a", "ü")]), ["x-a: ü"]);
    assert_eq!(apply(&rules, &[("x-a", b"\xe4")], &[]), ["x-a: \u{fffd}"]);
    let fixed = BTreeMap::from([("x-a".to_owned(), "a\nb".to_owned())]);
    assert_eq!(HeaderRules::new(&fixed, &[], &[]).expect_err("a line feed"), "x-a");
}

#[test]
fn metadata_has_no_names_of_the_protocol_and_binary_values_in_base64() {
    let fixed = [("Grpc-Timeout", "1n"), ("key-bin", "ü"), ("x-a", "ü")];
    let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let lists = ["grpc-timeout", "grpc-encoding", "x-bin"].map(str::to_owned);
    let rules = || HeaderRules::new(&fixed, &lists, &lists).expect("good headers");
    let headers: [(&str, &[u8]); 2] = [("grpc-encoding", b"gzip"), ("x-bin", b"a\xff")];
    let emulated = [("grpc-timeout", "1n"), ("x-bin", "forged")];
    let metadata = ["key-bin: w7w", "x-a: ü", "x-bin: Yf8"];
    assert_eq!(sorted(apply(&rules().for_grpc(), &headers, &emulated)), metadata);
    let emulated_alone = apply(&rules().for_grpc(), &[], &emulated);
    assert!(emulated_alone.contains(&"x-bin: Zm9yZ2Vk".to_owned()), "{emulated_alone:?}");
    let over_http = apply(&rules(), &headers, &emulated);
    assert!(over_http.contains(&"grpc-encoding: gzip".to_owned()), "{over_http:?}");
    let of_grpc = ("x-bin".to_owned(), Bytes::from_static(b"Yf8="));
    let mut context = ClientContext::default();
    (context.transport, context.headers) = (UNI_GRPC, vec![of_grpc]);
    assert_eq!(rules().for_grpc().apply(&context)["x-bin"], "Yf8=");
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}
