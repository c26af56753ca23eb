//! Which steps `cargo xtask interop` takes for which names.
//! In: names → out: the names of the steps.
//! May use `needs` only; installs nothing.
//! The table itself is in `interop`.

use super::needs;

#[test]
fn without_names_everything_is_needed() {
    check(&[], &["build", "npm", "pip", "go-clients", "chromium", "firefox", "interop"]);
}

#[test]
fn names_of_scenarios_alone_choose_every_stack() {
    check(&["ctx"], &["build", "npm", "pip", "go-clients", "chromium", "firefox", "interop"]);
}

#[test]
fn a_stack_needs_its_own_steps_once_and_the_common_ones() {
    check(&["undici", "mixed"], &["build", "npm", "interop"]);
    check(&["gws", "coder", "firefox"], &["build", "npm", "go-clients", "firefox", "interop"]);
}

fn check(names: &[&str], expect: &[&str]) {
    assert_eq!(needs(names), expect);
}
