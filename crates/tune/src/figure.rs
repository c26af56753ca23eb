//! Figures as people read them.
//! In: numbers → out: text with units.
//! Uses nothing. Never: rounds a figure that is calculated with.
//! Changed here: how a kind of figure looks; table, advice and page share it.

/// Bytes of an average message: `58.4`, `1,684`.
pub(crate) fn bytes(bytes: f64) -> String {
    if bytes < 999.95 { format!("{bytes:.1}") } else { grouped(bytes) }
}

/// `1,234,567`, rounded to a whole number.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = if number <= -0.5 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How many times smaller: `37×`, `4.6×`, `1.02×`.
pub(crate) fn ratio(ratio: f64) -> String {
    match ratio {
        0.0..9.95 => format!("{ratio:.2}×"),
        9.95..99.5 => format!("{ratio:.1}×"),
        _ => format!("{}×", grouped(ratio)),
    }
}

/// `0.42`, `12.3`, `1,234`.
pub(crate) fn micros(micros: f64) -> String {
    match micros {
        0.0..9.995 => format!("{micros:.2}"),
        9.995..999.95 => format!("{micros:.1}"),
        _ => grouped(micros),
    }
}

/// Memory in binary units: `8 B`, `41.2 KiB`, `256 MiB`.
pub(crate) fn memory(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    scaled(bytes, 1024.0, &units)
}

/// Traffic in decimal units, as it is billed: `58.1 TB`.
pub(crate) fn volume(bytes: f64) -> String {
    scaled(bytes, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

fn scaled(bytes: f64, step: f64, units: &[&str]) -> String {
    let mut value = bytes;
    let mut unit = 0;
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let text = if unit == 0 || value >= 99.95 { grouped(value) } else { format!("{value:.1}") };
    format!("{text} {}", units[unit])
}

/// `$5,087`, `$0.42`.
pub(crate) fn dollars(dollars: f64) -> String {
    if dollars.abs() < 99.995 { format!("${dollars:.2}") } else { format!("${}", grouped(dollars)) }
}

/// Time of processors: `1.4 cores`, `2.1 % of a core`.
pub(crate) fn cores(cores: f64) -> String {
    match cores {
        0.995.. => format!("{cores:.1} cores"),
        0.001.. => format!("{} of a core", percent(cores)),
        _ => "less than 0.1 % of a core".to_owned(),
    }
}

/// A share of one: `3.4 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

#[cfg(test)]
mod tests;
