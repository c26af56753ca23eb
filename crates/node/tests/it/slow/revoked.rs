//! Blocks and revocations in the middle of a connect and a subscribe: no client slips through, and nothing is left behind.
//! In: a connect and a subscribe with tokens, a change after each number of answers → out: connections and subscriptions that remain.
//! Uses: the slow world of the room above. Never: threads.
//! Changed here: the order of a change and a command. What a change does otherwise is tested in `revocations.rs`.

use fanwire_node::{RevocationChange, RevocationKind};

use super::{SlowWorld, tracked};
use crate::tokens::{connect, guarded, subscribe};
use crate::world::UNIX;

/// A user connects with a token for two channels, and subscribes with another token to a third one.
fn world() -> SlowWorld {
    let mut slow = SlowWorld::new(guarded(|options| {
        options.channel.without_namespace = tracked().channel.without_namespace;
        options.channel.without_namespace.allow_subscribe_for_client = false;
        options.channel.without_namespace.presence = true;
    }));
    slow.world.play("ada opens");
    slow
}

fn change(subject: &str) -> RevocationChange {
    RevocationChange { subject: subject.into(), ..RevocationChange::default() }
}

#[test]
fn a_change_at_any_moment_ends_what_it_forbids() {
    let of_user = RevocationChange { issued_before: UNIX, ..change("42") };
    let of_channel = RevocationChange { channel: Some("c".into()), ..of_user.clone() };
    // Connections, subscriptions and channels that remain.
    let none = (0, 0, 0);
    let without_c = (1, 2, 2);
    let all = (1, 3, 3);
    for (kind, change, remaining) in [
        (RevocationKind::BlockUser, change("42"), none),
        (RevocationKind::RevokeToken, change("of connection"), none),
        (RevocationKind::InvalidateTokens, of_user, none),
        (RevocationKind::RevokeToken, change("of subscription"), without_c),
        (RevocationKind::InvalidateTokens, of_channel, without_c),
        (RevocationKind::RevokeToken, change("other"), all),
    ] {
        for answers in 0..12 {
            for is_unsettled in [false, true] {
                let mut slow = world();
                let claims = r#"{"sub":"42","jti":"of connection","channels":["a","b"]}"#;
                slow.world.say_unsettled("ada", &connect(claims));
                let claims = r#"{"sub":"42","jti":"of subscription","channel":"c"}"#;
                slow.world.say("ada", &subscribe("c", claims));
                (0..answers).for_each(|_| slow.answer(0));
                let now = slow.world.now;
                let done = slow.world.node.revocations().revoke(
                    kind,
                    change.clone(),
                    now,
                    slow.world.node.unix(now),
                );
                done.expect("it is possible").wait().expect("there is one node");
                if !is_unsettled {
                    slow.world.settle();
                }
                slow.answer_all();
                slow.world.settle();
                slow.answer_all();
                let counts = slow.world.node.counts();
                let counts = (counts.connections, counts.subscriptions, counts.channels);
                assert_eq!(counts, remaining, "{kind:?} {} after {answers}", change.subject);
            }
        }
    }
}
