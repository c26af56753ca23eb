//! Scenarios as a table and as pictures in SVG.
//! In: steps of scenarios → out: text.
//! Pure. Never: files.
//! Changed here: columns, colours, which quantity a picture shows.

use std::fmt::Write as _;

use super::scenarios::{CHANNEL, RETURN, Scenario, ZONE};
use super::{STEP, Step, run};

/// The quantity of a picture: its name and its value.
type Quantity = (&'static str, fn(&Step) -> f64);

/// The rows of the table in docs/scaling.md.
pub fn table(scenarios: &[Scenario]) -> String {
    let mut table = String::from(
        "| what happens | connects/s | cores busy | wait for a node | commands/s | wait for Redis | all connected and subscribed |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for Scenario { picture, name, setting } in scenarios {
        let steps = run(setting);
        let most = |value: fn(&Step) -> f64| steps.iter().map(value).fold(0.0, f64::max);
        let connects = most(|step| step.connects) / STEP;
        let commands = most(|step| step.commands) / STEP;
        let busy = most(|step| step.node_busy) * 100.0;
        let node_wait = most(|step| step.node_wait);
        let engine_wait = most(|step| step.engine_wait);
        let are_away =
            |step: &Step| step.connected < setting.clients * 0.999 || step.engine_wait > 1.0;
        let end = match steps.iter().rposition(are_away) {
            Some(last) if last + 1 == steps.len() => "not within this time".to_owned(),
            Some(last) => format!("after {:.0} s", (last + 1) as f64 * STEP),
            None => "always".to_owned(),
        };
        let _ = writeln!(
            table,
            "| {picture}: {name} | {connects:.0} | {busy:.0} % | {node_wait:.1} s | {commands:.0} | \
             {engine_wait:.1} s | {end} |",
        );
    }
    table
}

/// A picture for each group of scenarios, with its name.
pub fn pictures(scenarios: &[Scenario]) -> Vec<(&'static str, String)> {
    let engine_wait: Quantity = ("s in the queue of Redis", |step| step.engine_wait);
    let connected: Quantity = ("million clients connected", |step| step.connected / 1e6);
    let node_wait: Quantity = ("s in the queue of a node", |step| step.node_wait);
    let quantities = [(ZONE, engine_wait), (RETURN, connected), (CHANNEL, node_wait)];
    let draw_all = |(picture, quantity): (&'static str, Quantity)| {
        let of_picture = scenarios.iter().filter(|it| it.picture == picture);
        (picture, draw(quantity, &of_picture.collect::<Vec<_>>()))
    };
    quantities.map(draw_all).into()
}

fn draw(quantity: Quantity, scenarios: &[&Scenario]) -> String {
    let (unit, value) = quantity;
    let runs: Vec<Vec<Step>> = scenarios.iter().map(|it| run(&it.setting)).collect();
    let length = runs.iter().map(Vec::len).max().unwrap_or(1);
    let top = runs.iter().flatten().map(value).fold(1e-9, f64::max);
    let x = |step: usize| 70.0 + 620.0 * step as f64 / length as f64;
    let y = |value: f64| 190.0 - 160.0 * value / top;
    let mut svg = format!("{HEAD}<text x=\"70\" y=\"16\">{unit}</text>\n");
    for quarter in 0..=4 {
        let part = f64::from(quarter) / 4.0;
        let height = y(top * part);
        let at = x(length * quarter as usize / 4);
        let seconds = length as f64 * STEP * part;
        let _ = writeln!(
            svg,
            "<path class=\"grid\" d=\"M70 {height:.0}H690\"/>\
             <text x=\"64\" y=\"{:.0}\" text-anchor=\"end\">{:.2}</text>\
             <text x=\"{at:.0}\" y=\"208\" text-anchor=\"middle\">{seconds:.0} s</text>",
            height + 4.0,
            top * part,
        );
    }
    for (number, (steps, scenario)) in runs.iter().zip(scenarios).enumerate() {
        let shown = steps.iter().enumerate().step_by(length.div_ceil(POINTS));
        let points = shown.map(|(step, it)| format!("{:.1},{:.1}", x(step), y(value(it))));
        let line = points.collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            svg,
            "<polyline class=\"c{number}\" points=\"{line}\"/>\
             <text class=\"c{number}\" x=\"{}\" y=\"{}\">{}</text>",
            70 + 310 * (number % 2),
            226 + 14 * (number / 2),
            scenario.name,
        );
    }
    svg + "</svg>\n"
}

/// Points of a line, about.
const POINTS: usize = 300;
const HEAD: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 250\" role=\"img\"><style>\
    :root{color-scheme:light dark}text{font:10px system-ui,sans-serif;fill:#778}.grid{stroke:#9993}\
    polyline{fill:none;stroke-width:1.5}polyline.c0{stroke:#0b6bcb}text.c0{fill:#0b6bcb}\
    polyline.c1{stroke:#c2410c}text.c1{fill:#c2410c}polyline.c2{stroke:#15803d}text.c2{fill:#15803d}\
    polyline.c3{stroke:#a21caf}text.c3{fill:#a21caf}</style>";
