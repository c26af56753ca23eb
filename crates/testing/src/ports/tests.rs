//! Tests of the ports.
//! In: many calls, blocks that others have → out: ports that are distinct and free.
//! Uses sockets of the loopback.
//! Changed here: expectations of `ports.rs`.

use std::collections::BTreeSet;

use super::*;

#[test]
fn no_port_is_returned_twice_and_nothing_listens_there() {
    let ports: BTreeSet<u16> = (0..100).map(|_| free_port()).collect();
    assert_eq!(ports.len(), 100);
    let listeners = ports.iter().map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)));
    assert!(listeners.into_iter().all(|listener| listener.is_ok()));
}

#[test]
fn a_block_that_another_process_has_is_left_to_it() {
    let take = || {
        let mut taken = Taken { locks: Vec::new(), left: 0..0 };
        taken.take_block();
        taken
    };
    let [one, other] = [take(), take()];
    assert_ne!(one.left, other.left);
}
