//! Tests of the move of a memory engine: what besides streams and maps goes on, and what is refused.
//! In: engines with members, statuses and a history, any bytes → out: the same from the other engine.
//! Uses: proptest, virtual times. Streams and maps are tested in `broker/memory/snapshot/tests.rs`.
//! Changed here: an example of each new part.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fanwire_protocol::{ClientInfo, Publication};
use fanwire_testing::fingerprint;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::saved::{MemberRecord, StatusRecord};
use crate::{
    Broker, Bucket, Change, ChangeMarks, Deliver, DeliverOptions, Presence, PublishOptions, Query,
    Retention, RevocationKind, UserStatus, UserStatusChange, UserStatusStore,
};

const UNIX: u64 = 1_700_000_000;

struct NoDelivery;

impl Deliver for NoDelivery {
    fn deliver(&self, _: &str, _: Publication, _: DeliverOptions) {}
    fn deliver_join_leave(&self, _: &str, _: Change, _: ClientInfo) {}
}

fn engine() -> MemoryEngine {
    MemoryEngine {
        broker: Arc::new(MemoryBroker::new(Arc::new(NoDelivery), 1 << 20)),
        presence: Arc::new(MemoryPresence::new()),
        user_statuses: Arc::new(MemoryUserStatuses::default()),
    }
}

fn clock(now: Instant) -> SnapshotClock {
    SnapshotClock { now, unix_ms: UNIX * 1000 }
}

fn retention() -> Retention {
    let minute = Duration::from_secs(60);
    Retention { size: 10, ttl: minute, meta_ttl: minute }
}

fn publish(engine: &MemoryEngine, data: &'static str, now: Instant) -> u64 {
    let publication = Publication { data: data.into(), ..Publication::default() };
    let options = PublishOptions::default();
    let position = engine.broker.publish("news", publication, &options, retention(), now);
    position.wait().expect("memory takes all").offset
}

/// The engine of another program that has taken over from this one, and its blocks and revocations.
fn moved(
    engine: &MemoryEngine,
    revocations: &[RevocationChange],
    now: Instant,
) -> (MemoryEngine, Vec<RevocationChange>) {
    let mut saved = Vec::new();
    engine.save(revocations, clock(now), &mut saved).expect("memory takes all");
    let next = self::engine();
    let revocations = next.restore(&mut saved.as_slice(), clock(now)).expect("just saved");
    (next, revocations)
}

#[test]
fn members_stay_until_they_would_have_expired() {
    let now = Instant::now();
    let engine = engine();
    let info = ClientInfo { user: "42".into(), client: "c1".into(), ..ClientInfo::default() };
    let ttl = Duration::from_secs(60);
    engine.presence.add("news", info.clone(), ttl, now).wait().expect("memory takes all");
    let later = now + Duration::from_secs(40);
    let (next, _) = moved(&engine, &[], later);
    let members = |after| next.presence.members("news", now + Duration::from_secs(after)).wait();
    assert_eq!(members(59), Ok(vec![Arc::new(info)]));
    assert_eq!(members(61), Ok(Vec::new()));
}

#[test]
fn statuses_stay_until_they_would_have_expired() {
    let now = Instant::now();
    let engine = engine();
    let users = ["42".to_owned()];
    let change = UserStatusChange {
        active: Some(UNIX),
        online: Some(UNIX + 1),
        state: Some("busy".into()),
        ttl: Duration::from_secs(60),
    };
    engine.user_statuses.update(&users, &change, UNIX).wait().expect("memory takes all");
    let (next, _) = moved(&engine, &[], now);
    let status = UserStatus { active: UNIX, online: UNIX + 1, state: "busy".into() };
    assert_eq!(next.user_statuses.read(&users, UNIX + 59).wait(), Ok(vec![status]));
    let none = Ok(vec![UserStatus::default()]);
    assert_eq!(next.user_statuses.read(&users, UNIX + 60).wait(), none);
    next.user_statuses.remove(&users).wait().expect("memory takes all");
    assert_eq!(next.user_statuses.read(&users, UNIX).wait(), none);
}

#[test]
fn every_kind_of_block_and_revocation_moves() {
    let kinds = [
        RevocationKind::BlockUser,
        RevocationKind::UnblockUser,
        RevocationKind::RevokeToken,
        RevocationKind::InvalidateTokens,
    ];
    let change = |kind| RevocationChange {
        kind,
        subject: "42".into(),
        channel: Some("news".into()),
        expire_at: UNIX + 5,
        issued_before: UNIX - 5,
    };
    let changes = kinds.map(change);
    assert_eq!(moved(&engine(), &changes, Instant::now()).1, changes);
}

/// Counts the buckets that have changed.
#[derive(Default)]
struct CountedChanges(AtomicUsize);

impl ChangeMarks for CountedChanges {
    fn mark(&self, _bucket: Bucket) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn positions_go_on() {
    let now = Instant::now();
    let engine = engine();
    assert_eq!(publish(&engine, "1", now), 1);
    let top = |engine: &MemoryEngine| {
        engine.broker.history("news", Query::default(), retention(), now).wait()
    };
    let (next, _) = moved(&engine, &[], now);
    assert_eq!(top(&next), top(&engine));
    assert_eq!(publish(&next, "2", now), 2);
}

#[test]
fn the_list_of_changes_stays_that_of_the_last_snapshot() {
    let now = Instant::now();
    let engine = engine();
    let counted = Arc::<CountedChanges>::default();
    let marks: Arc<dyn ChangeMarks> = counted.clone();
    engine.broker.mark_changes(&marks);
    publish(&engine, "1", now);
    moved(&engine, &[], now);
    publish(&engine, "2", now);
    assert_eq!(counted.0.load(Relaxed), 1, "the bucket is in the list already");
}

proptest! {
    #[test]
    fn any_bytes_are_an_engine_or_change_nothing(bytes in vec(any::<u8>(), 0..100)) {
        let now = Instant::now();
        let engine = engine();
        publish(&engine, "1", now);
        let length = bytes.len() as u64;
        for saved in [bytes.clone(), [&length.to_le_bytes(), &*bytes].concat()] {
            prop_assert!(engine.restore(&mut saved.as_slice(), clock(now)).is_err());
        }
        prop_assert_eq!(publish(&engine, "2", now), 2);
    }
}

/// Another layout takes another format of the takeover, in `crates/fanwire/src/takeover.rs`, and then this number.
#[test]
fn the_layout_is_that_of_the_format_of_takeovers() {
    let info = ClientInfo {
        user: "42".into(),
        client: "c1".into(),
        conn_info: "{}".into(),
        chan_info: "[]".into(),
    };
    let revocation = RevocationChange {
        kind: RevocationKind::InvalidateTokens,
        subject: "u".into(),
        channel: Some("news".into()),
        expire_at: 2,
        issued_before: 3,
    };
    let status =
        StatusRecord { user: "42".into(), active: 4, online: 5, state: "away".into(), until: 6 };
    let record = MemoryRecord {
        members: vec![MemberRecord { channel: "news".into(), info, until: 1 }],
        statuses: vec![status],
        revocations: vec![RevocationRecord::from(&revocation)],
    };
    assert_eq!(fingerprint(&record.encode_to_vec()), 0x3ba7_cf0a);
}
