//! Scenario `distance`: the figures of this build next to those of a build before, one row after the other.
//! In: the program of the build before, and of Centrifugo if its figures are to be shown → out: one list with ratios.
//! Uses the rounds of other scenarios, and those of the modules below for what no scenario has.
//! Changed here: which rows there are. How one is measured is in its module.

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::fanout::source::By;
use crate::proof::page::figure;
use crate::setup::Setup;
use crate::stats::median;
use crate::target::Target;
use calls::{BACK_TO_BACK, PACED};
use deliveries::{Deliveries, TEN_EACH};
use fanwire_load::machine;

mod calls;
mod connections;
mod deliveries;
mod flood;
mod shards;

/// This build next to a build before, as one list; Centrifugo and the bare loop as peers.
#[derive(Args)]
pub struct Distance {
    /// The program of the build before.
    #[arg(long, value_name = "FILE")]
    against: PathBuf,
    /// The program of Centrifugo, a peer of some rows.
    #[arg(long, value_name = "FILE")]
    centrifugo: Option<PathBuf>,
    /// Measure these rows only.
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    only: Vec<Row>,
    /// Rounds of each row; figures are medians of them.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds for which each server delivers in a round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    #[command(flatten)]
    setup: Setup,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Row {
    /// Clients that connect one after the other, and a POST on a connection of its own.
    Lone,
    /// Channels with ten subscribers each, by POST.
    TenByHttp,
    TenByStream,
    TenByGrpc,
    /// The same by a stream at 1,000 publications per second.
    TenAtRate,
    /// One channel with ten subscribers next to the bare loop, by POST and by a stream.
    FloorByHttp,
    FloorByStream,
    /// Eight publications under way to 1,000 subscribers.
    Outstanding,
    /// 500 subscribers at 60 publications per second.
    SixtyByHttp,
    SixtyByStream,
    SixtyInContext,
    /// A publish through Redis.
    Redis,
    RedisPaced,
    /// A broadcast to 5,000 channels in memory.
    Broadcast,
    /// A publish by a call of gRPC.
    GrpcCall,
    /// A process without connections.
    Empty,
    Connects5000,
    Connects19000,
    /// Two shards on two cores next to one.
    Shards1000,
    Shards10000,
    /// Subscribers while a stream floods.
    Flood,
    /// Subscribers while clients publish ten times what the limit of their namespace allows; both builds must know that limit.
    Tenant,
}

/// One line of the list.
struct Figure {
    name: &'static str,
    unit: &'static str,
    is_more_better: bool,
    before: f64,
    now: f64,
    peer: Option<(&'static str, f64)>,
}

/// Results of the build before, of this one, and of a peer.
struct OfEach<T> {
    before: T,
    now: T,
    peer: Option<(&'static str, T)>,
}

/// Starts a server with these settings.
type Start<'a> = dyn Fn(Value) -> Result<Target> + 'a;

impl<T> OfEach<T> {
    /// A line of which less is better.
    fn line(&self, name: &'static str, unit: &'static str, value: fn(&T) -> f64) -> Figure {
        Figure {
            name,
            unit,
            is_more_better: false,
            before: value(&self.before),
            now: value(&self.now),
            peer: self.peer.as_ref().map(|(peer, theirs)| (*peer, value(theirs))),
        }
    }
}

impl Distance {
    /// Whether each row was measured. The list shows figures and judges none; an old build may lack what a row needs.
    ///
    /// # Errors
    /// Never: a row that fails is a line of the list.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        println!(
            "distance: medians of {} rounds by turns, {} s of deliveries; server on core {}, generator on core {}; a ratio above 1 is in favour of now\n\n{HEADER}",
            self.rounds, self.seconds, self.setup.server_core, self.setup.generator_core
        );
        let mut is_complete = true;
        for row in Row::value_variants() {
            if !self.only.is_empty() && !self.only.contains(row) {
                continue;
            }
            match self.rounds(*row) {
                Ok(rounds) => print_lines(&rounds),
                Err(error) => {
                    println!("{row:?}: not measured: {error:#}");
                    is_complete = false;
                }
            }
        }
        Ok(is_complete)
    }

    /// The figures of each round of a row.
    fn rounds(&self, row: Row) -> Result<Vec<Vec<Figure>>> {
        let round = |_| {
            // A thread for each, because rows differ in the cores that a server gets from it.
            let joined = thread::scope(|scope| scope.spawn(|| self.measure(row)).join());
            joined.expect("the thread of a row does not panic")
        };
        (0..self.rounds).map(round).collect()
    }

    /// Measures both builds, one after the other.
    fn of_builds<T>(&self, measure: impl Fn(&Path) -> Result<T>) -> Result<OfEach<T>> {
        let before = measure(&self.against)?;
        Ok(OfEach { before, now: measure(&self.setup.binary()?)?, peer: None })
    }

