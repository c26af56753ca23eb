//! Scenario `connects`: CPU of a new connection with a subscription, next to an upgrade by the bare loop; and a storm of clients.
//! In: numbers of clients, and what they missed → out: µs of server CPU per connect and the ratio; in a storm, how long it takes.
//! Uses `target` and `generator`; the bare loop answers an upgrade with a constant and does nothing else.
//! Changed here: what is compared and shown; the upgrade of the bare loop lives in `bare`.

pub(crate) mod lone;

use anyhow::Result;
use clap::Args;
use std::cmp::Ordering::Less;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::caller::Caller;
use crate::fanout::{made_up_payloads, map};
use crate::setup::Setup;
use crate::stats::{grouped, judge, median};
use crate::target::{API_KEY, Target, history};
use crate::witness::{Witness, print_latencies};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::{answer_length, publish_request};
use fanwire_load::generator::{
    ConnectTarget, Deliveries, Generator, Profile, StallTimer, SubscribeForm, SubscriberTransport,
};
use fanwire_load::machine::{self, Meter, Usage};
use lone::Times;

/// CPU per connect with a subscription, next to the bare loop's upgrade; `--storm` lets clients return at once.
#[derive(Args)]
pub struct Connects {
    /// Measured connects of each contender in each round.
    #[arg(long, default_value_t = 5_000)]
    connects: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Offer permessage-deflate.
    #[arg(long)]
    compression: bool,
    /// Each client recovers so many publications of 100 bytes, and all of them connect at once.
    #[arg(long)]
    missed: Option<usize>,
    /// Compare subscriptions of a map with so many keys (100 are one page) of 200 bytes to those of a stream, and all clients
    /// connect at once.
    #[arg(long, value_name = "KEYS", conflicts_with_all = ["missed", "against"])]
    map: Option<usize>,
    /// Instead: so many subscribed clients are lost and return at once, while 100 others receive publications.
    #[arg(long, value_name = "CLIENTS", num_args = 0..=1, default_missing_value = "19000")]
    storm: Option<usize>,
    /// Instead: so many clients one after the other; the time of each until it is subscribed.
    #[arg(long, value_name = "CLIENTS", num_args = 0..=1, default_missing_value = "2000")]
    lone: Option<usize>,
    /// Another build of Fanwire in place of the bare loop.
    #[arg(long, value_name = "FILE")]
    against: Option<std::path::PathBuf>,
    /// Fail when the median of the ratios is above this; with `--lone`, the median of the milliseconds.
    #[arg(long)]
    bar: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

impl Connects {
    /// True when the bar is met or none was set.
    ///
    /// # Errors
    /// A server that does not start, or refuses a client.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        self.setup.pin_generator()?;
        let binary = self.setup.binary()?;
        if let Some(clients) = self.lone {
            return self.lone(&binary, clients);
        }
        match self.storm {
            Some(clients) => self.storm(&binary, clients),
            None => self.compare(&binary),
        }
    }

    /// Shows how long a client waits that connects alone, and a backend without keep-alive; by turns with another build.
    fn lone(&self, binary: &Path, clients: usize) -> Result<bool> {
        let mut builds = vec![("fanwire", binary)];
        if let Some(before) = &self.against {
            builds.insert(0, ("before", before));
        }
        println!("round  contender   subscribed: p50 ms     p99   POST: p50 ms     p99");
        let mut medians = Vec::new();
        for round in 1..=self.rounds {
            for (name, build) in &builds {
                let target = self.fanwire(build)?;
                let subscribed = Times::measure(clients, || lone::subscribe(target.address()))?;
                let posted = Times::measure(clients, || lone::publish(target.address()))?;
                println!(
                    "{round:>5}  {name:<10} {:>19.3} {:>7.3} {:>14.3} {:>7.3}",
                    subscribed.median(),
                    subscribed.p99(),
                    posted.median(),
                    posted.p99()
                );
                if *name == "fanwire" {
                    medians.push(subscribed.median().max(posted.median()));
                }
            }
        }
        let slowest = median(medians);
        let (passed, verdict) = judge(slowest, Less, self.bar);
        println!("\nmedian of the slower of both: {slowest:.3} ms{verdict}");
        Ok(passed)
    }

