//! Row `flood` of `distance`: what subscribers see of a backend that publishes by a stream as fast as the server reads.
//! In: both builds → out: p99 of other publications while the stream floods; the quiet time before it is the peer.
//! Uses the subscribers of `witness`, and a stream with many commands under way.
//! Changed here: how much the stream has under way.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::{Distance, Figure};
use crate::stats::percentile;
use crate::target::{API_KEY, Target};
use crate::witness::Witness;
use fanwire_load::generator::stream_publisher::StreamPublisher;

pub(super) fn measure(distance: &Distance) -> Result<Vec<Figure>> {
    let latencies = distance.of_builds(|binary| flooded(distance, binary))?;
    let name = "100 others while a stream floods";
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
    let others = Witness::open(target.address(), OTHERS)?;
    let mut stream = StreamPublisher::open(target.address(), "localhost", "/api/stream", API_KEY)?;
    let has_ended = AtomicBool::new(false);
    let [before, during] = thread::scope(|scope| {
        let (quiet_over, flood_begins) = mpsc::channel();
        let others = scope.spawn(|| others.watch(quiet_over, &has_ended));
        let flood = flood_begins.recv().map_err(Into::into).and_then(|()| {
            let until = Instant::now() + Duration::from_secs_f64(distance.seconds);
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
        });
        has_ended.store(true, Relaxed);
        let latencies = others.join().expect("the thread of the others does not panic");
        flood.and(latencies)
    })?;
    Ok(Flooded { before: percentile(&before, 0.99), during: percentile(&during, 0.99) })
}

const OTHERS: usize = 100;
/// Commands without an answer.
const UNDER_WAY: usize = 10_000;
const PAUSE: Duration = Duration::from_millis(1);
/// Commands of one chunk.
const AT_ONCE: usize = 100;
