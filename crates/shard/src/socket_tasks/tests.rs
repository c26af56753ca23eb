//! Tests of the tasks of a shard: when they are polled, and when their sockets close.
//! In: events, wake-ups from threads → out: polls of tasks that count them, bytes at the peer.
//! Uses a poller and sockets of loopback; never a shard.
//! Changed here: expectations of `shard::socket_tasks`.

use std::{
    future::poll_fn,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream as StdStream},
    sync::mpsc::{Receiver, channel},
    task::Poll,
};

use mio::{Events, Poll as Poller};
use parking_lot::Mutex;

use super::*;

/// One task, and the messages that wake it.
struct World {
    poll: Poller,
    tasks: SocketTasks,
    wakes: Receiver<(usize, u64)>,
    peer: StdStream,
    state: Arc<Mutex<TaskState>>,
}

/// How a task behaves, and how often it was polled.
#[derive(Default)]
struct TaskState {
    polls: usize,
    echoed: usize,
    wakes_itself: bool,
    is_ended: bool,
    waker: Option<Waker>,
}

impl World {
    /// A task that echoes what it reads.
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let peer = StdStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (socket, _) = listener.accept().expect("it has come");
        crate::prepare(&socket).expect("an open socket");
        let poll = Poller::new().expect("a poller");
        let (send, wakes) = channel();
        let send = Mutex::new(send);
        let send_wake = move |slot, number| send.lock().send((slot, number)).expect("a test");
        let mut tasks = SocketTasks::new(Arc::new(send_wake));
        let state = Arc::<Mutex<TaskState>>::default();
        let mut socket = TcpStream::from_std(socket);
        poll.registry().register(&mut socket, Token(1), Interest::READABLE).expect("memory");
        let task_state = Arc::clone(&state);
        let serve = |socket| echo(socket, task_state);
        tasks.start(socket, poll.registry(), serve).expect("memory");
        Self { poll, tasks, wakes, peer, state }
    }

    /// Waits for events of the socket, and runs the task.
    fn turn(&mut self) {
        let mut events = Events::with_capacity(4);
        self.poll.poll(&mut events, None).expect("a poller");
        for event in &events {
            let slot = SocketTasks::slot(event.token()).expect("the token of a task");
            self.tasks.note(slot, event);
            self.tasks.run(slot);
        }
    }

    fn polls(&self) -> usize {
        self.state.lock().polls
    }
}

fn echo(socket: ShardSocket, state: Arc<Mutex<TaskState>>) -> SocketTask {
    Box::pin(poll_fn(move |context| {
        let mut state = state.lock();
        state.polls += 1;
        state.waker = Some(context.waker().clone());
        let mut buffer = [0; 16];
        while let Poll::Ready(count) = socket.poll_read(&mut buffer) {
            match count.expect("open") {
                0 => return Poll::Ready(()),
                count => {
                    state.echoed += count;
                    assert!(socket.poll_write(&buffer[..count]).is_ready());
                }
            }
        }
        if state.wakes_itself {
            context.waker().wake_by_ref();
        }
        if state.is_ended { Poll::Ready(()) } else { Poll::Pending }
    }))
}

#[test]
fn bytes_are_answered_and_the_end_of_the_task_closes_the_socket() {
    let mut world = World::new();
    world.peer.write_all(b"hello").expect("room in the socket");
    while world.state.lock().echoed < 5 {
        world.turn();
    }
    let mut received = [0; 5];
    world.peer.read_exact(&mut received).expect("an echo");
    assert_eq!(&received, b"hello");
    world.peer.shutdown(std::net::Shutdown::Write).expect("an open socket");
    while !world.tasks.is_empty() {
        world.turn();
    }
    assert_eq!(world.peer.read(&mut received).expect("an orderly end"), 0);
}

#[test]
fn a_thread_wakes_a_task_that_waits_with_one_message() {
    let mut world = World::new();
    let before = world.polls();
    let waker = world.state.lock().waker.clone().expect("it was polled");
    let other = std::thread::spawn(move || {
        waker.wake_by_ref();
        waker.wake();
    });
    other.join().expect("no panic");
    let (slot, number) = world.wakes.recv().expect("a message");
    assert!(world.wakes.try_recv().is_err(), "the second one finds it woken");
    world.tasks.wake(slot, number + 1);
    assert_eq!(world.polls(), before, "the number is that of another task");
    world.tasks.wake(slot, number);
    assert_eq!(world.polls(), before + 1);
}

#[test]
fn a_task_that_always_wakes_itself_has_a_share_of_each_turn() {
    let mut world = World::new();
    world.state.lock().wakes_itself = true;
    let before = world.polls();
    world.turn();
    assert_eq!(world.polls(), before + POLLS_PER_TURN);
    assert_eq!(world.tasks.postponed(), 1);
    world.tasks.run(0);
    assert_eq!(world.polls(), before + POLLS_PER_TURN, "its place in the next turn comes");
    world.state.lock().wakes_itself = false;
    world.tasks.run_postponed();
    assert_eq!(world.polls(), before + POLLS_PER_TURN + 1);
    assert_eq!(world.tasks.postponed(), 0);
    assert!(world.wakes.try_recv().is_err(), "the shard was polling it");
}

#[test]
fn a_task_that_ended_is_dropped_and_later_wake_ups_find_nothing() {
    let mut world = World::new();
    world.state.lock().is_ended = true;
    world.turn();
    assert!(world.tasks.is_empty());
    assert_eq!(Arc::strong_count(&world.state), 1);
    world.tasks.wake(0, 1);
    world.tasks.run_later(0);
    assert_eq!(world.tasks.postponed(), 0);
}
