//! Scenario `churn`: clients that reconnect at random while publications flow, each checked for every one of them.
//! In: clients, channels, seconds, rate → out: what was recovered, how long returns took; not passed when anything is wrong.
//! Uses `target` for the server and `stream` for the checking; the clients live in `client`.
//! Changed here: when clients come and go, and what is reported; what one of them does lives in `client`.

use anyhow::{Context, Result};
use clap::Args;
use mio::{Events, Interest, Poll, Token};
use std::cmp::Ordering::Greater;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use crate::setup::Setup;
use crate::stats::{grouped, judge, median, percentile};
use crate::target::{API_KEY, Target, history};
use client::{Attempt, Client, Stage, Tally};
use fanwire_load::generator::publisher::{Publisher, publish_request};
use fanwire_load::generator::{PUBLISHER_TOKEN, StallTimer, connect};
use fanwire_load::machine;
use fanwire_load::random::Random;
use share::Deliveries;

pub mod client;
pub mod messages;
pub mod share;
pub mod stream;

/// Clients that come and go while publications flow: nothing may be lost, duplicated or reordered.
#[derive(Args, Clone)]
pub struct Churn {
    #[arg(long, default_value_t = 1_000)]
    clients: usize,
    /// Channels; publications go to them in turn.
    #[arg(long, default_value_t = 10)]
    channels: usize,
    /// Channels of each client.
    #[arg(long, default_value_t = 2)]
    each: usize,
    /// One to five channels for each client instead, by Zipf's law: half of the clients have the first one, few the last.
    #[arg(long, conflicts_with = "each")]
    zipf: bool,
    /// Bytes of each publication's data, at least; beyond its number it is readings that change slowly.
    #[arg(long, default_value_t = 0)]
    bytes: usize,
    /// Fail when a smaller share of the deliveries, recovered ones aside, goes out in context.
    #[arg(long, requires = "compression")]
    bar: Option<f64>,
    /// Publications per second.
    #[arg(long, default_value_t = 200.0)]
    rate: f64,
    /// Seconds of coming and going; after them every client returns and waits for the rest.
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,
    /// Mean seconds that a client stays.
    #[arg(long, default_value_t = 3.0)]
    stay: f64,
    /// Mean seconds that it is away.
    #[arg(long, default_value_t = 0.5)]
    away: f64,
    /// Clients negotiate permessage-deflate.
    #[arg(long)]
    compression: bool,
    /// Publications that the server keeps of each channel; too few, and clients cannot recover.
    #[arg(long, default_value_t = 1_000)]
    history: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Give the server all cores, with a shard on each, and do not pin the clients either.
    #[arg(long)]
    all_cores: bool,
    #[command(flatten)]
    setup: Setup,
}

impl Churn {
    /// True when no client missed anything or got anything it should not.
    ///
    /// # Errors
    /// A server that does not start, or sends what no right server sends.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        let binary = self.setup.binary()?;
        let server_core = (!self.all_cores).then_some(self.setup.server_core);
        if server_core.is_some() {
            self.setup.pin_generator()?;
        }
        let target = Target::fanwire(&binary, server_core, history(self.history))?;
        let each = if self.zipf { "1 to 5".to_owned() } else { self.each.to_string() };
        println!(
            "churn: {} clients of {each} of {} channels, {} publications/s for {} s, compression {}, seed {}",
            grouped(self.clients as f64),
            self.channels,
            self.rate,
            self.seconds,
            if self.compression { "on" } else { "off" },
            self.seed,
        );
        let run = Run::new(&self, &target)
            .and_then(|mut run| run.play().map(|share| (run.tally, run.tops, share)));
        let (tally, tops, share) =
            run.with_context(|| format!("server log:\n{}", target.log_tail()))?;
        report(&tally, tops.iter().sum());
        Ok(tally.faults.is_none() & self.judge(share))
    }

    /// Prints the share in context where there is compression; true unless the bar is missed.
    fn judge(&self, share: f64) -> bool {
        let (passed, verdict) = judge(share, Greater, self.bar);
        if self.compression {
            println!("share of the live deliveries in context: {:.2} %{verdict}", share * 100.0);
        }
        passed
    }
}

