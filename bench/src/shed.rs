//! Scenario `shed`: twice as many clients come as fit below a limit of the section `shed`, while those inside receive publications.
//! In: how many fit → out: how many got in, latencies of 100 others before and while clients are refused, resident memory at most.
//! Uses `target`, `witness` and the clients of `connects`. Never: refused clients that come back, which only costs more of the same.
//! Changed here: how a limit is derived from what fits, and how fast clients come.

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::cmp::Ordering::Less;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::caller::Caller;
use crate::connects::lone;
use crate::metrics;
use crate::setup::Setup;
use crate::stats::{grouped, judge, percentile};
use crate::target::{API_KEY, Target};
use crate::witness::{Witness, print_latencies};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::{Publisher, publish_request};
use fanwire_load::generator::{Deliveries, Generator, Profile};
use fanwire_load::machine;

/// Latencies of those inside, and memory, while twice as many clients come as fit below `shed.memory_max` and `shed.turn_max`.
#[derive(Args)]
pub struct Shed {
    /// Idle clients that fit below the limit on memory.
    #[arg(long, default_value_t = 8_000)]
    idle: usize,
    /// Clients in one channel that fit below the limit on turns.
    #[arg(long, default_value_t = 500)]
    busy: usize,
    /// Publications per second to the busy clients.
    #[arg(long, default_value_t = 50)]
    rate: u32,
    /// Seconds in which as many clients come as fit, after those are inside.
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,
    /// Fail when p99 of those inside grows by more than this factor.
    #[arg(long)]
    bar: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

/// A limit, and the clients that fit below it.
#[derive(Clone, Copy)]
struct Fitting {
    key: &'static str,
    clients: usize,
    /// The time between two publications to all of them.
    period: Option<Duration>,
}

/// The clients that came without room for them: those that got in, and the count of the others.
#[derive(Default)]
struct Offered {
    admitted: Vec<Caller>,
    refused: usize,
}

impl Shed {
    /// True when the bar is met by both limits, or none was set.
    ///
    /// # Errors
    /// A server that does not start, or refuses no client.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        self.setup.pin_generator()?;
        let period = Some(Duration::from_secs(1) / self.rate);
        let idle = Fitting { key: "memory_max", clients: self.idle, period: None };
        let busy = Fitting { key: "turn_max", clients: self.busy, period };
        let of_memory = self.offer_twice(idle)?;
        let of_turns = self.offer_twice(busy)?;
        Ok(of_memory && of_turns)
    }

    /// Whether p99 is within the bar.
    fn offer_twice(&self, fitting: Fitting) -> Result<bool> {
        let limit = self.measure_limit(fitting)?;
        println!("shed.{} {limit}: {} clients fit", fitting.key, grouped(fitting.clients as f64));
        let target = self.server(json!({ "shed": { (fitting.key): limit } }))?;
        let inside = Inside::open(&target, fitting)?;
        let others = Witness::open(target.address(), OTHERS)?;
        let (offered, [before, during]) =
            inside.during(|| others.during(|| self.offer(&target, fitting.clients)))?;
        let resident = machine::peak_resident_bytes(target.pid())? as f64;
        println!(
            "{} more in {} s: {} got in, {} were refused; {:.1} MB resident at most",
            grouped(fitting.clients as f64),
            self.seconds,
            grouped(offered.admitted.len() as f64),
            grouped(offered.refused as f64),
            resident / 1e6,
        );
        ensure!(offered.refused > 0, "nothing was shed:\n{}", target.log_tail());
        if let Some(bytes) = limit.as_f64() {
            println!("resident at most / limit: {:.3}", resident / bytes);
        }
        print_latencies("others before", &before);
        print_latencies("others while clients are refused", &during);
        let ratio = percentile(&during, 0.99) / percentile(&before, 0.99);
        let (is_met, verdict) = judge(ratio, Less, self.bar);
        println!("ratio of p99: {ratio:.2}{verdict}\n");
        Ok(is_met)
    }

    fn server(&self, settings: Value) -> Result<Target> {
        Target::fanwire(&self.setup.binary()?, Some(self.setup.server_core), settings)
    }

    /// Returns the value of the limit that a server with these clients just keeps.
    fn measure_limit(&self, fitting: Fitting) -> Result<Value> {
        let target = self.server(json!({}))?;
        Inside::open(&target, fitting)?.during(|| {
            let begin_s = turn_seconds(&target)?;
            thread::sleep(SETTLE);
            let Some(period) = fitting.period else {
                return Ok(machine::resident_bytes(target.pid())?.into());
            };
            // Each publication is one long turn, next to which others are short.
            let share = (turn_seconds(&target)? - begin_s) / SETTLE.as_secs_f64();
            let turn_us = share * period.as_secs_f64() * 1e6;
            Ok(format!("{:.0}us", turn_us * TURN_MARGIN).into())
        })
    }

    /// Lets clients come one after the other, at planned times.
    fn offer(&self, target: &Target, clients: usize) -> Result<Offered> {
        let period = Duration::from_secs_f64(self.seconds / clients as f64);
        let mut offered = Offered::default();
        let mut due = Instant::now();
        for _ in 0..clients {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            due += period;
            match lone::subscriber(target.address()) {
                Ok(client) => offered.admitted.push(client),
                Err(error) if error.to_string().contains(REFUSED) => offered.refused += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(offered)
    }
}

/// Seconds of the turns of all shards.
fn turn_seconds(target: &Target) -> Result<f64> {
    let page = metrics::page(target.address())?;
    metrics::value(&page, "fanwire_shard_turn_duration_seconds_sum")
}

/// Clients for which there is room, and what they receive.
struct Inside {
    generator: Generator,
    publisher: Publisher,
    period: Option<Duration>,
}

impl Inside {
    fn open(target: &Target, fitting: Fitting) -> Result<Self> {
        let mut generator = Generator::new(false)?;
        let channels = vec![lone::CHANNEL.to_owned()];
        let profile =
            Profile { plain: false, encoding: Encoding::Json, compression: false, channels };
        generator.open(target.address(), fitting.clients, &profile)?;
        let publisher = Publisher::http(target.address(), 1, generator.registry())?;
        Ok(Self { generator, publisher, period: fitting.period })
    }

    /// Returns the result of `work`, during which they receive publications.
    fn during<T>(mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let has_ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let receiving = scope.spawn(|| self.receive(&has_ended));
            let done = work();
            has_ended.store(true, Relaxed);
            receiving.join().expect("the thread of the clients does not panic")?;
            done
        })
    }

    fn receive(&mut self, has_ended: &AtomicBool) -> Result<()> {
        let request = publish_request(lone::CHANNEL, "\"data\":1", API_KEY);
        let mut due = Instant::now();
        while !has_ended.load(Relaxed) {
            if let Some(period) = self.period
                && Instant::now() >= due
                && self.publisher.has_free_lane()
            {
                self.publisher.publish(&request)?;
                due += period;
            }
            if self.generator.turn(Some(READ_PERIOD), &mut Deliveries::default())? {
                self.publisher.receive()?;
            }
        }
        Ok(())
    }
}

const OTHERS: usize = 100;
/// The status of a refused handshake.
const REFUSED: &str = "503";
/// For the memory of the handshakes, and turns to be measured.
const SETTLE: Duration = Duration::from_secs(5);
/// The limit on turns in relation to those of a server that keeps it.
const TURN_MARGIN: f64 = 1.1;
const READ_PERIOD: Duration = Duration::from_millis(2);
