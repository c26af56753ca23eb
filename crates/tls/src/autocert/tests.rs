//! Tests of names and of the address of http-01.
//! In: texts → out: whether they are accepted, and their parts.
//! Uses the options alone. Never: a file.
//! A form of a name or an address is added here.

use super::*;

#[test]
fn names_of_hosts_are_accepted_and_others_are_not() {
    let long = format!("{}.example", "a".repeat(63));
    for name in [
        "example.org",
        "EXAMPLE.org",
        "localhost",
        "a-b.c_d.example",
        "xn--bcher-kva.example",
        &long,
    ] {
        assert!(is_host_name(name), "{name:?}");
    }
    let (label, whole) = ("a".repeat(64), "a.".repeat(127) + "aa");
    let wrong = [
        "",
        ".",
        "example.org.",
        ".example.org",
        "a..b",
        "*.example.org",
        "192.0.2.1",
        "::1",
        "[::1]",
        "example.org:443",
        "bücher.example",
        "-a.example",
        "a-.example",
        "a b.example",
        "https://example.org",
        "../account",
        &label,
        &whole,
    ];
    for name in wrong {
        assert!(!is_host_name(name), "{name:?}");
    }
}

#[test]
fn each_name_stands_once_in_lower_case() {
    let list = ["b.example", "A.example", "a.example", "B.EXAMPLE"];
    let host_whitelist = list.map(str::to_owned).to_vec();
    let options = AutocertOptions { host_whitelist, ..AutocertOptions::default() };
    assert_eq!(options.names(), ["b.example", "a.example"]);
}

#[test]
fn an_address_is_host_and_port_or_port_alone() {
    let check = |http_addr: &str, expect: Option<(&str, u16)>| {
        let options =
            AutocertOptions { http_addr: http_addr.to_owned(), ..AutocertOptions::default() };
        assert_eq!(options.http_address(), expect, "{http_addr:?}");
    };
    check(":80", Some(("", 80)));
    check("127.0.0.1:8080", Some(("127.0.0.1", 8080)));
    check("[::1]:80", Some(("::1", 80)));
    check("localhost:0", Some(("localhost", 0)));
    for wrong in ["", "80", ":", ":http", ":65536", "::1:80", "localhost"] {
        check(wrong, None);
    }
}
