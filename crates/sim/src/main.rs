//! Plays seeds: one with its story, or many until a promise is broken.
//! In: a seed, a number of seeds, or a time → out: the story of a failure, an exit status.
//! Uses the simulation; the clock only to stop. Never: a seed that it does not print.
//! Changed here: the command line. `cargo xtask sim` passes its words to this program.
#![forbid(unsafe_code)]

mod mutations;

use std::hash::Hasher as _;
use std::panic;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Error, Result, bail};
use fanwire_sim::chance::SeededRandom;
use fanwire_sim::classes::{exact, plot, scenarios};
use fanwire_sim::page;
use fanwire_sim::plan::SeedPlan;
use fanwire_sim::shrink::shrink;
use fanwire_sim::story::EventHash;
use fanwire_sim::world::{Violation, World};

/// Events, frames and publications are small allocations, of which each second of a run has thousands.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--seed", seed] => Ok(tell(number(seed)?)),
        ["--seed", seed, "--page", file] => {
            let title = format!("Seed {seed}");
            write_page(file, &title, SeedPlan::of_seed(number(seed)?))
        }
        ["--example", name, "--page", file] => {
            let (title, plan) = SeedPlan::example(name).context("no example has this name")?;
            write_page(file, title, plan)
        }
        ["--seeds", first, count] => {
            let first = number(first)?;
            play(first..first + number(count)?, false)
        }
        ["--hash", first, count] => hash(number(first)?, number(count)?),
        ["--speed"] => measure(),
        ["--classes", folder] => show_classes(Path::new(folder)),
        ["--agreement", clients] => {
            let compared = exact::compare(number(clients)? as usize).map_err(Error::msg)?;
            print!("{compared}");
            Ok(ExitCode::SUCCESS)
        }
        ["--seconds", seconds] => play_for(Duration::from_secs(number(seconds)?)),
        ["--hours", hours] => play_for(Duration::from_secs(number(hours)? * 3600)),
        ["--hunt", first, seconds] => {
            let until = cpu_seconds()? + number(seconds)? as f64;
            let is_early = |_: &u64| cpu_seconds().is_ok_and(|now| now < until);
            play((number(first)?..).take_while(is_early), true)
        }
        ["--mutations"] => mutations::main(SECONDS_PER_MUTATION, &[]),
        ["--mutations", seconds, names @ ..] => mutations::main(number(seconds)?, names),
        _ => bail!("{USAGE}"),
    }
}

fn number(word: &str) -> Result<u64> {
    word.parse().with_context(|| format!("{word} is no number"))
}

/// Plays a seed, and tells the story of its failure.
fn tell(seed: u64) -> ExitCode {
    let plan = SeedPlan::of_seed(seed);
    println!("{plan:#?}");
    let verdict = World::new(plan.clone(), true).run();
    println!("{} events, hash {:016x}", verdict.events, verdict.hash);
    let Some(violation) = verdict.violation else {
        println!("seed {seed}: every promise was kept");
        return ExitCode::SUCCESS;
    };
    report(seed, &violation);
    let smallest = shrink(&plan);
    let verdict = World::new(smallest.clone(), true).run();
    let violation = verdict.violation.expect("it fails");
    println!("\nthe smallest plan that fails:\n{smallest:#?}\n");
    let lines = verdict.story.lines_about(&violation.words);
    let first = lines.len().saturating_sub(LINES_MAX);
    lines[first..].iter().for_each(|line| println!("{line}"));
    report(seed, &violation);
    ExitCode::FAILURE
}

