//! A pause in a long task, in which other tasks of its thread run.
//! In: nothing → out: a future that is ready at its second poll.
//! Uses wakers alone; never a timer or a runtime.
//! Changed here: nothing but the pause. How often a task pauses is decided where it works.

use std::{future::poll_fn, task::Poll};

/// Lets other tasks run.
pub(crate) async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