    fn compare(&self, binary: &Path) -> Result<bool> {
        let core = self.setup.server_core;
        let first = match (&self.against, self.map) {
            (Some(_), _) => "before",
            (None, Some(_)) => "stream",
            (None, None) => "bare upgrade",
        };
        println!(
            "connects: {} each, {} rounds; server on core {core}\n\nround  contender       µs CPU/connect  MiB at most  connects/s  others %",
            grouped(self.connects as f64),
            self.rounds
        );
        let mut ratios = Vec::new();
        let mut differences = Vec::new();
        for number in 1..=self.rounds {
            let before = match (&self.against, self.map) {
                (Some(before), _) => {
                    let target = self.fanwire(before)?;
                    self.measure(&target, Some(self.form()), number, first)?
                }
                (None, Some(_)) => {
                    let target = Target::fanwire(binary, Some(core), map::stream())?;
                    self.measure(&target, Some(SubscribeForm::Live), number, first)?
                }
                (None, None) => self.measure(&Target::bare(core, None)?, None, number, first)?,
            };
            let target = self.fanwire(binary)?;
            let now = self.measure(&target, Some(self.form()), number, "fanwire")?;
            ratios.push(now / before);
            differences.push(now - before);
        }
        if self.map.is_some() {
            println!("\nµs of CPU for the entries of one client: {:.1}", median(differences));
        }
        let ratio = median(ratios);
        let (passed, verdict) = judge(ratio, Less, self.bar);
        println!("\nratio fanwire / {first}: {ratio:.2}{verdict}");
        Ok(passed)
    }

    /// A server with what clients have missed.
    fn fanwire(&self, binary: &Path) -> Result<Target> {
        let core = Some(self.setup.server_core);
        let settings = match (self.missed, self.map) {
            (Some(missed), _) => history(missed),
            (None, Some(_)) => map::map(),
            (None, None) => serde_json::json!({}),
        };
        let target = Target::fanwire(binary, core, settings)?;
        let mut caller = Caller::open(target.address())?;
        for request in self.requests() {
            caller.send(&request)?;
            caller.take(answer_length)?;
        }
        Ok(target)
    }

    /// The publications or the entries that clients get when they subscribe.
    fn requests(&self) -> Vec<Vec<u8>> {
        let fields = |bytes| {
            let payloads = made_up_payloads(bytes).into_iter();
            payloads.map(|payload| format!("\"data\":{payload}")).collect::<Vec<_>>()
        };
        match (self.missed, self.map) {
            (Some(missed), _) => {
                let fields = fields(100).into_iter().cycle().take(missed);
                fields.map(|field| publish_request(CHANNEL, &field, API_KEY)).collect()
            }
            (None, Some(keys)) => {
                let changes = map::changes(CHANNEL, &fields(200), keys);
                changes.into_iter().map(|change| change.trigger).collect()
            }
            (None, None) => Vec::new(),
        }
    }

    fn form(&self) -> SubscribeForm {
        match (self.missed, self.map) {
            (Some(_), _) => SubscribeForm::Recovering,
            (None, Some(_)) => SubscribeForm::Map,
            (None, None) => SubscribeForm::Live,
        }
    }

    /// Prints and returns the µs of CPU for one connect; `None` subscribes nothing.
    fn measure(
        &self,
        target: &Target,
        subscribe: Option<SubscribeForm>,
        round: usize,
        name: &str,
    ) -> Result<f64> {
        let resident = machine::resident_bytes(target.pid())?;
        let usage = self.open(target, subscribe)?;
        let grown = machine::peak_resident_bytes(target.pid())?.saturating_sub(resident);
        let cpu_us = usage.cpu_seconds * 1e6 / self.connects as f64;
        println!(
            "{round:>5}  {name:<14} {cpu_us:>15.1} {:>12.1} {:>11} {:>9.1}",
            grown as f64 / f64::from(1 << 20),
            grouped(self.connects as f64 / usage.wall_seconds),
            100.0 * usage.others_share()
        );
        Ok(cpu_us)
    }

