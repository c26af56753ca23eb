//! Tests of what a card rules out.
//! In: made-up files with a card → out: the lines that break it.
//! Uses the check only; never reads a file.
//! What a word rules out is a row of `nevers.rs`.

use super::*;

fn check_lines(card: &str, code: &str, lines: &[usize]) {
    let text = format!("//! A room.\n//! {card}\n//! Changed here.\n{code}");
    let found = check(&[Source::new("crates/ws/src/a.rs", &text)]);
    let found: Vec<usize> = found.iter().map(|finding| finding.line - 3).collect();
    assert_eq!(found, lines, "{card:?} {code:?}");
}

#[test]
fn an_import_that_the_card_rules_out_is_found() {
    check_lines("Uses bytes. Never: sockets.", "use bytes::Bytes;\nuse mio::Poll;\n", &[2]);
    check_lines(
        "Pure; never tokio, hyper.",
        "fn f() { tokio::spawn(g) }\nuse hyper::body;\n",
        &[1, 2],
    );
    check_lines(
        "May use `protocol`; never a clock or `ws`.",
        "let now = Instant::now();\nuse fanwire_ws::A;\n",
        &[1, 2],
    );
}

#[test]
fn what_the_card_allows_is_no_finding() {
    check_lines("Uses tokio. Never: files.", "use tokio::net::TcpStream;\n", &[]);
    check_lines("Never: sockets.", "// mio\nuse std::net::IpAddr;\nlet s = \"mio\";\n", &[]);
}

#[test]
fn a_promise_about_behaviour_says_nothing_of_imports() {
    check_lines("Uses sockets. Never: waits for sockets.", "use mio::Poll;\n", &[]);
    check_lines("Uses a lock; never: decides. Sockets stay.", "use mio::Poll;\n", &[]);
}
