//! Memory of connections and broadcasts, counted by an allocator that counts.
//! In: ten thousand connections, a thousand subscribers → out: bytes per connection, allocations per broadcast.
//! Uses: `allocation-counter`, which counts per thread. Never: resident memory (the server's benchmark measures that).
//! Changed here: the limits, downwards.

use std::sync::Arc;

use allocation_counter::measure;
use fanwire_broker::{ClientId, PublishOptions};
use fanwire_node::options::{MapMode, Namespace};
use fanwire_node::{
    Broadcast, ConnectionInfo, ConnectionKey, DeltaMode, Options, Outbox, SubscriptionIndex,
};
use fanwire_protocol::{Disconnect, Encoding, Publication};

use crate::history::with_history;
use crate::maps::maps;
use crate::presence::with_presence;
use crate::script::hello;
use crate::tokens::{connect, guarded};
use crate::world::{Record, Shard, World, options, protobuf};

/// Fills tables as far as 10,000 do: 61 % of a power of two.
const CONNECTIONS: u32 = 2_500;

/// Heap bytes per connection that is connected as a user of its own and subscribed to one channel.
fn bytes_per_connection(channel: impl Fn(u32) -> String) -> u64 {
    bytes_per_connection_with(options(|_| {}), channel)
}

/// Heap bytes without the flight recorder, whose own bound is tested below.
fn bytes_per_connection_with(mut options: Options, channel: impl Fn(u32) -> String) -> u64 {
    options.recorder_memory_max = 0;
    recorded_bytes(options, channel)
}

fn recorded_bytes(options: Options, channel: impl Fn(u32) -> String) -> u64 {
    let mut world = World::with_shards(options, 1);
    let allocated = measure(|| {
        for index in 0..CONNECTIONS {
            connect_and_subscribe(&mut world, index, &channel(index));
        }
    });
    assert_eq!(world.node.counts().subscriptions, CONNECTIONS as usize);
    u64::try_from(allocated.bytes_current).expect("more is held than before")
        / u64::from(CONNECTIONS)
}

fn connect_and_subscribe(world: &mut World, index: u32, channel: &str) {
    let hello = hello(&format!("json as user-{index:08}"));
    connect_as(hello, world, index, channel);
}

fn connect_as(hello: ConnectionInfo, world: &mut World, index: u32, channel: &str) {
    let commands = format!(
        "{{\"id\":1,\"connect\":{{}}}}\n{{\"id\":2,\"subscribe\":{{\"channel\":\"{channel}\"}}}}"
    );
    let frame = match hello.encoding {
        Encoding::Json => commands.into_bytes(),
        Encoding::Protobuf => protobuf(&commands),
    };
    let key = ConnectionKey { index, generation: 1 };
    let Shard { hub, mailbox, .. } = &mut world.shards[0];
    let mut record = Record::default();
    hub.open(key, hello, world.now);
    hub.receive(key, &frame, world.now, &mut record);
    if record.effects.len() < 2 {
        // The reply waits for what the shard has in its inbox.
        let notices = mailbox.take();
        notices.into_iter().for_each(|notice| hub.notice(notice, world.now, &mut record));
    }
    assert_eq!(record.effects.len(), 2);
}

#[test]
fn an_idle_connection_with_one_subscription_stays_under_half_a_kilobyte() {
    let bytes = bytes_per_connection(|_| "news".into());
    assert!(bytes <= 512, "{bytes} bytes per connection");
}

