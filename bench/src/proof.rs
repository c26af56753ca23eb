//! Scenario `proof`: the tables of docs/proof.md, each a claim of others next to our figure for it.
//! In: claims, binaries of both servers → out: Markdown tables, plots; with `--write` in the page, between its markers.
//! Uses the other scenarios for everything that needs a server, `encoder` and `marshal` for what needs none.
//! Changed here: which claims there are, and how long each may take.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::setup::Setup;
use fanwire_load::machine;
use page::Table;

mod calls;
mod curves;
mod encoder;
mod latency;
mod link;
mod marshal;
pub mod page;
mod prepared;
mod rooms;
mod timing;

/// The tables of docs/proof.md, in some ten minutes.
#[derive(Args)]
pub struct Proof {
    /// The program of Centrifugo, which gets columns of its own.
    #[arg(long, value_name = "FILE")]
    centrifugo: Option<PathBuf>,
    /// Show these claims only.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<Claim>,
    /// Five minutes instead of one for each curve.
    #[arg(long)]
    long: bool,
    /// Seconds instead of minutes, to see whether everything runs; the figures say nothing.
    #[arg(long, conflicts_with = "long")]
    short: bool,
    /// Put the tables into this page, too.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Folder of the plots.
    #[arg(long, default_value = "docs/images")]
    images: PathBuf,
    #[command(flatten)]
    setup: Setup,
}

/// A table of the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Claim {
    Prepared,
    Curves,
    Latency,
    Windows,
    RoundTrips,
    Marshal,
    Broadcast,
    Room,
    Areas,
}

impl Proof {
    /// Always true: a proof shows figures and judges none.
    ///
    /// # Errors
    /// A server that does not start, or anything wrong that a subscriber receives.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        let machine = machine_text();
        self.setup.pin_generator()?;
        let mut page = match &self.write {
            Some(path) => Some(fs::read_to_string(path).context("the page")?),
            None => None,
        };
        self.show("machine", &page::wrapped(&machine), &mut page)?;
        for claim in Claim::value_variants() {
            if !self.only.is_empty() && !self.only.contains(claim) {
                continue;
            }
            let began = Instant::now();
            let name = claim.to_possible_value().context("a name")?.get_name().to_owned();
            let table = self.table(*claim).with_context(|| name.clone())?;
            self.show(&name, &table.to_string(), &mut page)?;
            eprintln!("{name}: {:.0} s", began.elapsed().as_secs_f64());
        }
        Ok(true)
    }

    fn table(&self, claim: Claim) -> Result<Table> {
        match claim {
            Claim::Prepared => prepared::table(&self.setup, self.seconds(3.0)),
            Claim::Curves => curves::table(self),
            Claim::Latency => latency::table(&self.setup, self.duration(8.0)),
            Claim::Windows => encoder::windows(),
            Claim::RoundTrips => encoder::round_trips(self.duration(0.25)),
            Claim::Marshal => marshal::table(self.duration(0.1)),
            Claim::Broadcast => {
                calls::table(&self.setup, self.centrifugo.as_deref(), self.duration(0.7))
            }
            Claim::Room => rooms::room(&self.setup, self.seconds(8.0)),
            Claim::Areas => rooms::areas(&self.setup, self.seconds(5.0)),
        }
    }

    /// Prints a part and puts it into the page, which is written at once: a later claim may fail.
    fn show(&self, name: &str, text: &str, page: &mut Option<String>) -> Result<()> {
        println!("## {name}\n\n{text}");
        if let (Some(path), Some(whole)) = (&self.write, page) {
            *whole = page::with_part(whole, name, text)?;
            fs::write(path, whole)?;
        }
        Ok(())
    }

    fn seconds(&self, usual: f64) -> f64 {
        if self.short { usual / SHORTER } else { usual }
    }

    fn duration(&self, usual: f64) -> Duration {
        Duration::from_secs_f64(self.seconds(usual))
    }
}

/// One sentence about the machine of a run.
fn machine_text() -> String {
    let facts = machine::facts();
    format!(
        "Measured on {}, {} cores, {}. Server on one core, generator on another; ratios of one run carry over, single figures do not.\n",
        facts.processor.as_deref().unwrap_or("an unnamed processor"),
        facts.cores,
        facts.kernel,
    )
}

/// Divisor of the seconds of each claim with `--short`.
const SHORTER: f64 = 20.0;
