//! Tests of the arrows: the table points down, and the check sees what the table does not allow.
//! In: made-up workspaces → out: the findings.
//! Uses the real table and ARCHITECTURE.md; never runs cargo.
//! That the real workspace obeys is checked by `cargo xtask tidy` itself.

use super::*;

fn member(name: &str, uses: &[&str]) -> Crate {
    let uses = uses.iter().map(|used| (*used).to_owned()).collect();
    Crate { name: name.into(), folder: format!("crates/{name}"), uses }
}

fn house_with(changed: Crate) -> Vec<Crate> {
    let others = CRATES.iter().filter(|rule| rule.name != changed.name);
    others.map(|rule| member(rule.name, &[])).chain([changed.clone()]).collect()
}

#[test]
fn every_arrow_of_the_table_points_down() {
    for rule in CRATES {
        for used in rule.may_use {
            let below =
                CRATES.iter().find(|other| other.name == *used).expect("a row of the table");
            assert!(below.level < rule.level, "{} → {used}", rule.name);
        }
    }
}

#[test]
fn ws_may_use_deflate_but_not_protocol() {
    assert_eq!(check(&house_with(member("fanwire-ws", &["fanwire-deflate"]))), []);
    let findings = check(&house_with(member("fanwire-ws", &["fanwire-protocol"])));
    assert_eq!(findings.len(), 1);
    assert!(findings[0].what.starts_with("fanwire-ws (level 1) → fanwire-protocol"));
}

#[test]
fn an_arrow_sideways_is_called_so() {
    let findings = check(&house_with(member("fanwire-broker", &["fanwire-ws"])));
    assert!(findings[0].what.contains("up or sideways"));
}

#[test]
fn a_crate_without_a_row_is_found() {
    let findings = check(&house_with(member("fanwire-attic", &[])));
    assert!(findings.iter().any(|finding| finding.what == "fanwire-attic has no level yet"));
}

#[test]
fn pure_crates_use_pure_ones_only() {
    let page = include_str!("../../../../ARCHITECTURE.md");
    let pure: Vec<String> =
        pure(page).iter().map(|folder| folder.replace("crates/", "fanwire-")).collect();
    assert!(pure.contains(&"fanwire-node".to_owned()), "{pure:?}");
    for name in &pure {
        let rule = CRATES.iter().find(|rule| rule.name == *name).expect("a row of the table");
        assert!(rule.may_use.iter().all(|used| pure.iter().any(|name| name == used)), "{name}");
    }
}

#[test]
fn a_row_without_a_crate_is_found() {
    let crates: Vec<Crate> = CRATES.iter().skip(1).map(|rule| member(rule.name, &[])).collect();
    assert_eq!(check(&crates).len(), 1);
}