#[test]
fn the_identity_of_a_token_costs_a_connection_one_small_block_and_its_text() {
    let options = guarded(|options| {
        options.channel.without_namespace.allow_subscribe_for_client = true;
    });
    let bytes = |words: &str, connect: &str| {
        let mut world = World::with_shards(options.clone(), 1);
        let hello = hello(words);
        let allocated = measure(|| {
            for index in 0..CONNECTIONS {
                let key = ConnectionKey { index, generation: 1 };
                let mut record = Record::default();
                let hub = &mut world.shards[0].hub;
                hub.open(key, hello.clone(), world.now);
                hub.receive(key, connect.as_bytes(), world.now, &mut record);
                assert_eq!(record.effects.len(), 1);
            }
        });
        u64::try_from(allocated.bytes_current).expect("more is held") / u64::from(CONNECTIONS)
    };
    let without = bytes("json as 42", r#"{"id":1,"connect":{}}"#);
    let with = bytes("json", &connect(r#"{"sub":"42","jti":"some identity","iat":1}"#));
    assert!(with <= without + 32 + 16, "{with} bytes, {without} without a token");
}

#[test]
fn a_channel_of_its_own_costs_a_connection_less_than_two_hundred_bytes_more() {
    let bytes = bytes_per_connection(|index| format!("personal:{index:08}").replace(':', "-"));
    assert!(bytes <= 712, "{bytes} bytes per connection");
}

#[test]
fn a_position_costs_a_subscriber_nothing_and_its_channel_less_than_half_a_kilobyte() {
    let recoverable = || with_history(|open| open.force_recovery = true);
    let least = |measured: &dyn Fn() -> u64| (0..8).map(|_| measured()).min().expect("eight");
    // But one for where a table happens to end: hashes are seeded by chance, so the least of eight counts.
    let bytes = least(&|| bytes_per_connection_with(recoverable(), |_| "news".into()));
    let without = least(&|| bytes_per_connection(|_| "news".into()));
    assert!(bytes <= without + 1, "{bytes} bytes per connection, {without} without positions");
    let own = |index| format!("channel-{index:08}");
    let with = bytes_per_connection_with(recoverable(), own);
    let without = bytes_per_connection(own);
    assert!(with <= without + 512, "{with} bytes, {without} without positions");
}

/// An ephemeral map needs a timer of 16 bytes while the client reads it, in a table that has room.
#[test]
fn a_map_costs_a_subscriber_what_a_stream_with_positions_costs() {
    // The least of three counts: hashes are seeded by chance.
    let least = |measured: &dyn Fn() -> u64| (0..3).map(|_| measured()).min().expect("three");
    let recoverable = || with_history(|open| open.force_recovery = true);
    let stream = least(&|| recorded_bytes(recoverable(), |_| "news".into()));
    for (mode, more) in [(MapMode::Recoverable, 1), (MapMode::Ephemeral, 32)] {
        let first_page = |_| r#"news","type":1,"phase":2,"cursor":""#.to_owned();
        let map = least(&|| recorded_bytes(maps(mode, |_| {}), first_page));
        assert!(map <= stream + more, "{mode:?}: {map} bytes in a map, {stream} in a stream");
    }
}

#[test]
fn deltas_cost_a_subscriber_that_agreed_a_byte_and_others_nothing() {
    let allowed = || {
        with_history(|open| {
            open.force_recovery = true;
            open.allowed_delta_types = vec![Namespace::FOSSIL.into()];
        })
    };
    let bytes = |asking: bool| {
        let mut world = World::with_shards(allowed(), 1);
        let allocated = measure(|| {
            for index in 0..CONNECTIONS {
                let delta = if asking { r#"","delta":"fossil"# } else { "" };
                // One user: many fall to stripes whose tables are as large as hashes happen to be.
                connect_as(hello("json as one"), &mut world, index, &format!("news{delta}"));
            }
        });
        assert_eq!(world.node.counts().subscriptions, CONNECTIONS as usize);
        allocated.bytes_current
    };
    let with = bytes(true);
    let without = bytes(false);
    assert!(with <= without + 2 * i64::from(CONNECTIONS), "{with} bytes, {without} without");
    assert!(with > without, "they are marked");
}

#[test]
fn rates_cost_a_connection_one_small_block() {
    let limited = options(|options| {
        options.client.command_rate.limit = 1000;
        options.channel.without_namespace.subscribe_rate.limit = 1000;
    });
    let with = bytes_per_connection_with(limited, |_| "news".into());
    let without = bytes_per_connection(|_| "news".into());
    assert!(with <= without + 80, "{with} bytes, {without} without rates");
}

#[test]
fn presence_costs_its_members_half_a_kilobyte_and_others_nothing() {
    let with = bytes_per_connection_with(with_presence(|_| {}), |_| "news".into());
    let without = bytes_per_connection(|_| "news".into());
    assert!(with <= without + 512, "{with} bytes, {without} without presence");
    assert!(without <= 512, "{without} bytes without presence");
}

#[test]
fn a_forgotten_connection_leaves_nothing_behind_but_room() {
    let mut world = World::with_shards(options(|options| options.recorder_memory_max = 0), 1);
    let round = |world: &mut World| {
        for index in 0..100 {
            connect_and_subscribe(world, index, &format!("channel-{index}"));
        }
        for index in 0..100 {
            let key = ConnectionKey { index, generation: 1 };
            world.shards[0].hub.close(key, world.now);
        }
    };
    round(&mut world);
    let second = measure(|| round(&mut world));
    assert!(second.bytes_current <= 0, "{} bytes are left", second.bytes_current);
}

#[test]
fn the_flight_recorder_costs_a_quiet_connection_a_third_of_a_kilobyte_within_its_bound() {
    let without = bytes_per_connection(|_| "news".into());
    let with = recorded_bytes(options(|_| {}), |_| "news".into());
    assert!(with <= without + 400, "{with} bytes, {without} without it");
    let bounded = options(|options| options.recorder_memory_max = 100 << 10);
    let bounded = recorded_bytes(bounded, |_| "news".into());
    // 41 bytes are the bound, and tables have room.
    assert!(bounded <= without + 60, "{bounded} bytes, {without} without it");
}

#[test]
fn a_hundred_stored_publications_of_a_kilobyte_take_less_than_a_fifth_more() {
    let world = World::with_shards(with_history(|open| open.history_size = 100), 1);
    let publish = |number: usize| {
        let data = format!("\"{number:01022}\"");
        let publication = Publication { data: data.into(), ..Publication::default() };
        let published = world.node.channels().publish(
            "news",
            publication,
            PublishOptions::default(),
            world.now,
        );
        assert_eq!(published.wait().expect("published").offset, number as u64 + 1);
    };
    let held = measure(|| (0..1000).for_each(publish)).bytes_current;
    assert!((100 * 1024..=120 * 1024).contains(&held), "{held} bytes");
}

/// Allocations of one command in a channel in which ten thousand are present.
fn allocations_in_a_crowd(command: &str) -> u64 {
    let mut world = World::with_shards(with_presence(|_| {}), 1);
    for index in 0..CONNECTIONS {
        connect_and_subscribe(&mut world, index, "news");
    }
    let key = ConnectionKey { index: 0, generation: 1 };
    let Shard { hub, mailbox, .. } = &mut world.shards[0];
    mailbox.take();
    let frame = format!(r#"{{"id":3,"{command}":{{"channel":"news"}}}}"#);
    let mut count = Count::default();
    let allocated = measure(|| {
        hub.receive(key, frame.as_bytes(), world.now, &mut count);
        for notice in mailbox.take() {
            hub.notice(notice, world.now, &mut count); // the outbox has done its encode_job at once
        }
    });
    assert_eq!(count.messages, 1);
    allocated.count_total
}

#[test]
fn ten_thousand_members_are_counted_without_a_walk_and_listed_with_few_allocations_each() {
    assert!(allocations_in_a_crowd("presence_stats") <= 10);
    let listed = allocations_in_a_crowd("presence");
    assert!(listed <= 4 * u64::from(CONNECTIONS), "{listed} allocations");
}

/// An outbox that only counts.
#[derive(Default)]
struct Count {
    deliveries: usize,
    messages: usize,
}

impl Outbox for Count {
    fn send(&mut self, _connection: ConnectionKey, _message: &[u8]) {
        self.messages += 1;
    }

    fn deliver(
        &mut self,
        _connection: u32,
        _: SubscriptionIndex,
        _: &Arc<Broadcast>,
        _: DeltaMode,
    ) {
        self.deliveries += 1;
    }

    fn ping(&mut self, _connection: ConnectionKey) {}

    fn disconnect(&mut self, _connection: ConnectionKey, _disconnect: &Disconnect) {}
}

/// Allocations of one broadcast in the hub, from the inbox to the last subscriber.
fn allocations_per_broadcast(encoding: &str, subscribers: u32) -> u64 {
    allocations_per_broadcast_with(options(|_| {}), encoding, subscribers)
}

fn allocations_per_broadcast_with(options: Options, encoding: &str, subscribers: u32) -> u64 {
    allocations_per_broadcast_without(None, options, encoding, subscribers)
}

fn allocations_per_broadcast_without(
    exclude_client: Option<ClientId>,
    options: Options,
    encoding: &str,
    subscribers: u32,
) -> u64 {
    let mut world = World::with_shards(options, 1);
    for index in 0..subscribers {
        connect_as(hello(encoding), &mut world, index, "news");
    }
    let publication = Publication { data: "{}".into(), ..Publication::default() };
    let publish = PublishOptions { exclude_client, ..PublishOptions::default() };
    let published = world.node.channels().publish("news", publication, publish, world.now);
    published.wait().expect("published");
    let notice = world.shards[0].mailbox.take().remove(0);
    let mut count = Count::default();
    let allocated = measure(|| world.shards[0].hub.notice(notice, world.now, &mut count));
    assert_eq!(count.deliveries, subscribers as usize);
    allocated.count_total
}

#[test]
fn a_broadcast_allocates_nothing_per_subscriber() {
    let one = allocations_per_broadcast("json", 1);
    assert_eq!(allocations_per_broadcast("json", 1_000), one);
}

#[test]
fn a_broadcast_to_positioned_subscribers_allocates_as_little() {
    let recoverable = || with_history(|open| open.force_recovery = true);
    let plain = allocations_per_broadcast("json", 1);
    assert_eq!(allocations_per_broadcast_with(recoverable(), "json", 1_000), plain);
    assert_eq!(allocations_per_broadcast_with(recoverable(), "protobuf", 1_000), 0);
}

#[test]
fn a_broadcast_in_shapes_allocates_nothing_per_subscriber() {
    let allocations = |encoding: &str, subscribers: u32| {
        let options = with_history(|open| {
            open.force_recovery = true;
            open.delta_publish = true;
            open.allowed_delta_types = vec![Namespace::FOSSIL.into()];
        });
        let mut world = World::with_shards(options, 1);
        for index in 0..subscribers {
            connect_as(hello(encoding), &mut world, index, r#"news","delta":"fossil"#);
        }
        let mut publish = |number: u32| {
            let data = format!(r#"{{"n":{number},"text":"the same in all of them"}}"#);
            let publication = Publication { data: data.into(), ..Publication::default() };
            let published = world.node.channels().publish(
                "news",
                publication,
                PublishOptions::default(),
                world.now,
            );
            published.wait().expect("published");
            let notice = world.shards[0].mailbox.take().remove(0);
            let mut count = Count::default();
            let allocated = measure(|| world.shards[0].hub.notice(notice, world.now, &mut count));
            assert_eq!(count.deliveries, subscribers as usize);
            allocated.count_total
        };
        [publish(1), publish(2)]
    };
    for encoding in ["json", "protobuf"] {
        assert_eq!(allocations(encoding, 1_000), allocations(encoding, 1), "{encoding}");
    }
}

/// Allocations of one join in the hub, from the inbox to the last of so many that receive of it.
fn allocations_per_join(encoding: &str, hearers: u32) -> u64 {
    let forced = with_presence(|open| {
        open.join_leave = true;
        open.force_push_join_leave = true;
    });
    let mut world = World::with_shards(forced, 1);
    for index in 0..hearers {
        connect_as(hello(encoding), &mut world, index, "news");
    }
    let notice = world.shards[0].mailbox.take().pop().expect("the join of the last");
    let mut count = Count::default();
    let allocated = measure(|| world.shards[0].hub.notice(notice, world.now, &mut count));
    assert_eq!(count.messages, hearers as usize);
    allocated.count_total
}

#[test]
fn a_join_allocates_nothing_per_hearer() {
    for encoding in ["json", "protobuf"] {
        assert_eq!(allocations_per_join(encoding, 1_000), allocations_per_join(encoding, 1));
    }
}

#[test]
fn leaving_somebody_out_allocates_once_and_then_nothing() {
    let elsewhere = ClientId::parse("5f1b0f4c-3a8e-4b52-9d1c-0c1f7d1f4a11");
    let recoverable = || with_history(|open| open.force_recovery = true);
    for options in [options(|_| {}), recoverable()] {
        let allocations = allocations_per_broadcast_without(elsewhere, options, "protobuf", 1_000);
        assert_eq!(allocations, 1, "for the first one: a table of the clients of the shard");
    }
}

#[test]
fn where_nobody_speaks_json_the_hub_encodes_nothing() {
    assert_eq!(allocations_per_broadcast("protobuf", 1_000), 0);
}

#[test]
fn a_broadcast_to_filtered_subscribers_allocates_nothing() {
    let filtering = options(|options| options.channel.without_namespace.allow_tags_filter = true);
    let mut world = World::with_shards(filtering, 1);
    for index in 0..1_000 {
        let key = ConnectionKey { index, generation: 1 };
        let commands = r#"{"id":1,"connect":{}}
            {"id":2,"subscribe":{"channel":"news","tf":{"key":"n","cmp":"lt","val":"500"}}}"#
            .replace("500", if index < 400 { "500" } else { "5" });
        let hub = &mut world.shards[0].hub;
        let mut record = Record::default();
        hub.open(key, hello("protobuf"), world.now);
        hub.receive(
            key,
            &protobuf(&commands.replace("\n            ", "\n")),
            world.now,
            &mut record,
        );
    }
    let tags = [("n".to_owned(), "77".to_owned())].into();
    let publication = Publication { data: "{}".into(), tags, ..Publication::default() };
    let published =
        world.node.channels().publish("news", publication, PublishOptions::default(), world.now);
    published.wait().expect("published");
    let notice = world.shards[0].mailbox.take().remove(0);
    let mut count = Count::default();
    let allocated = measure(|| world.shards[0].hub.notice(notice, world.now, &mut count));
    assert_eq!((count.deliveries, allocated.count_total), (400, 0));
}
