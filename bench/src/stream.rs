//! Scenario `stream`: publications through one long request (`POST /api/stream`), next to one request each.
//! In: channels, subscribers of each, publications under way → out: server CPU per publication both ways, and their ratio.
//! Uses `target` and `generator`; every answer and every delivery is waited for and counted.
//! Change here what is compared and shown; how a request is written lives in `generator::publisher`.

use anyhow::{Result, ensure};
use clap::Args;
use std::path::Path;
use std::time::Duration;

use crate::fanout::made_up_payloads;
use crate::fanout::schedule::channel;
use crate::setup::Setup;
use crate::stats::{median, verdict};
use crate::target::{API_KEY, Target};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::{Publisher, publish_request};
use fanwire_load::generator::stream_publisher::StreamPublisher;
use fanwire_load::generator::{Deliveries, Generator, Profile, StallTimer};
use fanwire_load::machine::{self, Meter};

/// Publications through one long request, next to one request each.
#[derive(Args)]
pub struct Stream {
    /// Channels; publications go to each in turn.
    #[arg(long, default_value_t = 1000)]
    channels: usize,
    /// Subscribers of each channel; there are as many connections as channels.
    #[arg(long, default_value_t = 0)]
    subscribers: usize,
    /// Bytes of the data.
    #[arg(long, default_value_t = 100)]
    bytes: usize,
    /// Lines of one chunk of the stream, which are under way at once.
    #[arg(long, default_value_t = 64)]
    outstanding: usize,
    /// Connections with one request each at a time; by default as many as lines.
    #[arg(long)]
    connections: Option<usize>,
    /// Publications of each measurement.
    #[arg(long, default_value_t = 100_000)]
    publications: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Fail when a publication through the stream takes more than this part of the CPU of the other.
    #[arg(long)]
    bar: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

/// Server CPU of one way to publish.
struct Outcome {
    us_per_publication: f64,
    others_share: f64,
}

impl Stream {
    /// True when the bar is met or none was set.
    ///
    /// # Errors
    /// A server that does not start, a wrong answer, or a delivery that is missing.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        self.setup.pin_generator()?;
        let binary = self.setup.binary()?;
        let connections = self.connections.unwrap_or(self.outstanding);
        let all = [self.channels, self.outstanding, connections];
        ensure!(
            all.iter().all(|count| *count > 0),
            "--channels, --outstanding, --connections: at least 1"
        );
        println!(
            "stream: {} channels of {} subscribers, {} B, {} lines or {} requests under way, {} rounds of {} publications; server on core {}\n\n{HEADER}",
            self.channels,
            self.subscribers,
            self.bytes,
            self.outstanding,
            connections,
            self.rounds,
            self.publications,
            self.setup.server_core,
        );
        let mut ratios = Vec::new();
        for number in 1..=self.rounds {
            let [requests, stream] =
                [false, true].map(|by_stream| self.measure(&binary, by_stream));
            let (requests, stream) = (requests?, stream?);
            for (name, outcome) in [("one request each", &requests), ("stream", &stream)] {
                println!(
                    "{number:>5}  {name:<18} {:>8.2} {:>9.1}",
                    outcome.us_per_publication,
                    outcome.others_share * 100.0
                );
            }
            ratios.push(stream.us_per_publication / requests.us_per_publication);
        }
        let ratio = median(ratios);
        let passed = self.bar.is_none_or(|bar| ratio <= bar);
        let verdict = verdict(self.bar, passed);
        println!("\nratio of CPU per publication, stream / one request each: {ratio:.3}{verdict}");
        Ok(passed)
    }

    fn measure(&self, binary: &Path, by_stream: bool) -> Result<Outcome> {
        let target = Target::fanwire(binary, Some(self.setup.server_core))?;
        let mut generator = Generator::new(false)?;
        if self.subscribers > 0 {
            for first in 0..self.channels {
                let own = (first..first + self.subscribers).map(|number| number % self.channels);
                let profile = Profile {
                    plain: false,
                    encoding: Encoding::Json,
                    compression: false,
                    channels: own.map(channel).collect(),
                };
                generator.open(target.address(), 1, &profile)?;
            }
        }
        let data = &made_up_payloads(self.bytes)[0];
        let field = format!("\"data\":{data}");
        let (address, lanes) = (target.address(), self.connections.unwrap_or(self.outstanding));
        let (mut publisher, group) = match by_stream {
            true => (
                By::Stream(StreamPublisher::open(address, "localhost", "/api/stream", API_KEY)?),
                self.outstanding,
            ),
            false => (By::Requests(Publisher::http(address, lanes, generator.registry())?), lanes),
        };
        let mut deliveries = Deliveries(0);
        self.publish(WARM_UP, group, &field, &mut publisher, &mut generator, &mut deliveries)?;
        let meter = Meter::start(target.pid(), self.setup.server_core)?;
        self.publish(
            self.publications,
            group,
            &field,
            &mut publisher,
            &mut generator,
            &mut deliveries,
        )?;
        let usage = meter.stop()?;
        Ok(Outcome {
            us_per_publication: usage.cpu_seconds * 1e6 / self.publications as f64,
            others_share: usage.others_share(),
        })
    }

    /// Publishes in groups of `group`; the next one starts when all answers and deliveries of the last are there.
    fn publish(
        &self,
        count: usize,
        group: usize,
        field: &str,
        publisher: &mut By,
        generator: &mut Generator,
        deliveries: &mut Deliveries,
    ) -> Result<()> {
        let expected = (count * self.subscribers) as u64 + deliveries.0;
        let mut begun = 0;
        let mut progress = StallTimer::default();
        while begun < count || !publisher.is_idle() || deliveries.0 < expected {
            let is_group_done =
                expected - deliveries.0 == ((count - begun) * self.subscribers) as u64;
            if begun < count && publisher.is_idle() && is_group_done {
                let group = group.min(count - begun);
                let channels = (begun..begun + group).map(|number| channel(number % self.channels));
                publisher.publish(channels, field)?;
                begun += group;
            }
            if generator.turn(Some(Duration::ZERO), deliveries)? {
                publisher.receive_requests()?;
            }
            publisher.receive_stream()?;
            let state = || format!("{begun} of {count} published, {} delivered", deliveries.0);
            progress.check(begun as u64 + deliveries.0, state)?;
        }
        Ok(())
    }
}

/// Both ways to publish.
enum By {
    Requests(Publisher),
    Stream(StreamPublisher),
}

impl By {
    fn is_idle(&self) -> bool {
        match self {
            Self::Requests(publisher) => publisher.is_idle(),
            Self::Stream(publisher) => publisher.missing() == 0,
        }
    }

    fn publish(&mut self, channels: impl Iterator<Item = String>, field: &str) -> Result<()> {
        match self {
            Self::Requests(publisher) => {
                let mut requests =
                    channels.map(|channel| publish_request(&channel, field, API_KEY));
                requests.try_for_each(|request| publisher.publish(&request))
            }
            Self::Stream(publisher) => publisher.publish(channels, field),
        }
    }

    fn receive_requests(&mut self) -> Result<()> {
        match self {
            Self::Requests(publisher) => publisher.receive(),
            Self::Stream(_) => Ok(()),
        }
    }

    fn receive_stream(&mut self) -> Result<()> {
        match self {
            Self::Requests(_) => Ok(()),
            Self::Stream(publisher) => publisher.receive(),
        }
    }
}

const WARM_UP: usize = 2000;
const HEADER: &str = "round  publications by    CPU µs   others %";
