//! The server of `room`: a program with one room whose players share a state.
//! In: ticks per second and bytes of the state → out: the address, then ticks until the parent is gone.
//! Uses `fanwire` as a library. Never: measures more than a program could.
//! Change here what the room does; what is measured lives in `room`.

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
    /// With compression in context.
    #[arg(long)]
    compression: bool,
}

impl RoomServer {
    /// Serves until its standard input ends.
    ///
    /// # Errors
    /// The server does not start.
    pub fn run(self) -> Result<()> {
        machine::raise_descriptor_limit();
        let mut config = Config::default();
        config.http_server.address = "127.0.0.1".to_owned();
        config.http_server.port = 0;
        config.client.insecure = true;
        config.client.ping_interval = Duration::from_secs(600);
        config.prometheus.enabled = true;
        config.shards = 1;
        config.websocket.compression = self.compression;
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
        rooms.open(options, State::new(self.state_bytes, rooms.clone()))?;
        println!("{}", server.address());
        std::io::stdin().read_to_end(&mut Vec::new())?;
        Ok(())
    }
}

/// A JSON text of numbers, of which some change in each tick.
struct State {
    numbers: Vec<u32>,
    /// The first input has come: all players are there.
    has_begun: bool,
    /// Of the inputs since the last report, in microseconds.
    input_lags: Vec<u64>,
    rooms: Rooms,
    random: u32,
}

impl State {
    fn new(bytes: usize, rooms: Rooms) -> Self {
        let numbers = (0..bytes as u32 / 6).map(|number| 10_000 + number * 7).collect();
        Self { numbers, has_begun: false, input_lags: Vec::new(), rooms, random: 1 }
    }

    fn advance(&mut self) {
        for _ in 0..self.numbers.len() / 10 {
            self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let index = self.random as usize / 256 % self.numbers.len();
            self.numbers[index] = 10_000 + (self.numbers[index] + 37) % 90_000;
        }
    }

    /// The counts of the room, and the lags of inputs since the last report.
    fn report(&mut self) -> String {
        let RoomStats { ticks, overruns, tick_p50, tick_p99, inputs, .. } =
            self.rooms.stats(CHANNEL).unwrap_or_default();
        self.input_lags.sort_unstable();
        let lag = |share: usize| {
            let lags = &self.input_lags;
            lags.get((lags.len() * share / 100).min(lags.len().saturating_sub(1))).copied()
        };
        let p50 = lag(50).unwrap_or(0);
        let p99 = lag(99).unwrap_or(0);
        let report = format!(
            r#"{{"ticks":{ticks},"overruns":{overruns},"tick_p50_us":{},"tick_p99_us":{},"accepted":{},"refused":{},"lags":{},"lag_p50_us":{p50},"lag_p99_us":{p99}}}"#,
            tick_p50.as_micros(),
            tick_p99.as_micros(),
            inputs.accepted,
            inputs.refused,
            self.input_lags.len(),
        );
        self.input_lags.clear();
        report
    }
}

impl Simulation for State {
    fn kind(_input: &[u8]) -> InputKind {
        InputKind::default()
    }

    fn join(&mut self, _: PlayerId, _: &str, _: &[u8], _: &mut RoomContext<'_>) {}

    fn leave(&mut self, _: PlayerId, _: &mut RoomContext<'_>) {}

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
        let numbers: Vec<_> = self.numbers.iter().map(u32::to_string).collect();
        let tick = context.tick();
        context.latest(format!(r#"{{"tick":{tick},"at":{at},"state":[{}]}}"#, numbers.join(",")));
    }
}

/// Microseconds since 1970; the clock is that of both processes.
pub(super) fn unix_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_micros().try_into().unwrap_or(u64::MAX)
}

pub(super) const CHANNEL: &str = "room";
