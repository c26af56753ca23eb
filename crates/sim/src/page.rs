//! A run as a page to look at: one HTML file with nodes, links, clients and faults over time (`page.html` draws them).
//! In: the plan, the verdict with its story → out: the text of the file.
//! Uses the samples of `world/samples.rs`. Never: other files; the page works without a network.
//! Changed here: which facts a page has. How they look stands in `page.html`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::plan::SeedPlan;
use crate::world::Verdict;

/// The page of a run.
pub fn html(title: &str, plan: &SeedPlan, verdict: &Verdict) -> String {
    let faults = plan.faults.iter().map(|fault| {
        let from = fault.at.as_secs_f64();
        let until = (fault.at + fault.lasts).as_secs_f64();
        json!({ "from": from, "until": until, "text": format!("{:?}", fault.kind) })
    });
    let until = plan.busy + AFTERWARDS;
    let is_early = |sample: &&Value| sample["at"].as_f64() < Some(until.as_secs_f64());
    let samples: Vec<&Value> = verdict.story.samples.iter().filter(is_early).collect();
    let broken = verdict.violation.as_ref().map(|it| format!("{}: {}", it.promise, it.text));
    let run = json!({
        "title": title,
        "seed": plan.seed,
        "faults": faults.collect::<Vec<_>>(),
        "broken": broken,
        "lines": verdict.story.lines_to_look_at(),
        "samples": samples,
    });
    let text = run.to_string().replace("</", "<\\/");
    include_str!("page.html").replace("RUN_AS_JSON", &text)
}

/// A page ends this long after clients and backends were busy.
const AFTERWARDS: Duration = Duration::from_secs(15);
