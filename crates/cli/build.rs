//! Facts of the build for `fanwire version`.
//! In: the checkout, the variable `FANWIRE_COMMIT`, cargo's variables → out: variables of the compiler.
//! May run git and rustc; without a checkout the commit is that of the variable, or "unknown".
//! Change the text of `fanwire version` in `src/document.rs`.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let in_checkout =
        |words: &[&str]| first_line(Command::new("git").current_dir(&folder).args(words));
    let given = env::var("FANWIRE_COMMIT").ok();
    let commit = given.or_else(|| in_checkout(&["rev-parse", "--short=12", "HEAD"]));
    let compiler =
        env::var_os("RUSTC").and_then(|rustc| first_line(Command::new(rustc).arg("--version")));
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let features: Vec<String> = env::vars()
        .filter_map(|(name, _)| name.strip_prefix("CARGO_FEATURE_").map(str::to_lowercase))
        .filter(|name| name != "default")
        .collect();
    for (name, value) in [
        ("COMMIT", commit.unwrap_or_else(|| "unknown".to_owned())),
        ("COMPILER", compiler.unwrap_or_default()),
        ("TARGET", variable("TARGET")),
        ("PROFILE", variable("PROFILE")),
        ("FEATURES", features.join(" ")),
    ] {
        // `cargo run` sets them for the program, too: with the prefix of keys each would be an unknown one.
        println!("cargo::rustc-env=BUILD_{name}={value}");
    }
    println!("cargo::rerun-if-env-changed=FANWIRE_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    // The file that git writes at each commit and checkout.
    if let Some(log) =
        in_checkout(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
        && Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}