struct Run<'a> {
    options: &'a Churn,
    target: &'a Target,
    poll: Poll,
    clients: Vec<Client>,
    /// One for each channel, with one publication at a time, so that number `n` of a channel gets offset `n`.
    publishers: Vec<Publisher>,
    /// Publications of each channel that were sent.
    published: Vec<u64>,
    /// Publications of each channel that the server has answered.
    tops: Vec<u64>,
    tally: Tally,
    random: Random,
    source: u8,
    buffer: Vec<u8>,
}

impl<'a> Run<'a> {
    fn new(options: &'a Churn, target: &'a Target) -> Result<Self> {
        let poll = Poll::new()?;
        let now = Instant::now();
        let mut random = Random(options.seed);
        let mut channels_of = |number: usize| -> Vec<usize> {
            if options.zipf {
                return share::zipf(&mut random, options.channels);
            }
            let each = options.each.min(options.channels);
            (0..each).map(|place| (number + place) % options.channels).collect()
        };
        let publisher = |of| Publisher::http_from(of, target.address(), 1, poll.registry());
        let client = |number| {
            let channels = channels_of(number).into_iter();
            Client::new(channels.map(|of| (of, channel(of))), now)
        };
        Ok(Self {
            clients: (0..options.clients).map(client).collect(),
            publishers: (0..options.channels).map(publisher).collect::<Result<_>>()?,
            published: vec![0; options.channels],
            tops: vec![0; options.channels],
            tally: Tally::default(),
            random: Random(options.seed),
            source: 1,
            buffer: vec![0; 64 * 1024],
            poll,
            options,
            target,
        })
    }

    /// Returns which share of the deliveries went out in context after the first third of the time, in which the
    /// channels begin: no client has a publication to refer to there.
    fn play(&mut self) -> Result<f64> {
        let mut events = Events::with_capacity(1024);
        self.arrive(&mut events)?;
        let started = Instant::now();
        let end = started + Duration::from_secs_f64(self.options.seconds);
        for client in 0..self.clients.len() {
            self.clients[client].due = started + self.around(self.options.stay);
        }
        let mut before = None;
        while Instant::now() < end {
            self.turn(&mut events)?;
            self.publish(started)?;
            self.come_and_go()?;
            if before.is_none() && started.elapsed().as_secs_f64() * 3.0 > self.options.seconds {
                before = Some(Deliveries::ask(self.target.address())?);
            }
        }
        self.settle(&mut events)?;
        for client in &mut self.clients {
            for of in &mut client.subscriptions {
                of.stream.finish(self.tops[of.channel], &mut self.tally.faults);
            }
        }
        let after = Deliveries::ask(self.target.address())?;
        Ok(after.share_since(before.unwrap_or_default()))
    }

    /// Opens all clients, a hundred at a time, and waits until they are there.
    fn arrive(&mut self, events: &mut Events) -> Result<()> {
        for start in (0..self.clients.len()).step_by(ARRIVING_MAX) {
            let end = self.clients.len().min(start + ARRIVING_MAX);
            for client in start..end {
                self.open(client, None)?;
            }
            let mut progress = StallTimer::default();
            while !self.clients[start..end].iter().all(Client::is_live) {
                self.turn(events)?;
                progress
                    .check(self.tally.messages, || format!("clients {start} to {end} arrive"))?;
            }
        }
        Ok(())
    }

