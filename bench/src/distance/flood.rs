//! Rows `flood` and `tenant` of `distance`: what subscribers see of a backend that publishes by a stream as fast as the server reads, and
//! of clients that publish ten times what the limit of their namespace allows.
//! In: both builds → out: p99 of other publications during that; the quiet time before it is the peer.
//! Uses the subscribers of `witness`, a stream with many commands under way, and clients of the load generator.
//! Changed here: how much the stream has under way, and how much the tenant publishes.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::{Distance, Figure};
use crate::stats::percentile;
use crate::target::{API_KEY, Target};
use crate::witness::Witness;
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::stream_publisher::StreamPublisher;
use fanwire_load::generator::{Deliveries, Generator, Profile};

pub(super) fn measure(distance: &Distance) -> Result<Vec<Figure>> {
    line(distance, "100 others while a stream floods", |binary| flooded(distance, binary))
}

pub(super) fn measure_tenant(distance: &Distance) -> Result<Vec<Figure>> {
    line(distance, "100 others, a tenant at ten limits", |binary| exceeded(distance, binary))
}

fn line(
    distance: &Distance,
    name: &'static str,
    latencies: impl Fn(&Path) -> Result<Flooded>,
) -> Result<Vec<Figure>> {
    let latencies = distance.of_builds(latencies)?;
    let quiet = ("quiet", latencies.now.before);
    let during = latencies.line(name, "p99 ms", |flooded| flooded.during);
    Ok(vec![Figure { peer: Some(quiet), ..during }])
}

/// p99 in milliseconds.
struct Flooded {
    before: f64,
    during: f64,
}

fn flooded(distance: &Distance, binary: &Path) -> Result<Flooded> {
    let target = Target::fanwire(binary, Some(distance.setup.server_core), json!({}))?;
    let mut stream = StreamPublisher::open(target.address(), "localhost", "/api/stream", API_KEY)?;
    beside_others(distance, &target, |until| {
        while Instant::now() < until {
            if stream.missing() < UNDER_WAY {
                stream.publish((0..AT_ONCE).map(|_| "flood".to_owned()), "\"data\":1")?;
            } else {
                // The subscribers share this core.
                thread::sleep(PAUSE);
            }
            stream.flush()?;
            stream.receive()?;
        }
        Ok(())
    })
}

/// Clients of one namespace publish, and receive what is accepted. No client is disconnected for its refusals.
fn exceeded(distance: &Distance, binary: &Path) -> Result<Flooded> {
    let settings = json!({
        "client": { "rate_limit": { "refusal": { "limit": 0 } } },
        "channel": { "namespaces": [{
            "name": "tenant",
            "allow_subscribe_for_client": true,
            "allow_subscribe_for_anonymous": true,
            "allow_publish_for_client": true,
            "allow_publish_for_anonymous": true,
            "limits": { "publish": { "limit": TENANT_LIMIT } },
        }]},
    });
    let target = Target::fanwire(binary, Some(distance.setup.server_core), settings)?;
    let channels = vec!["tenant:own".to_owned()];
    let profile = Profile { plain: false, encoding: Encoding::Json, compression: false, channels };
    let mut clients = Generator::new(false)?;
    clients.open(target.address(), TENANT_CLIENTS, &profile)?;
    beside_others(distance, &target, |until| {
        let pause = Duration::from_secs(1) / (10 * TENANT_LIMIT);
        let mut due = Instant::now();
        for client in (0..TENANT_CLIENTS).cycle() {
            if Instant::now() >= until {
                break;
            }
            clients.send(client, TENANT_PUBLISH)?;
            due += pause;
            let left = due.saturating_duration_since(Instant::now());
            clients.turn(Some(left), &mut Deliveries::default())?;
        }
        Ok(())
    })
}

/// The latencies of others in a quiet time, and while `work` runs until the moment that it is given.
fn beside_others(
    distance: &Distance,
    target: &Target,
    work: impl FnOnce(Instant) -> Result<()>,
) -> Result<Flooded> {
    let others = Witness::open(target.address(), OTHERS)?;
    let ((), [before, during]) =
        others.during(|| work(Instant::now() + Duration::from_secs_f64(distance.seconds)))?;
    Ok(Flooded { before: percentile(&before, 0.99), during: percentile(&during, 0.99) })
}

const OTHERS: usize = 100;
/// Commands without an answer.
const UNDER_WAY: usize = 10_000;
const PAUSE: Duration = Duration::from_millis(1);
/// Commands of one chunk.
const AT_ONCE: usize = 100;

/// Publications a second that the namespace of the tenant allows.
const TENANT_LIMIT: u32 = 100;
const TENANT_CLIENTS: usize = 10;
const TENANT_PUBLISH: &[u8] = br#"{"id":9,"publish":{"channel":"tenant:own","data":1}}"#;
