//! Tests of corpus files.
//! In: file contents and the corpus of this repository → out: messages and requests.
//! Uses `files` only; never a socket.
//! What subscribers must receive of them is tested in `ledger`.

use super::*;

#[test]
fn lines_are_messages_and_must_be_json() {
    let messages = lines(b"{\"a\" : 1}\n[]\n").expect("two lines");
    assert_eq!(messages, [&b"{\"a\" : 1}"[..], b"[]"]);
    assert!(lines(b"{}\n{\n").expect_err("a broken line").to_string().contains("line 2"));
    assert!(lines(b"\n").is_err());
}

#[test]
fn records_follow_their_length() {
    let messages = records(&[2, 0, 0, 0, 7, 8, 0, 0, 0, 0]).expect("two records");
    assert_eq!(messages, [&[7, 8][..], &[]]);
    for broken in [&[2, 0, 0, 0, 7][..], &[0, 0, 0], &[]] {
        assert!(records(broken).is_err(), "{broken:02x?}");
    }
}

#[test]
fn sources_take_turns_until_each_is_empty() {
    let source = |channel: &str, binary, messages: &[&[u8]]| Source {
        channel: channel.to_owned(),
        binary,
        messages: messages.iter().map(|message| message.to_vec()).collect(),
    };
    let sources = [source("a", false, &[b"1", b"2"]), source("b", true, &[b"\0"])];
    let turns: Vec<(usize, Vec<u8>)> = interleaved(&sources).collect();
    assert_eq!(turns.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 0]);
    assert!(turns[1].1.ends_with(br#"{"channel":"b","b64data":"AA=="}"#));
    assert!(turns[2].1.ends_with(br#"{"channel":"a","data":2}"#));
}

#[test]
fn the_corpus_of_this_repository_loads() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let sources = load(&dir, 10).expect("the corpus is in the repository");
    assert_eq!(sources.iter().filter(|source| source.binary).count(), 1);
    assert!(sources.len() > 3 && sources.iter().all(|source| source.messages.len() == 10));
}
