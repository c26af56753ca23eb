//! Pages of metrics on a pipe, so that parsers of others can read labels with any text.
//! In: texts on stdin, each a u32 (little-endian) of bytes, then these → out: a page with each text as a label of every kind of metric.
//! Uses the writer of scrapes alone; stops at the first text that is not UTF-8, and says why.
//! Changed here: how texts are read. What is expected of the pages stands in `tests/interop/python/test_metrics.py`.

#![forbid(unsafe_code)]

use std::{
    error::Error,
    io::{self, Read},
};

use fanwire_telemetry::{Labels, MetricsWriter, ScrapeWriter, TextFormat};

fn main() -> Result<(), Box<dyn Error>> {
    let format = match std::env::args().nth(1).as_deref() {
        Some("prometheus") => TextFormat::Prometheus,
        Some("openmetrics") => TextFormat::OpenMetrics,
        _ => return Err("usage: scrape prometheus|openmetrics < TEXTS > PAGE".into()),
    };
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let labels = labels(&input)?;
    let mut writer = ScrapeWriter::new(format, true);
    writer.set_prefix("fanwire_");
    // Centrifugo has these metrics, so that copies are read, too.
    let ones = || labels.iter().cloned().map(|labels| (labels, 1));
    writer.gauges("node_num_clients", "A gauge", ones());
    writer.counters("proxy_errors", "A counter", ones());
    let rows: Vec<_> = labels.iter().map(|labels| (labels.clone(), &[1, 0][..], 0.5)).collect();
    writer.histogram("cluster_pub_sub_lag_seconds", "A histogram", &[1_000_000], &rows);
    print!("{}", writer.finish());
    Ok(())
}

fn labels(mut input: &[u8]) -> Result<Vec<Labels<1>>, Box<dyn Error>> {
    let mut labels = Vec::new();
    while let Some((size, rest)) = input.split_first_chunk() {
        let size = u32::from_le_bytes(*size) as usize;
        let (text, rest) = rest.split_at_checked(size).ok_or("a text is cut")?;
        labels.push([("text", str::from_utf8(text)?.to_owned())]);
        input = rest;
    }
    Ok(labels)
}
