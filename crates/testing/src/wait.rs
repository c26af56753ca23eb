//! Waits of tests: for a condition, with a time limit.
//! In: something to try again and again → out: its value, or a panic that names the caller and what was missing.
//! May use clocks, threads and tokio; never waits without a limit.
//! Changed here: the pause between two attempts. How patient a test is, it says itself.

use std::fmt::Debug;
use std::panic::Location;
use std::thread;
use std::time::{Duration, Instant};

/// The result of looking once: a `bool`, or a `Result` whose error says what is missing.
pub trait Attempt {
    /// The value of a successful attempt.
    type Value;
    /// The part of the last attempt that a panic shows.
    type Missing: Debug;

    /// The value, or what is missing.
    ///
    /// # Errors
    /// When another attempt is needed.
    fn outcome(self) -> Result<Self::Value, Self::Missing>;
}

impl Attempt for bool {
    type Value = ();
    type Missing = &'static str;

    fn outcome(self) -> Result<(), &'static str> {
        if self { Ok(()) } else { Err("the condition is false") }
    }
}

impl<T, E: Debug> Attempt for Result<T, E> {
    type Value = T;
    type Missing = E;

    fn outcome(self) -> Self {
        self
    }
}

/// Tries until an attempt succeeds, and returns its value.
///
/// # Panics
/// When `patience` has passed.
#[track_caller]
pub fn wait_for<A: Attempt>(mut attempt: impl FnMut() -> A, patience: Duration) -> A::Value {
    let wait = Wait::new(patience);
    loop {
        match attempt().outcome() {
            Ok(value) => return value,
            Err(missing) => wait.check(&missing),
        }
        thread::sleep(BETWEEN_ATTEMPTS);
    }
}

/// Waits as [`wait_for`] does, and lets other tasks run between the attempts.
///
/// Patience is real time, also where tokio's clock is paused.
///
/// # Panics
/// When `patience` has passed.
#[track_caller]
pub fn wait_for_async<A: Attempt>(
    mut attempt: impl AsyncFnMut() -> A,
    patience: Duration,
) -> impl Future<Output = A::Value> {
    let wait = Wait::new(patience);
    async move {
        loop {
            match attempt().await.outcome() {
                Ok(value) => return value,
                Err(missing) => wait.check(&missing),
            }
            tokio::time::sleep(BETWEEN_ATTEMPTS).await;
        }
    }
}

/// Lets time pass, for a test that sends at a rate or injects faults. A test that waits for something uses [`wait_for`].
pub fn pause(duration: Duration) {
    thread::sleep(duration);
}

/// Lets other threads run in between, so that a race is seen more often. No result of a test depends on it.
pub fn yield_to_others() {
    thread::yield_now();
}

/// One wait: who waits, since when and how long.
struct Wait {
    caller: &'static Location<'static>,
    began: Instant,
    patience: Duration,
}

impl Wait {
    #[track_caller]
    fn new(patience: Duration) -> Self {
        Self { caller: Location::caller(), began: Instant::now(), patience }
    }

    fn check(&self, missing: &impl Debug) {
        let Self { caller, patience, .. } = self;
        let is_in_time = self.began.elapsed() < self.patience;
        assert!(is_in_time, "{caller}: {missing:?} after {patience:?}");
    }
}

/// Leaves the processors to what is waited for.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
