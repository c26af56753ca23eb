//! Tests of the publisher's requests and answers.
//! In: answers as HTTP servers write them → out: taken, waited for or refused.
//! Uses `publisher` only; never a socket.
//! Repeats of one answer belong here; publishing to a server is tested in `generator`.

use super::*;

#[test]
fn a_request_carries_key_length_and_body() {
    let request = String::from_utf8(publish_request("a", r#""data":{}"#, "k")).expect("text");
    assert!(request.starts_with("POST /api/publish HTTP/1.1\r\n"));
    assert!(request.contains("\r\nX-API-Key: k\r\n"));
    assert!(request.ends_with("\r\nContent-Length: 25\r\n\r\n{\"channel\":\"a\",\"data\":{}}"));
}

#[test]
fn an_answer_is_taken_when_it_is_whole() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"result\":{}}";
    for cut in 0..answer.len() {
        assert_eq!(answer_length(&answer[..cut]).expect("cut, not wrong"), None);
    }
    assert_eq!(answer_length(answer).expect("a result"), Some(answer.len()));
}

#[test]
fn errors_and_other_answers_end_the_run() {
    for answer in [
        "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"error\":{}}",
        "HTTP/1.1 200 OK\r\n\r\n",
    ] {
        assert!(answer_length(answer.as_bytes()).is_err(), "{answer}");
    }
}
