//! Rooms of a running server: players, inputs, messages to all and to one, panics, slow ticks, recordings.
//! In: clients that subscribe and publish → out: what they receive from simulations.
//! Uses the test client on a runtime of the test, rooms of 50 to 1,000 ticks per second.
//! Changed here: expectations of `rooms`. What a tick does is tested in `fanwire-room`.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    time::{Duration, Instant},
};

use fanwire::{
    Builder, EmbeddedServer, Hooks, RoomError, RoomOptions, Rooms, SubscribeEvent, SubscribeGrant,
    config::Config,
    room::{
        InputKind, InputLimits, InputRate, PlayerId, RoomContext, RoomOutput, Simulation, replay,
    },
};
use fanwire_testing::wait_for;
use tokio::runtime::Runtime;

use crate::client::{Client, fetch};

/// Sends each input to all, and the sum of all inputs as state.
#[derive(Default)]
struct Sums {
    users: BTreeMap<PlayerId, String>,
    sum: i64,
}

impl Simulation for Sums {
    fn kind(input: &[u8]) -> InputKind {
        let sequence = str::from_utf8(input).ok().and_then(|text| text.parse().ok());
        InputKind { kind: input.len() as u8, newest_wins: false, sequence }
    }

    fn join(&mut self, player: PlayerId, user: &str, data: &[u8], context: &mut RoomContext<'_>) {
        self.users.insert(player, user.to_owned());
        let data = String::from_utf8_lossy(data);
        context.reliable_to(player, format!(r#"{{"welcome":{},"data":{data}}}"#, player.0));
    }

    fn leave(&mut self, player: PlayerId, context: &mut RoomContext<'_>) {
        self.users.remove(&player);
        context.reliable(format!(r#"{{"left":{}}}"#, player.0));
    }

    fn input(&mut self, player: PlayerId, input: &[u8], context: &mut RoomContext<'_>) {
        let text = str::from_utf8(input).expect("JSON is text");
        match text {
            "\"panic\"" => panic!("on purpose"),
            "\"work\"" => {
                let end = Instant::now() + Duration::from_millis(300);
                while Instant::now() < end {}
            }
            "\"large\"" => context.latest(format!("\"{}\"", "x".repeat(LARGE))),
            _ => self.sum += text.parse::<i64>().unwrap_or(0),
        }
        let sequence = context.sequence(player).map_or("null".to_owned(), |one| one.to_string());
        context.reliable_to(player, format!(r#"{{"applied":{sequence}}}"#));
    }

    fn tick(&mut self, context: &mut RoomContext<'_>) {
        context.latest(format!(r#"{{"sum":{}}}"#, self.sum));
    }
}

/// Bytes of a state that is larger than the queue of a client.
const LARGE: usize = 1 << 20;

fn server(rooms: &Rooms) -> EmbeddedServer {
    let mut config = Config::default();
    config.client.queue_max_size = LARGE / 2;
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.client.insecure = true;
    config.prometheus.enabled = true;
    config.shards = 2;
    config.shutdown.timeout = Duration::from_millis(500); // some clients do not answer the close
    Builder::new(config).rooms(rooms).start_embedded().expect("a free port is free")
}

fn options(channel: &str, ticks_per_second: u32) -> RoomOptions {
    let ticks_per_second = NonZeroU32::new(ticks_per_second).expect("not 0");
    RoomOptions { ticks_per_second, ..RoomOptions::new(channel) }
}

/// A client that has connected and subscribed with data.
async fn player(server: &EmbeddedServer, channel: &str) -> Client {
    let mut client = Client::open(server.address(), "").await;
    client.text(r#"{"id":1,"connect":{}}"#).await;
    client.next_text().await;
    client.text(&format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}","data":[7]}}}}"#)).await;
    client
}

/// Reads until a message contains `text`.
async fn until(client: &mut Client, text: &str) -> String {
    loop {
        let received = client.next_text().await;
        if received.contains(text) {
            return received;
        }
    }
}

async fn publish(client: &mut Client, channel: &str, data: &str) {
    let command = format!(r#"{{"id":3,"publish":{{"channel":"{channel}","data":{data}}}}}"#);
    client.text(&command).await;
}

#[test]
fn players_join_send_inputs_and_leave() {
    let rooms = Rooms::new(2);
    rooms.open(options("a", 100), Sums::default()).expect("a new channel");
    let server = server(&rooms);
    assert_eq!(rooms.open(options("a", 60), Sums::default()), Err(RoomError::Exists));
    let runtime = Runtime::new().expect("a runtime");
    // Ada stays to the end: a client that is dropped leaves the room.
    let ada = runtime.block_on(async {
        let mut ada = player(&server, "a").await;
        until(&mut ada, r#"{"welcome":1,"data":[7]}"#).await;
        let mut bob = player(&server, "a").await;
        until(&mut bob, r#"{"welcome":2,"data":[7]}"#).await;
        publish(&mut ada, "a", "5").await;
        until(&mut ada, r#"{"applied":5}"#).await;
        publish(&mut bob, "a", "37").await;
        until(&mut bob, r#"{"sum":42}"#).await;
        until(&mut ada, r#"{"sum":42}"#).await;
        bob.text(r#"{"id":4,"unsubscribe":{"channel":"a"}}"#).await;
        until(&mut ada, r#"{"left":2}"#).await;
        publish(&mut bob, "a", "1").await;
        until(&mut bob, r#""code":103"#).await;
        let carl = player(&server, "a").await;
        drop(carl);
        until(&mut ada, r#"{"left":3}"#).await;
        publish(&mut ada, "a", &format!("\"{}\"", "x".repeat(20))).await;
        until(&mut ada, r#""code":107"#).await;
        ada
    });
    let stats = rooms.stats("a").expect("a room");
    assert_eq!((stats.players, stats.inputs.accepted, stats.inputs.refused), (1, 2, 2));
    assert!(stats.ticks > 0 && stats.tick_p50 <= stats.tick_p99 && stats.failed_outputs == 0);
    drop(ada);
    assert!(rooms.close("a") && !rooms.close("a") && rooms.stats("a").is_none());
    server.shutdown();
}

#[test]
fn a_room_that_panics_ends_alone_and_its_players_are_unsubscribed() {
    let rooms = Rooms::new(1);
    for channel in ["a", "b"] {
        rooms.open(options(channel, 100), Sums::default()).expect("a new channel");
    }
    let server = server(&rooms);
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut ada = player(&server, "a").await;
        let mut bob = player(&server, "b").await;
        until(&mut bob, "welcome").await;
        publish(&mut ada, "a", "\"panic\"").await;
        let end = until(&mut ada, "unsubscribe").await;
        assert!(end.contains(r#""unsubscribe":{"code":2000"#), "{end}");
        publish(&mut bob, "b", "1").await;
        until(&mut bob, r#"{"sum":1}"#).await;
    });
    assert!(rooms.stats("a").is_none() && rooms.stats("b").is_some());
    let metrics = runtime.block_on(fetch(server.address(), "/metrics"));
    for line in [
        "fanwire_rooms 1",
        "fanwire_room_inputs_total 2",
        "fanwire_room_tick_duration_seconds_count{kind=\"\"} ",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    rooms.open(options("a", 100), Sums::default()).expect("the channel is free again");
    server.shutdown();
}

#[test]
fn a_slow_tick_delays_its_own_room_and_is_counted() {
    let rooms = Rooms::new(2);
    for channel in ["a", "b"] {
        rooms.open(options(channel, 50), Sums::default()).expect("a new channel");
    }
    let server = server(&rooms);
    Runtime::new().expect("a runtime").block_on(async {
        let mut ada = player(&server, "a").await;
        let mut bob = player(&server, "b").await;
        until(&mut bob, "welcome").await;
        publish(&mut ada, "a", "\"work\"").await;
        let before = rooms.stats("b").expect("a room").ticks;
        until(&mut ada, r#"{"applied":null}"#).await;
        assert!(rooms.stats("b").expect("a room").ticks > before, "b went on");
    });
    // A tick is counted after its output was published.
    let is_counted = || {
        let stats = rooms.stats("a").expect("a room");
        stats.overruns > 0 && stats.tick_p99 > Duration::ZERO
    };
    wait_for(is_counted, Duration::from_secs(10));
    server.shutdown();
}

#[test]
fn a_state_larger_than_the_queue_arrives_whole_and_other_rooms_go_on() {
    let rooms = Rooms::new(1);
    for channel in ["a", "b"] {
        rooms.open(options(channel, 100), Sums::default()).expect("a new channel");
    }
    let server = server(&rooms);
    Runtime::new().expect("a runtime").block_on(async {
        let (mut ada, mut eve) = (player(&server, "a").await, player(&server, "a").await);
        let mut bob = player(&server, "b").await;
        until(&mut eve, "welcome").await;
        publish(&mut ada, "a", "\"large\"").await;
        for player in [&mut ada, &mut eve] {
            let large = until(player, "xxx").await;
            assert!(large.len() > LARGE);
            until(player, r#"{"sum":0}"#).await;
        }
        publish(&mut bob, "b", "7").await;
        until(&mut bob, r#"{"sum":7}"#).await;
    });
    server.shutdown();
}

#[test]
fn a_flood_is_limited_and_other_players_are_not_affected() {
    let rooms = Rooms::new(1);
    let rate = InputRate { per_second: 10, burst: 10 };
    let inputs = InputLimits { rate, ..InputLimits::default() };
    rooms.open(RoomOptions { inputs, ..options("a", 100) }, Sums::default()).expect("new");
    let server = server(&rooms);
    Runtime::new().expect("a runtime").block_on(async {
        let (mut ada, mut bob) = (player(&server, "a").await, player(&server, "a").await);
        for _ in 0..100 {
            publish(&mut ada, "a", "1").await;
        }
        until(&mut ada, r#""code":111"#).await;
        publish(&mut bob, "a", "100").await;
        until(&mut bob, r#"{"applied":100}"#).await;
    });
    let inputs = rooms.stats("a").expect("a room").inputs;
    assert!(inputs.accepted >= 11 && inputs.refused > 0, "{inputs:?}");
    server.shutdown();
}

/// Sends a plan of each team at each tick.
struct Plans;

impl Simulation for Plans {
    fn join(&mut self, _: PlayerId, _: &str, _: &[u8], _: &mut RoomContext<'_>) {}
    fn leave(&mut self, _: PlayerId, _: &mut RoomContext<'_>) {}
    fn input(&mut self, _: PlayerId, _: &[u8], _: &mut RoomContext<'_>) {}

    fn tick(&mut self, context: &mut RoomContext<'_>) {
        context.reliable_tagged("team", "blue", format!(r#"{{"blue":{}}}"#, context.tick()));
        context.latest_tagged("team", "red", format!(r#"{{"red":{}}}"#, context.tick()));
    }
}

#[test]
fn a_player_gets_what_is_tagged_for_its_team() {
    let rooms = Rooms::new(1);
    rooms.open(options("a", 100), Plans).expect("a new channel");
    let subscribe = |event: SubscribeEvent| async move {
        let team = if event.data == "[7]" { "red" } else { "blue" };
        let filter = format!(r#"{{"key":"team","cmp":"eq","val":"{team}"}}"#);
        let server_tags_filter = filter.into();
        Ok(Some(SubscribeGrant { server_tags_filter, ..SubscribeGrant::default() }))
    };
    let mut config = Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.client.insecure = true;
    let hooks = Hooks::new().subscribe(subscribe);
    let server = Builder::new(config).rooms(&rooms).hooks(hooks).start_embedded();
    let server = server.expect("a free port is free");
    Runtime::new().expect("a runtime").block_on(async {
        let mut ada = player(&server, "a").await;
        assert!(ada.next_text().await.contains(r#""subscribe":{}"#));
        for _ in 0..5 {
            let message = ada.next_text().await;
            assert!(message.contains(r#"{"data":{"red":"#), "{message}");
            assert!(!message.contains("blue"), "{message}");
        }
    });
    server.shutdown();
}

#[test]
fn a_recording_of_a_room_replays() {
    let rooms = Rooms::new(1);
    rooms.open(RoomOptions { records: true, ..options("a", 1000) }, Sums::default()).expect("new");
    let server = server(&rooms);
    let mut recording = rooms.take_recording("a");
    Runtime::new().expect("a runtime").block_on(async {
        let mut ada = player(&server, "a").await;
        for number in 1..=20 {
            publish(&mut ada, "a", &number.to_string()).await;
            until(&mut ada, &format!(r#"{{"applied":{number}}}"#)).await;
            recording.extend(rooms.take_recording("a"));
        }
    });
    recording.extend(rooms.take_recording("a"));
    let mut states = Vec::new();
    let end = replay(&recording, Sums::default(), |_, messages| {
        states.extend(messages.iter().filter_map(|output| match output {
            RoomOutput::Message(message) if message.is_latest => Some(message.data.clone()),
            _ => None,
        }));
    });
    let error = end.map(drop).expect_err("the room has not ended");
    assert!(error.to_string().starts_with("the recording ends after tick"), "{error}");
    assert_eq!(states.last().expect("a state"), r#"{"sum":210}"#);
    server.shutdown();
}