    /// Measures servers of both builds and Centrifugo, one after the other.
    fn of_servers<T>(&self, measure: impl Fn(&Start<'_>) -> Result<T>) -> Result<OfEach<T>> {
        let core = self.setup.server_core;
        let of_build =
            |program: &Path| measure(&|settings| Target::fanwire(program, Some(core), settings));
        let mut all = self.of_builds(of_build)?;
        if let Some(program) = &self.centrifugo {
            let theirs = measure(&|settings| Target::centrifugo(program, core, settings))?;
            all.peer = Some(("Centrifugo", theirs));
        }
        Ok(all)
    }

    /// The figures of one round of a row.
    fn measure(&self, row: Row) -> Result<Vec<Figure>> {
        if ![Row::Shards1000, Row::Shards10000].contains(&row) {
            self.setup.pin_generator()?;
        }
        let deliveries = match row {
            Row::Lone => return connections::lone(self),
            Row::Redis => return calls::redis(self, "publish through Redis", BACK_TO_BACK),
            Row::RedisPaced => return calls::redis(self, "the same, 2 ms apart", PACED),
            Row::Broadcast => return calls::broadcast(self),
            Row::GrpcCall => return calls::grpc(self),
            Row::Empty => return connections::empty(self),
            Row::Connects5000 => return connections::connects(self, "5,000 connects", 5_000),
            Row::Connects19000 => return connections::connects(self, "19,000 connects", 19_000),
            Row::Shards1000 => return shards::measure(self, 1_000),
            Row::Shards10000 => return shards::measure(self, 10_000),
            Row::Flood => return flood::measure(self),
            Row::Tenant => return flood::measure_tenant(self),
            Row::TenByHttp => Deliveries { name: "channels of ten, POST", ..TEN_EACH },
            Row::TenByStream => {
                Deliveries { name: "channels of ten, stream", by: By::Stream, ..TEN_EACH }
            }
            Row::TenByGrpc => {
                Deliveries { name: "channels of ten, gRPC stream", by: By::Grpc, ..TEN_EACH }
            }
            Row::TenAtRate => Deliveries {
                name: "channels of ten, stream, 1,000/s",
                by: By::Stream,
                rate: Some(1_000.0),
                ..TEN_EACH
            },
            Row::FloorByHttp => Deliveries { name: "one channel of ten, POST", ..FLOOR },
            Row::FloorByStream => {
                Deliveries { name: "one channel of ten, stream", by: By::Stream, ..FLOOR }
            }
            Row::Outstanding => {
                Deliveries { name: "1,000, eight outstanding", subscribers: 1_000, ..FLOOR }
            }
            Row::SixtyByHttp => Deliveries { name: "60 Hz x 500, POST", ..SIXTY },
            Row::SixtyByStream => {
                Deliveries { name: "60 Hz x 500, stream", by: By::Stream, ..SIXTY }
            }
            Row::SixtyInContext => Deliveries {
                name: "60 Hz x 500 in context",
                compression: true,
                has_bare: false,
                ..SIXTY
            },
        };
        deliveries.measure(self)
    }
}

/// One channel next to the bare loop.
const FLOOR: Deliveries = Deliveries { channels: 1, subscribers: 10, has_bare: true, ..TEN_EACH };
const SIXTY: Deliveries =
    Deliveries { subscribers: 500, outstanding: 1, rate: Some(60.0), ..FLOOR };

fn print_lines(rounds: &[Vec<Figure>]) {
    for line in 0..rounds[0].len() {
        let figures: Vec<_> = rounds.iter().map(|round| &round[line]).collect();
        print_line(&figures);
    }
}

/// Prints the medians of the rounds of one line; ratios are medians of those of each round.
fn print_line(rounds: &[&Figure]) {
    let Figure { name, unit, is_more_better, .. } = *rounds[0];
    let of = |value: fn(&Figure) -> f64| median(rounds.iter().map(|round| value(round)));
    let better = |now: f64, other: f64| if is_more_better { now / other } else { other / now };
    let ratio = median(rounds.iter().map(|round| better(round.now, round.before)));
    print!(
        "{name:<34} {unit:<17} {:>10} {:>10} {ratio:>6.3}",
        figure(of(|round| round.before)),
        figure(of(|round| round.now))
    );
    if let Some((peer, _)) = rounds[0].peer {
        let others = rounds.iter().filter_map(|round| Some((round.now, round.peer?.1)));
        let (now, other): (Vec<f64>, Vec<f64>) = others.unzip();
        let ratio = median(now.iter().zip(&other).map(|(now, other)| better(*now, *other)));
        print!("  {peer:<12} {:>10} {ratio:>6.3}", figure(median(other)));
    }
    println!();
}

const HEADER: &str = "row                                unit                  before        now  ratio  peer               its  ratio";
