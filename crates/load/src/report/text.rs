//! The report as text for a terminal.
//! In: a report → out: lines of at most 100 characters, but for names and errors.
//! Pure. Never: colours, width of the terminal.
//! Changed here: how figures are shown; what they are is in `report`.

use std::fmt::{self, Display, Formatter};

use super::{Ending, Percentiles, Report};
use crate::plan::Pace;

impl Display for Report {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.write_conditions(out)?;
        self.write_figures(out)?;
        self.write_groups(out)?;
        self.write_verdict(out)
    }
}

impl Report {
    fn write_conditions(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let machine = &self.machine;
        let plan = &self.configuration;
        writeln!(
            out,
            "machine     {}, {} cores, {} GiB, {}",
            machine.processor.as_deref().unwrap_or("unknown processor"),
            machine.cores,
            machine.memory_bytes.unwrap_or(0) >> 30,
            machine.kernel,
        )?;
        let version = self.server.version.as_deref().unwrap_or("of unknown version");
        writeln!(
            out,
            "server      {} ({version}), fanwire bench {}",
            self.server.url, self.version
        )?;
        let compression = if plan.compression { "compression offered" } else { "no compression" };
        writeln!(
            out,
            "connections {} with {} of {} channels each, {}, {compression}",
            grouped(plan.connections as f64),
            plan.subscriptions,
            grouped(f64::from(plan.channels)),
            plan.encoding,
        )?;
        writeln!(
            out,
            "payload     {}: {:.0} bytes, {:.1} bits of entropy per byte",
            plan.payload, plan.payload_bytes, plan.payload_bits_per_byte
        )?;
        let pace = match plan.pace {
            Pace::Open { rate } => format!("open loop, {} publications/s planned", grouped(rate)),
            Pace::Closed { outstanding } => format!(
                "CLOSED LOOP, {outstanding} outstanding: delays of the server lower the rate and are hidden"
            ),
        };
        writeln!(
            out,
            "pace        {pace}, by {}; {} s after {} s of warm-up\n",
            plan.publish, plan.seconds, plan.warm_up_seconds
        )
    }

    fn write_figures(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "published   {} ({}/s)",
            grouped(self.published as f64),
            grouped(self.achieved_rate)
        )?;
        if self.unsent > 0 {
            writeln!(
                out,
                "not sent    {}: due, and not accepted by the server in time",
                grouped(self.unsent as f64)
            )?;
        }
        write!(
            out,
            "delivered   {} ({}/s)",
            grouped(self.deliveries as f64),
            grouped(self.deliveries_per_second)
        )?;
        match self.bytes_per_delivery {
            Some(bytes) => writeln!(out, ", {bytes:.1} bytes each with frame headers")?,
            None => writeln!(out)?,
        }
        writeln!(
            out,
            "\nms            {:>9}{:>9}{:>9}{:>9}{:>9}",
            "p50", "p90", "p99", "p99.9", "max"
        )?;
        write_row(out, "arrival", &self.latency)?;
        write_row(out, "last arrival", &self.last_arrival)?;
        if self.parts.len() > 1 {
            for (number, part) in self.parts.iter().enumerate() {
                write_row(out, &format!("run {}", number + 1), &part.latency)?;
            }
        }
        write_row(out, "generator", &self.generator.lag)?;
        writeln!(
            out,
            "  arrival: from the planned time; generator: its own delay, part of the others"
        )?;
        let server = &self.server;
        if let (Some(cpu), Some(share)) = (server.cpu_seconds, server.cpu_share) {
            write!(out, "\nserver      {:.1} % of a core ({cpu:.2} s)", share * 100.0)?;
            if let Some(rate) = server.deliveries_per_cpu_second {
                write!(out, ", {} deliveries per CPU-second", grouped(rate))?;
            }
            if let (Some(before), Some(after)) =
                (server.resident_bytes_before, server.resident_bytes_after)
            {
                write!(out, ", {:.1} MiB, {:+.1} MiB", mib(after), mib(after) - mib(before))?;
            }
            writeln!(out)?;
        }
        writeln!(out, "generator   busy {:.0} % of the time", self.generator.busy_share * 100.0)
    }

    fn write_groups(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "\nconnections {:>8}{:>12}{:>9}{:>11}{:>11}{:>9}{:>11}  closed",
            "", "received", "lost", "duplicates", "reordered", "broken", "conflated"
        )?;
        for (group, counts) in self.groups() {
            if counts.subscribers == 0 {
                continue;
            }
            let closed: Vec<String> = counts
                .disconnects
                .iter()
                .map(|(code, count)| format!("{count} × {code}"))
                .collect();
            writeln!(
                out,
                "{:<12}{:>8}{:>12}{:>9}{:>11}{:>11}{:>9}{:>11}  {}",
                group.name(),
                counts.subscribers,
                counts.received,
                counts.lost,
                counts.duplicates,
                counts.reordered,
                counts.broken,
                counts.conflated,
                if closed.is_empty() { "–".to_owned() } else { closed.join(", ") },
            )?;
        }
        Ok(())
    }

    fn write_verdict(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(out)?;
        if self.ending == Ending::Interrupted {
            writeln!(out, "interrupted: these are the figures until then")?;
        }
        if self.deliveries == 0 {
            writeln!(out, "nothing was delivered: there is nothing to conclude")?;
        }
        for reason in &self.invalid {
            writeln!(out, "INVALID: {reason}")?;
        }
        for fault in &self.faults {
            writeln!(out, "FAULT: {fault}")?;
        }
        if self.faults.is_empty() && self.deliveries > 0 {
            writeln!(out, "every publication arrived once, in order, intact")?;
        }
        Ok(())
    }
}

fn write_row(out: &mut Formatter<'_>, name: &str, row: &Percentiles) -> fmt::Result {
    let Percentiles { p50_ms, p90_ms, p99_ms, p999_ms, max_ms, .. } = row;
    let figures = [p50_ms, p90_ms, p99_ms, p999_ms, max_ms].map(|one| format!("{one:>9.3}"));
    writeln!(out, "{name:<14}{}", figures.concat())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// A whole number with commas: 1234567.8 → "1,234,568".
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
