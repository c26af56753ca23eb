//! The outgoing frames of one connection, in order; at rest they take no buffer.
//! In: whole frames, shared inside the shard → out: slices for one `writev`, and the count of bytes written.
//! Uses the standard library only; never touches a socket, never drops a frame it has begun to write.
//! Changed here: the storage of waiting frames. `connection_writer::flush` decides when they are written.

use std::{cell::OnceCell, collections::VecDeque, io::IoSlice, rc::Rc};

use smallvec::SmallVec;

/// An encoded frame. All connections of one shard share it, so its reference count needs no atomic operation.
pub type Frame = Rc<[u8]>;

/// One whole encoded frame.
pub trait WireFrame {
    fn bytes(&self) -> &[u8];
    /// A copy that queues can hold.
    fn shared(&self) -> Frame;
}

impl WireFrame for Frame {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn shared(&self) -> Frame {
        self.clone()
    }
}

/// A frame in a buffer that is used again soon. Most of them are written at once and never held by a queue.
pub struct BorrowedFrame<'a> {
    pub bytes: &'a [u8],
    /// The copy that queues share; the first queue makes it.
    pub copy: &'a OnceCell<Frame>,
}

impl WireFrame for BorrowedFrame<'_> {
    fn bytes(&self) -> &[u8] {
        self.bytes
    }

    fn shared(&self) -> Frame {
        self.copy.get_or_init(|| self.bytes.into()).clone()
    }
}

/// Waiting frames, oldest first. An empty queue holds no heap block: a single frame is stored inline, further ones in a
/// list that is taken from the shard's [`Lists`] and returned when it is empty.
#[derive(Default)]
pub(super) struct Queue {
    head: Option<Frame>,
    head_written: u32,
    bytes: u32,
    rest: Option<Box<List>>,
}

/// Frames after the first. Boxed, because millions of queues have none and a pointer is a quarter of its size.
#[derive(Default)]
pub(super) struct List {
    frames: VecDeque<Frame>,
}

/// The memory that the queues of a shard share: lists that no queue uses, kept for the next one, and the sum of their bytes.
#[derive(Default)]
pub(super) struct Lists {
    #[expect(clippy::vec_box, reason = "the boxes themselves are what is kept for the next queue")]
    unused: Vec<Box<List>>,
    queued_bytes: u64,
}

/// Largest number of slices in one `writev`; more than this in one call gains nothing (IOV_MAX is 1024).
const SLICES_MAX: usize = 64;

