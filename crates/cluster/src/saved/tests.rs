//! Tests of a node that goes on in another program.
//! In: a table of nodes, any bytes → out: the same table, or none.
//! Uses: the table. Never: a bus.
//! Changed here: an example of each new field.

use fanwire_testing::fingerprint;

use super::*;

fn state(uid: &str) -> NodeState {
    NodeState { uid: uid.into(), name: uid.to_uppercase(), connections: 3, ..NodeState::default() }
}

#[test]
fn the_new_program_knows_the_nodes_and_goes_on_counting() {
    let now = Instant::now();
    let before = Cluster::new("a".into());
    {
        let mut table = before.table.lock();
        for uid in ["b", "c"] {
            table.peers.insert(uid.into(), Peer { state: state(uid), received_at: now });
        }
        table.commands.go_on_after(7);
        table.last_survey = 5;
        table.knows_others = true;
        for number in [2, 1500, 1502] {
            assert!(table.is_new_command("b".into(), number, now));
        }
    }
    let after = Cluster::new("a".into());
    let begun = RebalanceRecord::default();
    assert_eq!(after.take_over(&before.save(None, begun.clone()), None, now), Ok(begun));
    assert_eq!(after.peers(), before.peers());
    assert_eq!(after.peer_names(), ["B", "C"]);
    let mut table = after.table.lock();
    assert_eq!(table.commands.next(), 8);
    assert_eq!(table.last_survey, 5);
    assert!(table.knows_others);
    let mut is_new = |number| table.is_new_command("b".into(), number, now);
    assert_eq!([2, 1500, 1501, 1502, 1503].map(&mut is_new), [false, false, true, false, true]);
}

#[test]
fn bytes_that_are_no_record_change_nothing() {
    let cluster = Cluster::new("a".into());
    let taken = cluster.take_over(b"\xff", None, Instant::now());
    assert_eq!(taken, Err(PeersError::NotUnderstood));
    assert_eq!(cluster.peers(), Vec::new());
}

#[test]
fn a_program_with_another_list_of_blocks_does_not_go_on() {
    let take_over = |of_old: Option<&str>, of_new: Option<&str>| {
        let cluster = Cluster::new("a".into());
        let begun = RebalanceRecord::default();
        let saved = Cluster::new("a".into()).save(of_old.map(position), begun);
        let own = of_new.map(position);
        cluster.take_over(&saved, own.as_ref(), Instant::now()).map(drop)
    };
    for (of_old, of_new) in [
        (None, None),
        (None, Some("one")),
        (Some(""), Some("")),
        (Some(""), Some("one")), // the first change came in between
        (Some("one"), Some("one")),
    ] {
        assert_eq!(take_over(of_old, of_new), Ok(()), "{of_old:?} {of_new:?}");
    }
    for of_new in [None, Some(""), Some("two")] {
        assert_eq!(take_over(Some("one"), of_new), Err(PeersError::OtherRevocations), "{of_new:?}");
    }
}

fn position(epoch: &str) -> StreamPosition {
    StreamPosition { offset: 3, epoch: epoch.into() }
}

/// Another layout takes another format of the takeover, in `crates/fanwire/src/takeover.rs`, and then this number. Without a format of
/// its own a field can be added if both programs may lack it.
#[test]
fn the_layout_is_that_of_the_format_of_takeovers() {
    let record = ClusterRecord {
        peers: vec![state("b")],
        knows_others: true,
        last_command: 7,
        last_survey: 5,
        senders: vec![SenderRecord { uid: "b".into(), executed: vec![2, 3] }],
        revocations: Some(position("list")),
        rebalance: Some(RebalanceRecord::default()),
    };
    assert_eq!(fingerprint(&record.encode_to_vec()), 0x5d90_1bcb);
}
