//! Tests of control commands that select connections by their labels, between nodes of two versions.
//! In: commands with and without a filter → out: commands on a node of this version, or none on an older one.
//! Uses the nodes of `tests.rs`. Never: a bus.
//! Changed here: the messages that older nodes can read.

use fanwire_protocol::FilterNode;

use super::*;

/// A message as a node of an earlier version reads it: tags after 15 are unknown.
#[derive(Clone, PartialEq, prost::Message)]
struct OldMessage {
    #[prost(string, tag = "1")]
    from: String,
    #[prost(bytes = "vec", optional, tag = "4")]
    disconnect: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    unsubscribe: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "8")]
    subscribe: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "9")]
    refresh: Option<Vec<u8>>,
}

#[test]
fn a_command_with_a_filter_arrives_with_it_and_an_older_node_finds_no_command() {
    use prost::Message as _;
    let (a, wire) = node("a");
    let (b, _) = node("b");
    let now = Instant::now();
    let filter = FilterNode { key: "k".into(), cmp: "ex".into(), ..FilterNode::default() };
    let user = |user: &str| ConnectionSelector { user: user.into(), ..Default::default() };
    let targets = [
        (ConnectionSelector { label_filter: Some(Box::new(filter.clone())), ..user("42") }, true),
        (
            ConnectionSelector {
                label_filter: Some(Box::new(filter)),
                all_users: true,
                ..user("")
            },
            true,
        ),
        (ConnectionSelector { all_users: true, ..user("") }, true),
        (ConnectionSelector { all_users: true, ..user("42") }, false),
        (user(""), false),
    ];
    for (target, is_new) in targets {
        let disconnect = fanwire_protocol::Disconnect { code: 4_321, reason: "enough".into() };
        drop(a.command(ControlCommand::disconnect(&target, &disconnect)));
        drop(a.command(ControlCommand::unsubscribe(&target, None)));
        drop(a.command(ControlCommand::subscribe(&target, &ServerSubscription::default())));
        drop(a.command(ControlCommand::refresh(&target, &Renewal::default())));
        let received: Vec<_> = wire.take().into_iter().map(|(_, message)| message).collect();
        assert_eq!(received.len(), 4);
        for message in received {
            let old = OldMessage::decode(&message[1..]).expect("Protobuf");
            let OldMessage { from, disconnect, unsubscribe, subscribe, refresh } = old;
            let is_known = disconnect.or(unsubscribe).or(subscribe).or(refresh).is_some();
            assert_eq!((from.as_str(), is_known), ("a", !is_new), "{target:?}");
            let Task::Execute(command) = b.handle_message(&message, now) else {
                panic!("a command")
            };
            let found = match command {
                ControlCommand::Disconnect(it) | ControlCommand::DisconnectSelected(it) => {
                    it.into_parts().expect("a close code").0
                }
                ControlCommand::Unsubscribe(it) | ControlCommand::UnsubscribeSelected(it) => {
                    it.into_parts().0
                }
                ControlCommand::Subscribe(it) | ControlCommand::SubscribeSelected(it) => {
                    it.into_parts().0
                }
                ControlCommand::Refresh(it) | ControlCommand::RefreshSelected(it) => {
                    it.into_parts().0
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(found, target);
        }
    }
}