impl Queue {
    /// Unwritten bytes, encrypted ones included.
    pub(super) fn bytes(&self) -> usize {
        self.bytes as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether a frame of `frame_bytes` fits within `limit` bytes. An empty queue takes any frame, and a first frame
    /// that is larger than the limit does not count: the limit is for frames behind it.
    pub(super) fn takes(&self, frame_bytes: usize, limit: usize) -> bool {
        let Some(head) = &self.head else { return true };
        let is_oversized = head.len() > limit;
        let exempt = if is_oversized { head.len() - self.head_written as usize } else { 0 };
        self.bytes() - exempt + frame_bytes <= limit
    }

    /// Appends a frame. The caller has checked the limit; frames are at most 4 GiB in sum.
    pub(super) fn push(&mut self, frame: Frame, lists: &mut Lists) {
        self.bytes += u32::try_from(frame.len()).expect("a frame is far below 4 GiB");
        lists.queued_bytes += frame.len() as u64;
        if self.head.is_none() {
            self.head = Some(frame);
        } else {
            self.rest.get_or_insert_with(|| lists.take()).frames.push_back(frame);
        }
    }

    /// The unwritten bytes as slices, at most [`SLICES_MAX`].
    pub(super) fn slices(&self) -> SmallVec<[IoSlice<'_>; 8]> {
        let mut slices = SmallVec::new();
        if let Some(head) = &self.head {
            slices.push(IoSlice::new(&head[self.head_written as usize..]));
            let rest = self.rest.iter().flat_map(|rest| rest.frames.iter());
            slices.extend(rest.take(SLICES_MAX - 1).map(|frame| IoSlice::new(frame)));
        }
        slices
    }

    /// The frames, if nothing of the first one is written yet.
    pub(super) fn whole_frames(&self) -> Option<impl Iterator<Item = &Frame> + Clone> {
        let rest = self.rest.iter().flat_map(|rest| rest.frames.iter());
        (self.head_written == 0).then(|| self.head.iter().chain(rest))
    }

    /// The rest of the frame that was begun to be written.
    pub(super) fn begun(&self) -> &[u8] {
        let head = self.head.as_ref().filter(|_| self.head_written > 0);
        head.map_or(&[], |head| &head[self.head_written as usize..])
    }

    /// The frames of which nothing is written.
    pub(super) fn unbegun(&self) -> impl Iterator<Item = &Frame> {
        let rest = self.rest.iter().flat_map(|rest| rest.frames.iter());
        self.head.iter().filter(|_| self.head_written == 0).chain(rest)
    }

    /// Appends the rest of a frame that another program began to write, to an empty queue.
    pub(super) fn push_begun(&mut self, rest: &[u8], lists: &mut Lists) {
        // A first byte in the place of those that are written, so that the frame is never dropped.
        self.push([&[0], rest].concat().into(), lists);
        self.advance(1, lists);
    }

    /// The one unwritten slice if there is exactly one, which a plain `send` can write.
    pub(super) fn single(&self) -> Option<&[u8]> {
        match (&self.head, &self.rest) {
            (Some(head), None) => Some(&head[self.head_written as usize..]),
            _ => None,
        }
    }

    /// Removes `count` written bytes; frames written completely are released.
    pub(super) fn advance(&mut self, mut count: usize, lists: &mut Lists) {
        self.bytes -= u32::try_from(count).expect("no more than was queued");
        lists.queued_bytes -= count as u64;
        if self.bytes == 0 && self.rest.is_none() {
            self.head = None;
            self.head_written = 0;
            return;
        }
        while let Some(head) = &self.head {
            let left = head.len() - self.head_written as usize;
            if count < left {
                self.head_written += u32::try_from(count).expect("within one frame");
                return;
            }
            count -= left;
            self.head_written = 0;
            self.head = self.rest.as_mut().and_then(|rest| rest.frames.pop_front());
            self.give_back_drained(lists);
        }
    }

    /// Counts encrypted bytes that wait in the connection's TLS session, ahead of the frames.
    pub(super) fn add_encrypted(&mut self, count: usize, lists: &mut Lists) {
        self.bytes += u32::try_from(count).expect("a few records");
        lists.queued_bytes += count as u64;
    }

    /// Removes encrypted bytes that are written.
    pub(super) fn remove_encrypted(&mut self, count: usize, lists: &mut Lists) {
        self.bytes -= u32::try_from(count).expect("no more than was added");
        lists.queued_bytes -= count as u64;
    }

    /// Drops every frame of which nothing has been written, for a connection that ends as slow. Its `encrypted` bytes
    /// still have to be written.
    pub(super) fn drop_unwritten(&mut self, encrypted: usize, lists: &mut Lists) {
        if self.head_written == 0 {
            self.head = None;
        }
        if let Some(mut rest) = self.rest.take() {
            rest.frames.clear();
            lists.give_back(rest);
        }
        let of_head = self.head.as_ref().map_or(0, |head| head.len() - self.head_written as usize);
        let left = encrypted + of_head;
        lists.queued_bytes -= (self.bytes() - left) as u64;
        self.bytes = u32::try_from(left).expect("within one frame and a few records");
    }

    /// Takes the bytes of a connection that is removed out of the sum.
    pub(super) fn forget(&self, lists: &mut Lists) {
        lists.queued_bytes -= self.bytes() as u64;
    }

    fn give_back_drained(&mut self, lists: &mut Lists) {
        if self.rest.as_ref().is_some_and(|rest| rest.frames.is_empty()) {
            lists.give_back(self.rest.take().expect("just seen"));
        }
    }
}

impl Lists {
    /// Unwritten bytes of all queues.
    pub(super) fn queued_bytes(&self) -> u64 {
        self.queued_bytes
    }

    fn take(&mut self) -> Box<List> {
        self.unused.pop().unwrap_or_default()
    }

    fn give_back(&mut self, list: Box<List>) {
        if self.unused.len() < LISTS_KEPT && list.frames.capacity() <= LIST_CAPACITY_KEPT {
            self.unused.push(list);
        }
    }
}

/// A turn that writes several frames to more connections than this allocates lists again; 1024 lists are about half a
/// megabyte.
const LISTS_KEPT: usize = 1024;
const LIST_CAPACITY_KEPT: usize = 64;

#[cfg(test)]
mod tests;
