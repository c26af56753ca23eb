//! Tests of `desk`: how long a body may take.
//! In: futures, and tokio's clock, which jumps to the next timer → out: answers, and when.
//! Uses no sockets.
//! Changed here: tests of `desk.rs`.

use tokio::time::Instant;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_body_may_take_half_a_minute() {
    for pause in [Duration::ZERO, BACKLOG_PAUSE, REQUEST_TIMEOUT - BACKLOG_PAUSE] {
        assert_eq!(in_time(pin!(sleep(pause))).await, Some(()));
    }
    let start = Instant::now();
    assert_eq!(in_time(pin!(std::future::pending::<()>())).await, None);
    assert_eq!(start.elapsed(), REQUEST_TIMEOUT);
}

#[test]
fn an_answer_in_words_says_that_it_is_one() {
    let answer = said(StatusCode::REQUEST_TIMEOUT, LATE);
    assert_eq!((answer.status().as_u16(), answer.body().as_ref()), (408, LATE.as_bytes()));
    assert_eq!(answer.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
}
