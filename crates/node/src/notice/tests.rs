//! Tests of the weights of notices, on which the limit of an inbox relies.
//! In: notices with payloads → out: at least the bytes of those, and not much more.
//! Uses: values only.
//! Changed here: tests of `notice.rs`. That orders are obeyed is tested in `tests/it/orders.rs`.

use bytes::Bytes;
use fanwire_broker::{Change, StreamSlice};
use fanwire_cluster::ServerSubscription;
use fanwire_protocol::ErrorCode;
use fanwire_protocol::{ClientInfo, Publication, Reply};

use super::*;
use crate::encode_job::{Encoded, ReplySource};
use crate::pending::Part;
use crate::session::ConnectionKey;

fn check(notice: &Notice, bytes: usize) {
    let weight = notice.payload_bytes();
    assert!((bytes..=bytes + bytes / 2).contains(&weight), "{weight} for {bytes}: {notice:?}");
}

fn arrival(part: Part) -> Notice {
    let key = ConnectionKey { index: 0, generation: 0 };
    Notice::AwaitedResult(Box::new(AwaitedResult { key, ticket: 0, part }))
}

fn publications() -> Vec<Publication> {
    vec![Publication { data: vec![b'1'; 10_000].into(), ..Publication::default() }; 3]
}

fn member() -> ClientInfo {
    ClientInfo { conn_info: vec![b'1'; 10_000].into(), ..ClientInfo::default() }
}

#[test]
fn an_answer_weighs_what_it_holds() {
    let found = |found: ReplySource| arrival(Part::Outcome(Box::new(Ok(found.into()))));
    let slice = StreamSlice { publications: publications(), ..StreamSlice::default() };
    check(&found(ReplySource::StreamSlice(slice)), 30_000);
    check(&found(ReplySource::Members(vec![member().into(), member().into()])), 20_000);
    let messages = Some(vec![vec![b'1'; 10_000].into(); 2]);
    check(&arrival(Part::Encoded(Ok(Encoded { messages, ..Encoded::default() }))), 20_000);
    let slice = StreamSlice { publications: publications(), ..StreamSlice::default() };
    check(&arrival(Part::StreamSlice(0, Ok(slice))), 30_000);
}

#[test]
fn an_answer_without_payload_weighs_nothing() {
    for part in [
        Part::Outcome(Box::new(Ok(Reply::default().into()))),
        Part::Outcome(Box::new(Err(ErrorCode::INTERNAL))),
        Part::Encoded(Ok(Encoded::default())),
        Part::StreamSlice(0, Err(ErrorCode::INTERNAL)),
        Part::Presence(0, Ok(())),
        Part::Turn,
        Part::Key,
    ] {
        check(&arrival(part), 0);
    }
}

#[test]
fn orders_and_joins_weigh_what_they_bring() {
    let info: Bytes = vec![b'1'; 10_000].into();
    let renewal = Renewal { info: info.clone(), ..Renewal::default() };
    check(&Notice::Refresh { target: SelectedConnections::default(), renewal }, 10_000);
    let subscription = ServerSubscription { data: info, ..ServerSubscription::default() };
    let order = Arc::new(ServerSubscribe::new(subscription, None));
    check(&Notice::Subscribe { target: SelectedConnections::default(), command: order }, 10_000);
    let join_leave = JoinLeave::new("a".into(), Change::Join, member());
    check(&Notice::JoinLeave(Arc::new(join_leave)), 30_000);
}
