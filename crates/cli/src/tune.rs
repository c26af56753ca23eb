//! `fanwire tune`: measures how a file of typical messages compresses, and recommends settings.
//! In: files of messages → out: tables and advice on stdout, progress on stderr, optionally an HTML page.
//! Uses the crate `tune`, which touches no file and no terminal. Never: the server.
//! Changed here: reading and printing. Measurements and recommendations live in `crates/tune`.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail};
use fanwire_tune::{Advice, Clock, EXPECTED, Measurement, Mode, Sample, Scale, Settings};

use crate::arguments::Tune;
use crate::document;
use crate::progress::Progress;

pub(crate) fn run(arguments: &Tune) -> Result<()> {
    if let Some(html) = &arguments.html
        && let Some(same) = arguments.files.iter().find(|file| is_same(file, html))
    {
        bail!("--html would overwrite {}, which is an input file", same.display());
    }
    // Reads all files first, so that an error in the last one is reported before minutes of measuring.
    let samples = arguments
        .files
        .iter()
        .map(|file| read(file, arguments.messages_max))
        .collect::<Result<Vec<_>>>()?;
    let mut page = arguments.html.as_deref().map(open_page).transpose()?;
    let settings = Settings { level: arguments.level, channels: arguments.channels };
    let scale = Scale {
        dollars_per_gb: arguments.price,
        publications_per_second: arguments.rate,
        receivers: arguments.fan_out,
    };
    let origin = Instant::now();
    let now = || origin.elapsed();
    let depths = if page.is_some() { fanwire_tune::depths(settings.channels).count() } else { 0 };
    let steps = samples.len() * (fanwire_tune::count(settings.channels) + depths);
    let mut progress = Progress::of_stderr(steps);
    let mut findings = Vec::new();
    for sample in &samples {
        let mut step = |mode: Mode| progress.step(&format!("{}: {}", sample.file, mode.title()));
        let mut report = fanwire_tune::measure(sample, settings, Clock(&now), &mut step)?;
        if page.is_some() {
            report.curves = fanwire_tune::curves(sample, settings, Clock(&now), &mut step)?;
        }
        let advice = Advice::new(&report, scale);
        progress.clear();
        document::print(&fanwire_tune::report(&report, &advice))?;
        findings.push((report, advice));
    }
    match (&arguments.html, &mut page) {
        (Some(html), Some(page)) => write_page(html, page, &findings),
        _ => Ok(()),
    }
}

/// Opens the page before measuring, to report errors early. Existing content stays until the new page is written.
fn open_page(path: &Path) -> Result<File> {
    let file = File::options().create(true).write(true).truncate(false).open(path);
    file.with_context(|| format!("the page {} cannot be written", path.display()))
}

fn write_page(path: &Path, file: &mut File, findings: &[(Measurement, Advice)]) -> Result<()> {
    let page = fanwire_tune::page(findings);
    let is_file = file.metadata().is_ok_and(|about| about.is_file());
    let truncated = if is_file { file.set_len(0) } else { Ok(()) };
    truncated
        .and_then(|()| file.write_all(page.as_bytes()))
        .with_context(|| format!("the page {} cannot be written", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// Reads at most `messages_max` messages of a file.
pub(crate) fn read(path: &Path, messages_max: usize) -> Result<Sample> {
    let name = path.display();
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!("{name}: there is no such file; give {EXPECTED}"),
        _ => anyhow!(error).context(format!("{name} cannot be read")),
    })?;
    let about = file.metadata().with_context(|| format!("{name} cannot be read"))?;
    if about.is_dir() {
        bail!("{name} is a directory; give {EXPECTED}");
    }
    let mut bytes = Vec::new();
    let limited = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    limited.with_context(|| format!("{name} cannot be read"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!("{name} has more than {} MiB; a part of it is enough", FILE_BYTES_MAX >> 20);
    }
    fanwire_tune::read(path, &bytes, messages_max).map_err(|error| anyhow!("{name}{error}"))
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The file is read into memory; typical samples are a few megabytes.
const FILE_BYTES_MAX: u64 = 1 << 30;