    /// Brings every client back until each has everything, or what is missing does not come any more.
    fn settle(&mut self, events: &mut Events) -> Result<()> {
        let mut progress = StallTimer::default();
        let end = Instant::now() + SETTLING_MAX;
        let has_all = |run: &Self| run.clients.iter().all(|client| client.has_all(&run.tops));
        while self.published != self.tops || !has_all(self) {
            self.turn(events)?;
            for client in 0..self.clients.len() {
                if self.clients[client].is_away() {
                    self.open(client, None)?;
                }
            }
            if progress.check(self.tally.messages, String::new).is_err() || Instant::now() > end {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits a moment for events and handles them.
    fn turn(&mut self, events: &mut Events) -> Result<()> {
        match self.poll.poll(events, Some(Duration::from_millis(1))) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            polled => polled?,
        }
        for event in events.iter() {
            let Token(number) = event.token();
            if number >= PUBLISHER_TOKEN {
                self.answered(number - PUBLISHER_TOKEN)?;
                continue;
            }
            let read = self.clients[number].read(&mut self.buffer, &mut self.tally);
            read.with_context(|| format!("client {number}"))?;
        }
        Ok(())
    }

    fn answered(&mut self, channel: usize) -> Result<()> {
        self.publishers[channel].receive()?;
        if self.publishers[channel].is_idle() {
            self.tops[channel] = self.published[channel];
        }
        Ok(())
    }

    /// Publishes what is due, to the channels in turn; a channel whose last publication has no answer yet waits.
    fn publish(&mut self, started: Instant) -> Result<()> {
        let due = (started.elapsed().as_secs_f64() * self.options.rate) as u64;
        let channels = self.published.len() as u64;
        for number in 0..self.published.len() {
            let own = (due + channels - 1 - number as u64) / channels;
            if self.published[number] < own && self.publishers[number].is_idle() {
                self.published[number] += 1;
                let data = share::data(number, self.published[number], self.options.bytes);
                let request =
                    publish_request(&channel(number), &format!("\"data\":{data}"), API_KEY);
                self.publishers[number].publish(&request)?;
            }
        }
        Ok(())
    }

    /// Lets every client whose time it is come or go.
    fn come_and_go(&mut self) -> Result<()> {
        let now = Instant::now();
        for number in 0..self.clients.len() {
            if self.clients[number].due <= now {
                let mean = self.come_or_go(number)?;
                self.clients[number].due = now + self.around(mean);
            }
        }
        Ok(())
    }

    /// Ends the client's connection or opens one; returns for how many seconds, on average, it is left alone then.
    fn come_or_go(&mut self, number: usize) -> Result<f64> {
        let ends_hard = self.random.below(2) == 0;
        let client = &mut self.clients[number];
        if client.is_live() && ends_hard {
            client.reset(&mut self.tally);
        } else if client.is_live() {
            client.close(&mut self.tally)?;
        } else if client.is_away() {
            let break_off = self.break_off();
            self.open(number, break_off)?;
            return Ok(if break_off.is_none() { self.options.stay } else { self.options.away });
        }
        Ok(self.options.away)
    }

    /// Every fourth attempt to connect is broken off, at one of the stages.
    fn break_off(&mut self) -> Option<Stage> {
        match self.random.below(12) {
            0 => Some(Stage::Request),
            1 => Some(Stage::Upgrade),
            2 => Some(Stage::Commands),
            _ => None,
        }
    }

    fn open(&mut self, number: usize, break_off: Option<Stage>) -> Result<()> {
        let since = Instant::now();
        let stream = connect(&mut self.source, self.target.address())?;
        let compression = self.options.compression;
        let attempt = Attempt { stream, since, compression, break_off };
        let client = &mut self.clients[number];
        client.open(attempt, &self.tops, &mut self.tally)?;
        if let Some(socket) = client.socket() {
            self.poll.registry().register(socket, Token(number), Interest::READABLE)?;
        }
        Ok(())
    }

    /// A time between nothing and twice the mean.
    fn around(&mut self, mean_seconds: f64) -> Duration {
        let share = self.random.below(2_000) as f64 / 1_000.0;
        Duration::from_secs_f64(mean_seconds * share)
    }
}

fn report(tally: &Tally, published: u64) {
    let rows = [
        ("publications", published),
        ("publications received live", tally.publications),
        ("publications recovered", tally.caught_up),
        ("returns", tally.returns),
        ("  after a TCP reset", tally.resets),
        ("  after a clean close", tally.closes),
        ("  broken off while connecting", tally.broken_off),
        ("recovered subscriptions", tally.recoveries),
        ("unrecovered subscriptions", tally.faults.unrecovered),
    ];
    for (what, count) in rows {
        println!("{what:<32} {:>12}", grouped(count as f64));
    }
    println!(
        "from reconnect to caught up: median {:.2} ms, p99 {:.2} ms, longest {:.2} ms ({} returns)",
        median(tally.return_ms.iter().copied()),
        percentile(&tally.return_ms, 0.99),
        percentile(&tally.return_ms, 1.0),
        grouped(tally.return_ms.len() as f64),
    );
    let verdict = if tally.faults.is_none() { "every client has everything" } else { "WRONG" };
    println!("{verdict}: {}", tally.faults);
}

fn channel(number: usize) -> String {
    format!("churn{number}")
}

/// Handshakes under way at once when the clients arrive, below every listen backlog.
const ARRIVING_MAX: usize = 100;
/// Clients that return after the churn have so long, unless nothing comes any more before.
const SETTLING_MAX: Duration = Duration::from_secs(60);
