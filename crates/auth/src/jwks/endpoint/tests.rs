//! Tests of addresses of documents: variables, closed sets of values, and steps that lead elsewhere.
//! In: templates, patterns, values → out: addresses, or what would be right.
//! May use: nothing else.
//! Which claims fill variables is tested in `jwks/tests.rs`.

use super::*;

fn url(template: &str, value: &str) -> Option<String> {
    Endpoint::parse(template).expect("a template").url(|_| Some(value.to_owned()))
}

#[test]
fn variables_are_filled_in() {
    let check = |template, value, expect: Option<&str>| {
        assert_eq!(url(template, value).as_deref(), expect, "{template} {value}");
    };
    check("https://id.example.com/keys", "", Some("https://id.example.com/keys"));
    check("http://[::1]:8080/{{a}}/k", "x", Some("http://[::1]:8080/x/k"));
    check(
        "https://{{a}}.example.com/{{ a }}?t={{a}}",
        "x-1",
        Some("https://x-1.example.com/x-1?t=x-1"),
    );
    check("https://id.example.com/{{a}}", "..", None);
    check("https://id.example.com/{{a}}/k", ".", None);
    check("https://id.example.com/.{{a}}/k", ".", None);
    check("https://id.example.com/{{a}}...", "x", Some("https://id.example.com/x..."));
    for value in ["", "a/b", "a%2fb", "a?b", "a#b", "a@b", "a:b", "a\\b", "a b", "ä", "a\n"] {
        check("https://id.example.com/{{a}}", value, None);
    }
}

#[test]
fn what_is_no_address_is_refused() {
    for text in
        ["keys", "ftp://a/k", "https://", "https:///k", "https://a b/k", "https://u:p@a/k", "//a"]
    {
        let expected = Endpoint::parse(text).expect_err("no address");
        assert_eq!(expected, "an address such as https://id.example.com/keys", "{text}");
    }
    assert_eq!(Endpoint::parse("https://a/../k").map(drop).map_err(|text| text.len()), Err(46));
    assert_eq!(Endpoint::parse("https://a/{{b").map(drop), Err("every {{ closed by }}".to_owned()));
}

#[test]
fn a_variable_is_a_group_that_lists_its_values() {
    let check = |pattern: &str, expect: &str| {
        let endpoint = Endpoint::parse("https://a/{{t}}").expect("a template");
        for patterns in [[pattern, ""], ["", pattern]] {
            let checked = endpoint.check(patterns, true).err().unwrap_or_default();
            assert!(
                checked.contains(expect) && checked.is_empty() == expect.is_empty(),
                "{pattern}: {checked}"
            );
            let is_named = pattern.contains("<t>");
            assert_eq!(endpoint.check(patterns, false).is_ok(), is_named, "{pattern}");
        }
    };
    check("^https://a/(?P<t>one|two)$", "");
    check("^https://a/(?<t>one)$", "");
    check(r"(x(?P<t>(?:a|b\.c)-1))?", "");
    check("a|(?P<t>b)", "");
    let open = [
        "(?P<t>.+)",
        "(?P<t>[ab])",
        "(?P<t>a*)",
        "(?P<t>)",
        "(?P<t>a|)",
        "(?P<t>a/b)",
        r"(?P<t>\w)",
        "(?P<t>a|^)",
    ];
    for pattern in open {
        check(pattern, "the group t to list the values");
    }
    check("(?P<u>one)", "each variable to be a named group");
    check("", "each variable to be a named group");
}

#[test]
fn a_group_of_both_patterns_has_to_be_listed_in_both() {
    let endpoint = Endpoint::parse("https://a/{{t}}").expect("a template");
    assert!(endpoint.check(["(?P<t>one)", "(?P<t>.+)"], true).is_err());
    assert!(endpoint.check(["(?P<t>one)", "(?P<t>two)"], true).is_ok());
}
