//! The server of `room`: a program with one room whose players share a state.
//! In: ticks per second and bytes of the state → out: the address, then ticks until the parent is gone.
//! Uses `fanwire` as a library. Never: measures more than a program could.
//! Changed here: what the room does; what is measured lives in `room`.

use anyhow::Result;
use clap::Args;
use fanwire::room::{
    InputKind, InputLimits, InputRate, Overrun, PlayerId, RoomContext, Simulation,
};
use fanwire::{Builder, RoomOptions, RoomStats, Rooms, config::Config};
use std::io::Read;
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanwire_load::machine;

/// Run the server of `room` by itself (room starts it for you).
#[derive(Args)]
pub struct RoomServer {
    #[arg(long)]
    ticks_per_second: NonZeroU32,
    /// Bytes of the state, of which a tenth changes in each tick.
    #[arg(long)]
    state_bytes: usize,
    /// Compress publications in context.
    #[arg(long)]
    compression: bool,
    /// Build the state once for each player, instead of once for all.
    #[arg(long)]
    naive: bool,
}

impl RoomServer {
    /// Serves until its standard input ends.
    ///
    /// # Errors
    /// The server does not start.
    pub fn run(self) -> Result<()> {
        machine::raise_descriptor_limit();
        let mut config = local_config(self.compression);
        config.prometheus.enabled = true;
        let rooms = Rooms::new(1);
        let server = Builder::new(config).rooms(&rooms).start_embedded()?;
        let options = RoomOptions {
            ticks_per_second: self.ticks_per_second,
            overrun: Overrun::Skip,
            inputs: InputLimits {
                rate: InputRate { per_second: 100, burst: 100 },
                ..InputLimits::default()
            },
            ..RoomOptions::new(CHANNEL)
        };
        rooms.open(options, State::new(self.state_bytes, self.naive, rooms.clone()))?;
        println!("{}", server.address());
        std::io::stdin().read_to_end(&mut Vec::new())?;
        Ok(())
    }
}

/// The configuration of a server with one shard at a free port of this machine, without tokens and pings.
pub(crate) fn local_config(compression: bool) -> Config {
    let mut config = Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.client.insecure = true;
    config.client.ping_interval = Duration::from_secs(600);
    config.shards = 1;
    config.websocket.compression = compression;
    config
}

/// A JSON text of numbers, of which some change in each tick.
struct State {
    numbers: Vec<u32>,
    is_naive: bool,
    players: Vec<PlayerId>,
    /// States that were written since the last report, and what that allocated.
    built: u64,
    allocations: u64,
    allocated_bytes: u64,
    /// The messages of the room at the last report.
    messages_before: u64,
    /// The ticks at the last report.
    ticks_before: u64,
    /// The first input has come: all players are there.
    has_begun: bool,
    /// Delays of the inputs since the last report, in microseconds.
    input_lags: Vec<u64>,
    rooms: Rooms,
    random: u32,
}

impl State {
    fn new(bytes: usize, is_naive: bool, rooms: Rooms) -> Self {
        let numbers = (0..bytes as u32 / 6).map(|number| 10_000 + number * 7).collect();
        Self {
            numbers,
            is_naive,
            players: Vec::new(),
            built: 0,
            allocations: 0,
            allocated_bytes: 0,
            messages_before: 0,
            ticks_before: 0,
            has_begun: false,
            input_lags: Vec::new(),
            rooms,
            random: 1,
        }
    }

    fn advance(&mut self) {
        for _ in 0..self.numbers.len() / 10 {
            self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let index = self.random as usize / 256 % self.numbers.len();
            self.numbers[index] = 10_000 + (self.numbers[index] + 37) % 90_000;
        }
    }

    /// Sends the state: once for all players, or once for each as a loop over clients does.
    fn send(&mut self, at: u64, context: &mut RoomContext<'_>) {
        if !self.is_naive {
            self.built += 1;
            context.latest(self.text(at, context.tick()));
            return;
        }
        for player in &self.players {
            context.latest_to(*player, self.text(at, context.tick()));
        }
        self.built += self.players.len() as u64;
    }

    fn text(&self, at: u64, tick: u64) -> String {
        let numbers: Vec<_> = self.numbers.iter().map(u32::to_string).collect();
        format!(r#"{{"tick":{tick},"at":{at},"state":[{}]}}"#, numbers.join(","))
    }

    /// The counts of the room, and the lags of inputs since the last report.
    fn report(&mut self) -> String {
        let stats = self.rooms.stats(CHANNEL).unwrap_or_default();
        let RoomStats { ticks, overruns, tick_p50, tick_p95, tick_p99, inputs, .. } = stats;
        self.input_lags.sort_unstable();
        let lag = |share: usize| {
            let lags = &self.input_lags;
            lags.get((lags.len() * share / 100).min(lags.len().saturating_sub(1))).copied()
        };
        let p50 = lag(50).unwrap_or(0);
        let p99 = lag(99).unwrap_or(0);
        let report = format!(
            r#"{{"ticks":{ticks},"overruns":{overruns},"tick_p50_us":{},"tick_p95_us":{},"tick_p99_us":{},"accepted":{},"refused":{},"lags":{},"lag_p50_us":{p50},"lag_p99_us":{p99},"built":{},"messages":{},"ticks_since":{},"waiting":{},"allocations":{},"allocated_bytes":{}}}"#,
            tick_p50.as_micros(),
            tick_p95.as_micros(),
            tick_p99.as_micros(),
            inputs.accepted,
            inputs.refused,
            self.input_lags.len(),
            self.built,
            stats.messages - self.messages_before,
            ticks - self.ticks_before,
            stats.waiting,
            self.allocations,
            self.allocated_bytes,
        );
        self.input_lags.clear();
        self.messages_before = stats.messages;
        self.ticks_before = ticks;
        self.built = 0;
        self.allocations = 0;
        self.allocated_bytes = 0;
        report
    }
}

impl Simulation for State {
    fn kind(_input: &[u8]) -> InputKind {
        InputKind::default()
    }

    fn join(&mut self, player: PlayerId, _: &str, _: &[u8], _: &mut RoomContext<'_>) {
        self.players.push(player);
    }

    fn leave(&mut self, player: PlayerId, _: &mut RoomContext<'_>) {
        self.players.retain(|other| *other != player);
    }

    /// The microsecond at which it was sent; 0 asks for a report.
    fn input(&mut self, player: PlayerId, input: &[u8], context: &mut RoomContext<'_>) {
        self.has_begun = true;
        let sent: u64 = str::from_utf8(input).ok().and_then(|at| at.parse().ok()).unwrap_or(0);
        if sent == 0 {
            let report = self.report();
            context.reliable_to(player, format!(r#"{{"report":{report}}}"#));
        } else {
            self.input_lags.push(unix_us().saturating_sub(sent));
        }
    }

    fn tick(&mut self, context: &mut RoomContext<'_>) {
        let at = unix_us();
        if !self.has_begun {
            return;
        }
        self.advance();
        let allocated = allocation_counter::measure(|| self.send(at, context));
        self.allocations += allocated.count_total;
        self.allocated_bytes += allocated.bytes_total;
    }
}

/// Microseconds since 1970; the clock is that of both processes.
pub(super) fn unix_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_micros().try_into().unwrap_or(u64::MAX)
}

pub(super) const CHANNEL: &str = "room";
