//! Deltas of subscribers from whom the server hides publications: the base is always what the client got last (protocol §11, §13).
//! In: publications of two teams, to clients that see one of them → out: F or D for each, and never one of the other team.
//! Uses: the room of `deltas/harness.rs`, whose clients apply deltas as SDKs do. Never: client filters, which exclude deltas.
//! Changed here: when a filtered subscriber gets a patch.

use fanwire_broker::{Answer, PublishOptions};
use fanwire_node::hooks::{Hook, Hooks, SubscribeEvent, SubscribeGrant};
use fanwire_node::{NodeParts, Options};
use fanwire_protocol::{Encoding, Publication};
use proptest::prelude::*;

use super::harness::{Harness, state};
use super::{latest, recoverable};

/// Two clients of each encoding, who see the red team.
fn room(options: Options) -> Harness {
    let red = r#"{"key":"team","cmp":"eq","val":"red"}"#;
    let decide = move |_: SubscribeEvent| {
        let server_tags_filter = red.into();
        Answer::now(Ok(Some(SubscribeGrant { server_tags_filter, ..SubscribeGrant::default() })))
    };
    let hooks = Hooks { subscribe: Some(Hook::new(decide)), ..Hooks::default() };
    let parts = NodeParts { hooks, ..NodeParts::default() };
    let clients = [Encoding::Json, Encoding::Protobuf, Encoding::Json, Encoding::Protobuf];
    Harness::with_parts(options, &clients.map(|encoding| (encoding, true)), parts)
}

impl Harness {
    /// Publishes the next state, of one of the teams. All shards deliver it.
    fn publish_of(&mut self, number: usize, is_red: bool) {
        let team = if is_red { "red" } else { "blue" };
        let publication = Publication {
            data: state(number).into(),
            tags: [("team".to_owned(), team.to_owned())].into(),
            ..Publication::default()
        };
        self.publish_one(publication, PublishOptions::default());
        self.drain_all();
    }
}

/// Every client subscribes, and hears `expected` of publications of these teams.
fn check(harness: &mut Harness, recover: bool, teams: &[bool], expected: &str) {
    for who in 0..4 {
        harness.subscribe(who, recover);
    }
    for is_red in teams {
        harness.publish_of(harness.published(), *is_red);
    }
    for who in 0..4 {
        assert_eq!(harness.heard(who), expected, "client {who}");
    }
}

#[test]
fn after_a_hidden_publication_comes_a_whole_one() {
    for options in [recoverable(), latest()] {
        let mut harness = room(options);
        check(&mut harness, false, &[true, true, false, true, true], "agreed F1 D2 F4 D5");
    }
}

#[test]
fn a_recovered_publication_is_a_base_only_if_nothing_is_hidden_behind_it() {
    let mut harness = room(recoverable());
    check(&mut harness, false, &[true], "agreed F1");
    (0..4).for_each(|who| harness.unsubscribe(who));
    for is_red in [true, false, true] {
        harness.publish_of(harness.published(), is_red);
    }
    check(&mut harness, true, &[true, true], "agreed recovered F2 D4 D5 D6");
    (0..4).for_each(|who| harness.unsubscribe(who));
    for is_red in [true, false] {
        harness.publish_of(harness.published(), is_red);
    }
    check(&mut harness, true, &[true, true], "agreed recovered F7 F9 D10");
}

proptest! {
    /// The harness fails for a patch of a base that its client does not have.
    #[test]
    fn every_publication_of_the_own_team_arrives_and_no_other(
        has_history in any::<bool>(),
        steps in prop::collection::vec((any::<bool>(), 0..6_usize), 1..30),
    ) {
        let mut harness = room(if has_history { recoverable() } else { latest() });
        let mut expected = vec![Vec::new(); 4];
        let mut heard = vec![String::new(); 4];
        for (is_red, who) in steps {
            if who < 4 && harness.clients[who].subscribed {
                harness.unsubscribe(who);
            } else if who < 4 {
                // Without a position it misses what came in between.
                harness.subscribe(who, false);
            }
            harness.publish_of(harness.published(), is_red);
            for (number, client) in harness.clients.iter().enumerate() {
                if client.subscribed && is_red {
                    expected[number].push(harness.published());
                }
            }
            for (number, heard) in heard.iter_mut().enumerate() {
                heard.push_str(&harness.heard(number));
                heard.push(' ');
            }
        }
        for (heard, expected) in heard.iter().zip(&expected) {
            let numbers = heard.split_whitespace().filter_map(|word| word[1..].parse().ok());
            prop_assert_eq!(&numbers.collect::<Vec<usize>>(), expected);
        }
    }
}