/// Plays a plan and writes a page that shows the run.
fn write_page(file: &str, title: &str, plan: SeedPlan) -> Result<ExitCode> {
    let verdict = World::new(plan.clone(), true).run();
    std::fs::write(file, page::html(title, &plan, &verdict))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what happens to ten million clients, and writes the pictures.
fn show_classes(folder: &Path) -> Result<ExitCode> {
    let scenarios = scenarios::all();
    print!("{}", plot::table(&scenarios));
    for (name, svg) in plot::pictures(&scenarios) {
        std::fs::write(folder.join(format!("ten-million-{name}.svg")), svg)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Plays seeds one after another, all of them or until one fails.
fn play(seeds: impl Iterator<Item = u64>, stops: bool) -> Result<ExitCode> {
    let before = cpu_seconds()?;
    let mut count = 0;
    let mut failures = 0;
    for seed in seeds {
        count += 1;
        let run = || World::new(SeedPlan::of_seed(seed), false).run();
        let verdict = panic::catch_unwind(run).unwrap_or_else(|cause| {
            println!("seed {seed} panicked");
            panic::resume_unwind(cause)
        });
        if let Some(violation) = verdict.violation {
            report(seed, &violation);
            failures += 1;
            if stops {
                break;
            }
        }
    }
    let took = cpu_seconds()? - before;
    println!("{count} seeds, {failures} of which failed, in {took:.1} s of CPU");
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays fresh seeds for a time.
fn play_for(duration: Duration) -> Result<ExitCode> {
    let until = Instant::now() + duration;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let first = SeededRandom::new(now.as_nanos() as u64).bits() >> 24;
    println!("first seed {first}");
    play((first..).take_while(|_| Instant::now() < until), true)
}

/// Plays each seed on two threads, whose hash tables have other keys, and compares their events. Prints one hash of all events, by
/// which builds and machines are compared.
fn hash(first: u64, count: u64) -> Result<ExitCode> {
    let seeds = first..first + count;
    let [once, again] = [seeds.clone(), seeds.clone()].map(|seeds| {
        let hash_of = |seed| World::new(SeedPlan::of_seed(seed), false).run().hash;
        thread::spawn(move || seeds.map(hash_of).collect::<Vec<u64>>())
    });
    let once = once.join().expect("no seed panics");
    let again = again.join().expect("no seed panics");
    let different = seeds.zip(once.iter().zip(&again)).find(|(_, (one, other))| one != other);
    if let Some((seed, _)) = different {
        bail!("seed {seed} had other events when it was played again");
    }
    let mut all = EventHash::default();
    once.iter().for_each(|hash| all.write_u64(*hash));
    println!("{count} seeds from {first}, each twice: equal, hash {:016x}", all.finish());
    Ok(ExitCode::SUCCESS)
}

/// Plays an hour and prints the CPU time that it took.
fn measure() -> Result<ExitCode> {
    let plan = SeedPlan::of_hour();
    let hosts = plan.hosts as f64;
    let before = cpu_seconds()?;
    let verdict = World::new(plan, false).run();
    let took = cpu_seconds()? - before;
    println!("an hour of {hosts} nodes: {} events in {took:.2} s of CPU", verdict.events);
    println!("8 hours on two cores: {:.0} node-hours", hosts * 2.0 * 8.0 * 3600.0 / took);
    if let Some(violation) = verdict.violation {
        bail!("{}: {}", violation.promise, violation.text);
    }
    Ok(ExitCode::SUCCESS)
}

/// CPU time of this thread, as Linux counts it.
fn cpu_seconds() -> Result<f64> {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = counted.split(' ').next().context("three numbers")?;
    Ok(nanos.parse::<f64>()? / 1e9)
}

fn report(seed: u64, violation: &Violation) {
    println!("seed {seed} broke the promise: {}\n  {}", violation.promise, violation.text);
}

const USAGE: &str = "\
use one of these:
  --seed N                     the story of one seed; of a failure the smallest plan that still fails
  --seed N --page FILE         a page that shows it: nodes, links, clients and faults over time
  --example NAME --page FILE   the same of an example: recovery, partition or deploy
  --seeds FIRST COUNT          that many seeds, all of them
  --hunt FIRST SECONDS         seeds from FIRST on, until one fails or took so much CPU time
  --hash FIRST COUNT           that many seeds, each twice: one hash of all events
  --speed                      an hour of 3 nodes and 100 clients: the CPU time that it takes
  --classes FOLDER             ten million clients as counts: a table, and pictures in this folder
  --agreement CLIENTS          so many clients one by one next to the same as counts
  --seconds S, --hours H       fresh seeds for that time
  --mutations                  faults of the past, brought back one after another: a table, within an hour on two cores
  --mutations SECONDS [NAME …] some of them, each for so much CPU time";
/// CPU time for each fault of the past.
const SECONDS_PER_MUTATION: u64 = 200;
/// Lines of a story that are printed: the last ones.
const LINES_MAX: usize = 150;
