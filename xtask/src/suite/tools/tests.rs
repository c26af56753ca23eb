//! Tests of the line that says what is installed, and of the reason why a step was not run.
//! In: tools and steps → out: the texts.
//! Uses the wording only; installs nothing.
//! That the table names every step it should is seen on a machine without the tools.

use super::*;

const GO: Tool = Tool {
    name: "Go",
    package: "golang-go",
    find: || Ok(()),
    needed_by: &["go", "oracle"],
    used_by: &["interop"],
};

#[test]
fn one_line_says_what_is_installed_and_for_which_steps() {
    let node = Tool { name: "Node.js", package: "nodejs", needed_by: &["js"], used_by: &[], ..GO };
    let line = plan(&[&GO, &node], &["fmt", "js", "oracle", "interop"]);
    assert_eq!(line, "installing Debian packages: golang-go for oracle, interop; nodejs for js");
}

#[test]
fn a_tool_is_asked_for_only_when_a_step_of_the_run_uses_it() {
    assert!(GO.is_for(&["fmt", "oracle"]) && GO.is_for(&["interop"]));
    assert!(!GO.is_for(&["fmt", "js"]));
}

#[test]
fn a_tool_that_cannot_be_had_is_the_reason_why_a_step_was_not_run() {
    let missing = Missing::new(GO.name, "no network", GO.needed_by);
    assert_eq!(missing.to_string(), "needs Go: no network");
}

#[test]
fn every_tool_names_steps_that_there_are() {
    let known: Vec<&str> = super::super::lanes::steps(super::super::STAGES)
        .map(|step| step.name)
        .chain(["chromium", "firefox"])
        .collect();
    for tool in TOOLS {
        for step in tool.needed_by.iter().chain(tool.used_by) {
            assert!(known.contains(step), "{}: {step}", tool.name);
        }
    }
}
