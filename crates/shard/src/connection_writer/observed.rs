//! Frames whose way into the kernel somebody observes, for receipts of publications.
//! In: a connection whose newest queued frame is observed, bytes written → out: calls of the observer.
//! Uses: queued bytes of connections. Never: frames, sockets. Costs nothing while nothing is observed.
//! Changed here: when an observed frame counts as taken. What is counted is in `fanout`.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Instant;

use super::ConnectionWriter;

/// Gets to know what became of a frame; called once for each connection.
pub trait FrameObserver {
    /// The kernel has the whole frame: in the turn in which it was queued, or later.
    fn taken(&self, at: Instant, is_same_turn: bool);
    /// The connection ended before that.
    fn lost(&self);
}

/// The connections with observed frames in their queues, by index.
#[derive(Default)]
pub(super) struct ObservedFrames {
    connections: HashMap<u32, ObservedQueue>,
}

#[derive(Default)]
struct ObservedQueue {
    /// Bytes written since the first observed frame was queued.
    written: u64,
    frames: VecDeque<ObservedFrame>,
}

struct ObservedFrame {
    /// The count of written bytes at which the kernel has all of it.
    end: u64,
    /// The turn in which it was queued; 0 for one that waited before that.
    turn: u64,
    observer: Rc<dyn FrameObserver>,
}

/// Observes the frame that was queued last for the connection at `index`, or written already. A frame that
/// `has_waited` counts as taken later.
pub fn observe_frame(
    out: &mut ConnectionWriter,
    index: u32,
    has_waited: bool,
    observer: &Rc<dyn FrameObserver>,
) {
    let Some(connection) = out.connections.get(index as usize) else { return observer.lost() };
    match connection.queue.bytes() as u64 {
        _ if connection.phase != super::Phase::Open => observer.lost(),
        0 => observer.taken(Instant::now(), !has_waited),
        queued_bytes => {
            let turn = if has_waited { 0 } else { out.counters.turns.value() };
            let queue = out.observed.connections.entry(index).or_default();
            let end = queue.written + queued_bytes;
            let observer = Rc::clone(observer);
            queue.frames.push_back(ObservedFrame { end, turn, observer });
        }
    }
}

impl ObservedFrames {
    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// The kernel took `bytes` of the queue of a connection, in this turn; `left` are still queued.
    pub(super) fn written(&mut self, index: u32, bytes: usize, left: usize, turn: u64) {
        let Some(queue) = self.connections.get_mut(&index) else { return };
        queue.written += bytes as u64;
        let now = Instant::now();
        while let Some(frame) = queue.frames.pop_front_if(|it| left == 0 || it.end <= queue.written)
        {
            frame.observer.taken(now, frame.turn == turn);
        }
        if queue.frames.is_empty() {
            self.connections.remove(&index);
        }
    }

    /// A connection ended.
    pub(super) fn end(&mut self, index: u32) {
        let queue = self.connections.remove(&index);
        queue.into_iter().flat_map(|queue| queue.frames).for_each(|frame| frame.observer.lost());
    }
}
