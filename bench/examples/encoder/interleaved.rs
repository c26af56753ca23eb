//! Five channels of one client, interleaved at random, and what the client's window still holds of each.
//! In: corpora, of which each channel gets a part, in its order → out: a table.
//! Uses the gap coder as a server does, and stock zlib primed by hand. Never: sockets, time.
//! Change here how traffic is mixed.

use fanwire_deflate::gap::{Counter, History, SubscriptionWindow};

use crate::yardstick::{framed, primed};

/// What the client was sent of one channel.
struct Channel<'a> {
    /// Its publications, which come around.
    messages: &'a [Vec<u8>],
    sent: usize,
    history: History,
    reach: SubscriptionWindow,
    /// Where the last ones begin in all that the client was sent.
    starts: Vec<usize>,
}

#[derive(Default)]
struct Sums {
    ours: usize,
    anywhere: usize,
    within: usize,
    out_of_reach: usize,
    count: usize,
}

pub(crate) fn print(name: &str, messages: &[Vec<u8>]) {
    if messages.len() < CHANNELS {
        return;
    }
    let Sums { ours, anywhere, within, out_of_reach, count } = sums(messages);
    let [ours, anywhere, within, out_of_reach, count] =
        [ours, anywhere, within, out_of_reach, count].map(|sum| sum as f64);
    println!(
        "| {name} | {:.1} | {:.1} | {:.3} | {:.1} % | {:.1} | {:.3} |",
        ours / count,
        anywhere / count,
        ours / anywhere,
        out_of_reach / count * 100.0,
        within / count,
        ours / within,
    );
}

fn sums(messages: &[Vec<u8>]) -> Sums {
    let parts = messages.chunks(messages.len() / CHANNELS).take(CHANNELS);
    let channel = |messages| Channel {
        messages,
        sent: 0,
        history: History::new(WINDOW, PRIMED + PRIMED, 6),
        reach: SubscriptionWindow::default(),
        starts: Vec::new(),
    };
    let mut channels: Vec<_> = parts.map(channel).collect();
    let (mut counter, mut sums, mut random) = (Counter::default(), Sums::default(), 1u64);
    let mut position = 0;
    for number in 0..PUBLICATIONS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let channel = &mut channels[(random >> 33) as usize % CHANNELS];
        let is_counted = number >= PUBLICATIONS / 10;
        channel.publish(&mut counter, &mut position, is_counted.then_some(&mut sums));
    }
    sums
}

impl Channel<'_> {
    fn publish(&mut self, counter: &mut Counter, position: &mut usize, sums: Option<&mut Sums>) {
        let message = &self.messages[self.sent % self.messages.len()];
        let publication = self.history.publish(message).expect("a usual length");
        let reference = self.reach.reference(&publication, *counter, 15);
        let parse = self.history.parse(&publication, reference.depth()).expect("the newest one");
        let mut out = Vec::new();
        parse.emit(reference.gaps(), &mut out);
        if let Some(sums) = sums {
            let is_there = |start: &&usize| *position - **start <= WINDOW;
            let there = self.starts.iter().filter(is_there).count();
            sums.ours += framed(out.len());
            sums.anywhere += self.zlib(message, self.starts.len());
            sums.within += self.zlib(message, there);
            sums.out_of_reach += usize::from(there == 0);
            sums.count += 1;
        }
        self.reach.queued(&publication, counter);
        self.sent += 1;
        self.starts.push(*position);
        if self.starts.len() > PRIMED {
            self.starts.remove(0);
        }
        *position += message.len();
    }

    /// Frame bytes of stock zlib that knows so many of the publications before.
    fn zlib(&self, message: &[u8], known: usize) -> usize {
        let before =
            (self.sent - known..self.sent).map(|at| &self.messages[at % self.messages.len()][..]);
        primed(&before.collect::<Vec<_>>().concat(), message)
    }
}

const CHANNELS: usize = 5;
/// Some are sent before any is counted.
const PUBLICATIONS: usize = 4_000;
/// Publications that the yardstick knows.
const PRIMED: usize = 4;
const WINDOW: usize = 1 << 15;