    /// µs of the server's CPU for each of so many plain connects with a subscription.
    pub(crate) fn cpu_us(setup: &Setup, binary: &Path, connects: usize) -> Result<f64> {
        let plan = Self {
            connects,
            rounds: 1,
            compression: false,
            missed: None,
            map: None,
            storm: None,
            lone: None,
            against: None,
            bar: None,
            setup: setup.clone(),
        };
        let target = plan.fanwire(binary)?;
        let usage = plan.open(&target, Some(SubscribeForm::Live))?;
        Ok(usage.cpu_seconds * 1e6 / connects as f64)
    }

    /// The server's work while the clients connect, after some that warm it up.
    fn open(&self, target: &Target, subscribe: Option<SubscribeForm>) -> Result<Usage> {
        // The first connection of the bare loop is its control connection.
        let _control =
            subscribe.is_none().then(|| TcpStream::connect(target.address())).transpose()?;
        let mut generator = Generator::new(false)?;
        let transport = if subscribe.is_none() {
            SubscriberTransport::UpgradeOnly
        } else {
            SubscriberTransport::WebSocket
        };
        let subscribe = subscribe.unwrap_or_default();
        generator.set_endpoint(ConnectTarget { transport, subscribe, ..ConnectTarget::default() });
        let profile = self.profile(CHANNEL);
        generator.open(target.address(), WARM_UP, &profile)?;
        if self.missed.is_some() || self.map.is_some() {
            generator.set_opening_max(self.connects);
        }
        let meter = Meter::start(target.pid(), self.setup.server_core)?;
        generator.open(target.address(), self.connects, &profile)?;
        meter.stop()
    }

    fn profile(&self, channel: &str) -> Profile {
        Profile {
            plain: false,
            encoding: Encoding::Json,
            compression: self.compression,
            channels: vec![channel.to_owned()],
        }
    }

    /// Reports how long it takes until all are subscribed again, and the latencies of the others before and during it.
    fn storm(&self, binary: &Path, clients: usize) -> Result<bool> {
        let target = Target::fanwire(binary, Some(self.setup.server_core), serde_json::json!({}))?;
        let mut crowd = Generator::new(false)?;
        crowd.open(target.address(), clients, &self.profile("crowd"))?;
        let others = Witness::open(target.address(), OTHERS)?;
        let (took, [before, during]) = others.during(|| {
            drop(crowd);
            self.reconnect(target.address(), clients)
        })?;
        println!(
            "storm: {} clients lost and subscribed again in {:.2} s ({} per second)",
            grouped(clients as f64),
            took.as_secs_f64(),
            grouped(clients as f64 / took.as_secs_f64())
        );
        print_latencies("others before", &before);
        print_latencies("others during", &during);
        Ok(true)
    }

    /// The time until all clients are subscribed again.
    fn reconnect(&self, address: SocketAddr, clients: usize) -> Result<Duration> {
        let started = Instant::now();
        let mut crowd = Generator::new(false)?;
        crowd.set_opening_max(clients);
        let profile = self.profile("crowd");
        let mut progress = StallTimer::default();
        let mut opened = 0;
        while crowd.subscribed() < clients {
            opened = clients.min(opened + OPENED_AT_ONCE);
            crowd.open_some(address, opened, |_| profile.clone())?;
            crowd.turn(Some(Duration::from_millis(1)), &mut Deliveries::default())?;
            let subscribed = crowd.subscribed();
            progress.check(subscribed as u64, || format!("{subscribed} of {clients} returned"))?;
        }
        Ok(started.elapsed())
    }
}

const CHANNEL: &str = "connects";
const WARM_UP: usize = 200;
/// Subscribers that stay connected during a storm.
const OTHERS: usize = 100;
const OPENED_AT_ONCE: usize = 50;
