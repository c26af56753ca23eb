//! Tests of the waits.
//! In: attempts that succeed late, or never → out: the value, the number of attempts, the text of the panic.
//! Uses threads and a paused clock of tokio; no test waits for more than some milliseconds.
//! Changed here: expectations of `wait.rs`.

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// The second attempt fails, the third succeeds.
fn third_time(attempts: &mut u32) -> Result<u32, &'static str> {
    *attempts += 1;
    if *attempts == 3 { Ok(*attempts) } else { Err("it is too early") }
}

#[test]
fn attempts_end_with_the_first_success() {
    let mut attempts = 0;
    assert_eq!(wait_for(|| third_time(&mut attempts), PATIENCE), 3);
    wait_for(|| true, Duration::ZERO);
}

#[tokio::test]
async fn tasks_run_between_attempts() {
    let task = tokio::spawn(async {});
    wait_for_async(async || task.is_finished(), PATIENCE).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_does_not_stop_a_wait() {
    let mut attempts = 0;
    assert_eq!(wait_for_async(async || third_time(&mut attempts), PATIENCE).await, 3);
}

#[test]
fn a_panic_names_the_caller_and_what_was_missing() {
    let line = line!() + 1;
    let waits = || wait_for(|| Err::<(), _>("two nodes"), Duration::ZERO);
    let panic = std::panic::catch_unwind(waits).expect_err("it never succeeds");
    let text = panic.downcast_ref::<String>().expect("a text");
    assert_eq!(text, &format!("{}:{line}:20: \"two nodes\" after 0ns", file!()));
}
