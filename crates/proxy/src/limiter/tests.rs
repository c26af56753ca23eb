//! Tests of the limit on calls: the order of waiting ones, refusals, callers that give up.
//! In: callers on a clock that jumps → out: permits and refusals.
//! Uses tokio's test clock. Never: real time.
//! Changed here: cases of limits.

use std::time::Duration;

use super::*;

/// Lets time pass on the test clock.
async fn passes(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

fn in_a_second() -> Instant {
    Instant::now() + Duration::from_secs(1)
}

#[tokio::test(start_paused = true)]
async fn the_newest_waiting_call_goes_first_and_the_oldest_is_refused() {
    let limiter = Limiter::new(1, 2);
    let first = limiter.acquire(in_a_second()).await.expect("there is no other call");
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for name in ["a", "b", "c"] {
        let (limiter, order) = (Arc::clone(&limiter), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            let acquired = limiter.acquire(in_a_second()).await;
            order.lock().push((name, acquired.as_ref().err().copied()));
            passes(Duration::from_millis(1)).await;
        }));
        passes(Duration::from_millis(1)).await;
    }
    assert_eq!(*order.lock(), [("a", Some(LimitExceeded::QueueFull))]);
    assert_eq!(limiter.load(), (1, 2));
    drop(first);
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(order.lock()[1..], [("c", None), ("b", None)]);
    assert_eq!(limiter.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_too_long_is_refused_and_leaves_nothing() {
    let limiter = Limiter::new(1, 10);
    let first = limiter.acquire(in_a_second()).await.expect("there is no other call");
    let second = limiter.acquire(in_a_second()).await;
    assert_eq!(second.err(), Some(LimitExceeded::WaitedTooLong));
    assert_eq!(limiter.load(), (1, 0));
    drop(first);
    assert_eq!(limiter.load(), (0, 0));
    drop(limiter.acquire(in_a_second()).await.expect("the first call ended"));
}

#[tokio::test(start_paused = true)]
async fn without_a_queue_further_calls_are_refused_at_once() {
    let limiter = Limiter::new(1, 0);
    let _first = limiter.acquire(in_a_second()).await.expect("there is no other call");
    let second = limiter.acquire(in_a_second()).await;
    assert_eq!(second.err(), Some(LimitExceeded::QueueFull));
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_than_the_limit_whoever_gives_up() {
    let limiter = Limiter::new(3, 50);
    let most = Arc::new(Mutex::new((0_usize, 0_usize)));
    let mut tasks = Vec::new();
    for number in 0..500_u64 {
        let (limiter, most) = (Arc::clone(&limiter), Arc::clone(&most));
        let call = async move {
            let deadline = Instant::now() + Duration::from_millis(number % 40);
            let Ok(_permit) = limiter.acquire(deadline).await else { return };
            {
                let mut counts = most.lock();
                counts.0 += 1;
                counts.1 = counts.1.max(counts.0);
            }
            passes(Duration::from_millis(number % 7)).await;
            most.lock().0 -= 1;
        };
        let task = tokio::spawn(call);
        if number % 5 == 0 {
            passes(Duration::from_millis(number % 3)).await;
        }
        tasks.push(task);
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(most.lock().1, 3);
    assert_eq!(limiter.load(), (0, 0));
}
