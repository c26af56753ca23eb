//! The layout of a snapshot, which has a version.
//! In: a file with a value in each field of each section → out: its fingerprint.
//! Uses: records. Never: a broker.
//! Changed here: the fingerprint, with the version; a new field, whose absence the compiler finds.

use fanwire_testing::fingerprint;

use super::super::MAPS;
use super::*;
use crate::saved::{
    ChangeRecord, EntryRecord, GrowingRecord, GrowthRecord, MapValue, RetentionRecord, Stored,
};

fn publication() -> Publication {
    let info = ClientInfo {
        user: "42".into(),
        client: "c1".into(),
        conn_info: "{}".into(),
        chan_info: "[]".into(),
    };
    Publication {
        data: "1".into(),
        info: Some(info),
        tags: [("a".to_owned(), "b".to_owned())].into(),
        time: 9,
        ..Publication::default()
    }
}

fn head() -> Head {
    let hashes = HashesRecord { seed: 1, streams: vec![2], maps: vec![3], check: 4 };
    Head { generation: 1, is_planned: true, unix_ms: 2, hashes, connections: 3 }
}

fn stream() -> StreamRecord {
    let message = GrowingRecord {
        key: "k".into(),
        text: "t".into(),
        head: "h".into(),
        field: "f".into(),
        is_final: true,
        waits: true,
        offset: 1,
        published_at: 2,
        until: Some(3),
    };
    let growth = GrowthRecord {
        offsets: vec![1],
        dropped: 2,
        messages: vec![message],
        finals: vec!["f".into()],
    };
    StreamRecord {
        channel: "news".into(),
        epoch: "abcdefgh".into(),
        offset: 1,
        version: 2,
        version_epoch: "v".into(),
        stored_until: Some(3),
        until: Some(4),
        stored: vec![Stored::of(&publication())],
        growth: Some(growth),
    }
}

fn map() -> MapRecord {
    let retention =
        RetentionRecord { key_ttl: 1, size: 2, ttl: 3, meta_ttl: 4, entries_max: 5, bytes_max: 6 };
    let entry = EntryRecord {
        key: "k".into(),
        value: MapValue::of(&publication()),
        offset: 1,
        version: 2,
        version_epoch: "v".into(),
        until: Some(3),
    };
    let change =
        ChangeRecord { key: "k".into(), value: MapValue::of(&publication()), removed: true };
    MapRecord {
        channel: "map".into(),
        epoch: "abcdefgh".into(),
        offset: 1,
        changes_until: Some(2),
        until: Some(3),
        retention,
        entries: vec![entry],
        changes: vec![change],
    }
}

fn result() -> ResultRecord {
    ResultRecord {
        channel: "news".into(),
        key: "k".into(),
        offset: 1,
        epoch: "abcdefgh".into(),
        since: 2,
        owner: "c1".into(),
        until: 3,
    }
}

#[test]
fn another_layout_has_another_version() {
    let mut bytes = Vec::new();
    let mut file = SectionWriter::begin(&mut bytes).expect("memory");
    let epochs = EpochsSection { stripe: 1, streams: vec![2], maps: vec![3] };
    file.section(HEAD, &head()).expect("memory");
    file.section(STREAMS, &StreamsSection { streams: vec![stream()] }).expect("memory");
    file.section(RESULTS, &ResultsSection { results: vec![result()] }).expect("memory");
    file.section(EPOCHS, &epochs).expect("memory");
    file.section(MAPS, &MapsSection { maps: vec![map()] }).expect("memory");
    file.end().expect("memory");
    assert_eq!((SNAPSHOT_VERSION, fingerprint(&bytes)), (1, 0x1cd5_40a2));
}
