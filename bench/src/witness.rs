//! Subscribers that stay while the server does other work, and the latencies of their publications.
//! In: a server, how many → out: latencies in a quiet time, and from then on until the caller has ended its work.
//! Uses the load generator, with planned times. Never: anything else of the server.
//! Changed here: how often they receive, and how long the quiet time is.

use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::fanout::made_up_payloads;
use crate::fanout::schedule::Ledger;
use crate::stats::percentile;
use crate::target::API_KEY;
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::{Publisher, publish_request};
use fanwire_load::generator::{Generator, Profile, StallTimer};

/// Subscribers that stay, and their publications at planned times.
pub(crate) struct Witness {
    generator: Generator,
    publisher: Publisher,
    ledger: Ledger,
    request: Vec<u8>,
    next: Instant,
}

impl Witness {
    /// Subscribers of a channel of their own.
    pub(crate) fn open(server: SocketAddr, subscribers: usize) -> Result<Self> {
        let mut generator = Generator::new(false)?;
        generator.set_opening_max(OPENED_AT_ONCE);
        let channels = vec![CHANNEL.to_owned()];
        let profile =
            Profile { plain: false, encoding: Encoding::Json, compression: false, channels };
        generator.open(server, subscribers, &profile)?;
        let field = format!("\"data\":{}", made_up_payloads(200)[0]);
        Ok(Self {
            publisher: Publisher::http(server, 4, generator.registry())?,
            generator,
            ledger: Ledger::new(vec![vec![0]; subscribers]),
            request: publish_request(CHANNEL, &field, API_KEY),
            next: Instant::now(),
        })
    }

    /// Returns the result of `work`, which begins after a quiet time, and the latencies in that time and during `work`.
    pub(crate) fn during<T>(self, work: impl FnOnce() -> Result<T>) -> Result<(T, [Vec<f64>; 2])> {
        let has_ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let (quiet_over, work_begins) = channel();
            // A thread of its own, which the system runs between the steps of this one.
            let watching = scope.spawn(|| self.watch(quiet_over, &has_ended));
            let done = work_begins.recv().map_err(Into::into).and_then(|()| work());
            has_ended.store(true, Relaxed);
            let latencies = watching.join().expect("the thread of the witness does not panic")?;
            Ok((done?, latencies))
        })
    }

    /// The latencies in a quiet time, whose end it reports, and from then on until `has_ended`.
    fn watch(mut self, quiet_over: Sender<()>, has_ended: &AtomicBool) -> Result<[Vec<f64>; 2]> {
        let until = Instant::now() + QUIET;
        self.next = Instant::now();
        while Instant::now() < until {
            self.turn()?;
        }
        let before = std::mem::take(&mut self.ledger.latencies_ms);
        quiet_over.send(())?;
        while !has_ended.load(Relaxed) {
            self.turn()?;
        }
        let mut progress = StallTimer::default();
        while !self.ledger.open.is_empty() {
            self.generator.turn(Some(PERIOD), &mut self.ledger)?;
            progress.check(self.ledger.deliveries, || self.ledger.missing())?;
        }
        Ok([before, self.ledger.latencies_ms])
    }

    /// Publishes what is due and takes what arrives before the next publication.
    fn turn(&mut self) -> Result<()> {
        if Instant::now() >= self.next && self.publisher.has_free_lane() {
            self.ledger.published(0, self.next);
            self.publisher.publish(&self.request).context("publishing to the witness")?;
            self.next += PERIOD;
        }
        let left = self.next.saturating_duration_since(Instant::now());
        if self.generator.turn(Some(left.min(PERIOD)), &mut self.ledger)? {
            self.publisher.receive()?;
        }
        Ok(())
    }
}

/// Prints a part of the latencies of [`Witness::during`].
pub(crate) fn print_latencies(name: &str, latencies: &[f64]) {
    let [p50, p99] = [0.5, 0.99].map(|share| percentile(latencies, share));
    println!("{name}: p50 {p50:.2} ms, p99 {p99:.2} ms of {} deliveries", latencies.len());
}

const CHANNEL: &str = "witness";
/// A backend that is asked about each connect may be slow.
const OPENED_AT_ONCE: usize = 10;
/// Between two publications.
const PERIOD: Duration = Duration::from_millis(20);
/// Measured before the caller begins its work.
const QUIET: Duration = Duration::from_secs(6);
