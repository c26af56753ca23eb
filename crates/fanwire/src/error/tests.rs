//! Tests of the errors of a running server.
//! In: reports of parts → out: the error that a program waits for, or none.
//! Uses the channel of the reports. Never: a server.
//! Changed here: tests of `error.rs`.

use std::time::Duration;

use tokio::time::timeout;

use super::*;

#[tokio::test(start_paused = true)]
async fn without_a_report_there_is_no_error_also_when_the_consumers_are_gone() {
    let (report, failure) = watch::channel(None);
    let minute = Duration::from_secs(60);
    assert!(timeout(minute, reported(failure.clone())).await.is_err());
    drop(report);
    assert!(timeout(minute, reported(failure)).await.is_err());
}
