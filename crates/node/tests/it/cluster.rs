//! Several nodes that receive each other: orders reach connections wherever they are, and every node knows of all.
//! In: verbs of the server API on one node → out: what peers of another receive, counts of all.
//! Uses: `world` once per node, a bus that carries messages at once. Never: sockets, brokers far away.
//! Changed here: promises about the cluster. Its messages are tested in the module.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use fanwire_auth::Overrides;
use fanwire_broker::{Answer, BrokerError, Bus, ClientId, PublishOptions};
use fanwire_node::area::{Place, Shape, View};
use fanwire_node::options::{AddressLimit, TenantRate};
use fanwire_node::questions::{
    Ask, ChannelQuestion, ClockQuestion, ConnectionLogQuery, ConnectionLogQuestion,
    ConnectionQuestion, ConnectionRecord, HotListsQuestion, PageQuestion, ReportQuestion,
};
use fanwire_node::{
    ConnectionSelector, DebugForCommand, Meters, Node, Renewal, SendAwayCommand,
    ServerSubscription, Surveyed, UserStatus,
};
use fanwire_protocol::{Disconnect, ErrorCode, Publication};
use fanwire_telemetry::{Reading, ReadingKind};

use crate::script::hello;
use crate::world::{UNIX, World, options};

/// Carries every message to all nodes, the sender included, unless it is cut.
#[derive(Clone, Default)]
struct Ether {
    nodes: Arc<Mutex<Vec<Weak<Node>>>>,
    is_cut: Arc<AtomicBool>,
}

impl Ether {
    fn add(&self, node: &Arc<Node>) {
        node.cluster().join(Arc::new(self.clone()));
        self.nodes.lock().expect("one thread").push(Arc::downgrade(node));
    }
}

impl Bus for Ether {
    fn send(&self, to: Option<&str>, message: Bytes) -> Answer<usize> {
        if self.is_cut.load(Relaxed) {
            return Answer::now(Err(BrokerError::Unavailable));
        }
        let nodes = self.nodes.lock().expect("one thread").clone();
        let now = std::time::Instant::now();
        let mut heard = 0;
        for node in nodes.iter().filter_map(Weak::upgrade) {
            if to.is_none_or(|uid| node.nodes(now)[0].uid == uid) {
                node.handle_message(&message, now);
                heard += 1;
            }
        }
        Answer::now(Ok(heard))
    }
}

const INTRODUCTION: Duration = Duration::from_secs(5);

/// Nodes with one connected peer each, which is subscribed to `news`.
fn cluster(names: &[&str]) -> Vec<World> {
    cluster_on(&Ether::default(), names)
}

fn cluster_on(ether: &Ether, names: &[&str]) -> Vec<World> {
    let worlds: Vec<_> = (names.iter())
        .map(|name| {
            let mut world = World::new(options(|options| {
                options.name = (*name).to_owned();
                options.channel.without_namespace.areas.tile_size = 10;
            }));
            ether.add(&world.node);
            world.connected(name, hello(""));
            world.say(name, r#"{"id":2,"subscribe":{"channel":"news"}}"#);
            assert_eq!(world.heard(name).as_deref(), Some(r#"{"id":2,"subscribe":{}}"#));
            world
        })
        .collect();
    worlds.iter().for_each(|world| world.node.introduce(world.now));
    // By then each node knows that there are no others.
    for world in &worlds {
        world.node.cluster().tick(world.now + INTRODUCTION);
    }
    worlds
}

#[test]
fn a_node_is_told_by_any_other_to_send_clients_away() {
    let worlds = cluster(&["one", "two"]);
    let send_away = |node: &str, percent| {
        let command = SendAwayCommand { node: node.into(), percent, rate: 7 };
        worlds[0].node.connections().rebalancing().command(command).wait()
    };
    let leaving = || -> Vec<u64> {
        let nodes = worlds.iter().map(|world| world.node.connections().rebalancing().left());
        nodes.collect()
    };
    assert_eq!(send_away("three", 100), Err(ErrorCode::METHOD_NOT_FOUND));
    assert_eq!(send_away("two", 100), Ok(()));
    assert_eq!(leaving(), [0, 1]);
    worlds[1].node.introduce(worlds[1].now);
    let states = worlds[0].node.nodes(worlds[0].now);
    assert_eq!(states.iter().map(|state| state.leaving).collect::<Vec<_>>(), [0, 1]);
    let uid = worlds[0].node.uid().to_owned();
    assert_eq!(send_away(&uid, 50), Ok(()));
    assert_eq!(leaving(), [1, 1], "a half is rounded up");
    assert_eq!(send_away("", 0), Ok(()));
    assert_eq!(leaving(), [0, 0], "all have the average");
    let alone = World::new(options(|_| {}));
    let command = SendAwayCommand::default();
    let refused = alone.node.connections().rebalancing().command(command).wait();
    assert_eq!(refused, Err(ErrorCode::NOT_AVAILABLE));
}

#[test]
fn an_unsubscribe_and_a_disconnect_reach_connections_of_every_node() {
    let mut worlds = cluster(&["ada", "bob"]);
    let done =
        worlds[0].node.connections().unsubscribe(ConnectionSelector::default(), Some("news"));
    assert_eq!(done.wait(), Ok(()));
    let disconnect = Disconnect { code: 4_000, reason: "bye".into() };
    assert_eq!(
        worlds[0].node.connections().disconnect(ConnectionSelector::default(), disconnect).wait(),
        Ok(())
    );
    for (world, name) in worlds.iter_mut().zip(["ada", "bob"]) {
        world.settle();
        world.play(&format!(
            r#"
            {name} < {{"push":{{"channel":"news","unsubscribe":{{"code":2000,"reason":"server unsubscribe"}}}}}}
            {name} x 4000 bye
        "#
        ));
    }
}

/// Asks both nodes on the first one.
fn ask<Q: Ask>(worlds: &mut [World], question: Q) -> Q::Answer {
    let answer = worlds[0].node.ask(question, worlds[0].now);
    worlds.iter_mut().for_each(World::settle);
    answer.wait().and_then(Surveyed::complete).expect("all nodes answer")
}

#[test]
fn every_node_answers_a_question_for_diagnosis() {
    let mut worlds = cluster(&["ada", "bob"]);
    let query = ConnectionLogQuery { user: Some(String::new()), limit: 9, ..Default::default() };
    let answers = ask(&mut worlds, ConnectionLogQuestion::from(query)).nodes;
    let names: Vec<_> = answers.iter().map(|answer| answer.node.as_str()).collect();
    assert_eq!(names, ["ada", "bob"]);
    for answer in &answers {
        assert_eq!(answer.logs.len(), 1);
        assert_eq!(answer.logs[0].events.last().expect("it subscribed").text, "news");
    }
    let answers = ask(&mut worlds, HotListsQuestion { limit: 5 }).nodes;
    let connections = answers.iter().map(|answer| answer.lists.users[0].value);
    assert_eq!(connections.collect::<Vec<_>>(), [1, 1]);

    let receipt = worlds[0].node.diagnostics().begin_receipt(worlds[0].now);
    let answers = ask(&mut worlds, ReportQuestion { receipt }).nodes;
    assert_eq!(answers.iter().map(|it| it.receipt.is_some()).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_subject_of_debug_lines_is_listed_on_every_node() {
    let ether = Ether::default();
    let mut worlds = cluster_on(&ether, &["ada", "bob"]);
    let users = vec!["42".to_owned()];
    let command = DebugForCommand { users, until: u64::MAX - 1, ..DebugForCommand::default() };
    let sent = worlds[0].node.diagnostics().debug_for(command.clone());
    assert_eq!(sent.expect("there is room").wait(), Ok(vec![]));
    let names = |world: &World| -> Vec<String> {
        let subjects = world.node.diagnostics().debug_subjects();
        subjects.into_iter().map(|subject| subject.name).collect()
    };
    assert_eq!(worlds.iter().map(names).collect::<Vec<_>>(), [["42"], ["42"]]);
    worlds.extend(cluster_on(&ether, &["a node that starts later"]));
    assert_eq!(worlds.iter().map(names).collect::<Vec<_>>(), [["42"], ["42"], ["42"]]);
    let ended = DebugForCommand { until: 0, ..command };
    assert_eq!(worlds[1].node.diagnostics().debug_for(ended).expect("room").wait(), Ok(vec![]));
    assert_eq!(worlds.iter().map(names).collect::<Vec<_>>(), [[""; 0], [""; 0], [""; 0]]);
}

#[test]
fn connections_of_users_are_those_of_every_node() {
    let mut worlds = cluster(&["ada", "bob"]);
    let hellos = ["as 42", "protobuf as 42"];
    for (number, (world, words)) in worlds.iter_mut().zip(hellos).enumerate() {
        let name = format!("eve{number}");
        world.open(&name, hello(words));
        world.say(&name, r#"{"id":1,"connect":{"name":"js","version":"5"}}"#);
        world.say(&name, r#"{"id":2,"subscribe":{"channel":"news"}}"#);
        assert!(world.heard(&name).is_some());
    }
    let node = Arc::clone(&worlds[0].node);
    let now = worlds[0].now;
    let of_user = ConnectionSelector { user: "42".into(), ..ConnectionSelector::default() };
    let all = node.ask(ConnectionQuestion::of(&of_user), now);
    let all = all.ready().expect_err("the shards have to answer");
    worlds.iter_mut().for_each(World::settle);
    let all = all.wait().and_then(Surveyed::complete).expect("all nodes answer").connections;
    let mut second = ConnectionQuestion::of(&of_user);
    second.after = all.keys().next().cloned().expect("two");
    second.limit = 1;
    let rest = ask(&mut worlds, second).connections;
    assert_eq!(rest.keys().collect::<Vec<_>>(), all.keys().skip(1).collect::<Vec<_>>());
    for (number, protocol) in ["json", "protobuf"].into_iter().enumerate() {
        let record = &all[worlds[number].id(&format!("eve{number}"))];
        let expect = ConnectionRecord {
            app_name: "js".into(),
            app_version: "5".into(),
            transport: "websocket".into(),
            protocol: protocol.into(),
            connected_at_ms: UNIX * 1000,
            channels: vec!["news".into()],
            user: "42".into(),
            node: ["ada", "bob"][number].into(),
            ..ConnectionRecord::default()
        };
        assert_eq!(*record, expect);
    }
    assert_eq!(all.len(), 2);

    let users = || ["42", "43", "44"].map(str::to_owned).to_vec();
    let statuses = || {
        let statuses = node.user_statuses(users(), now).wait();
        statuses.and_then(Surveyed::complete).expect("all nodes answer")
    };
    let online = |online| UserStatus { online, ..UserStatus::default() };
    assert_eq!(statuses(), [online(UNIX), online(0), online(0)]);
    worlds[1].close("eve1");
    worlds[0].close("eve0");
    assert_eq!(statuses(), vec![UserStatus::default(); 3]);
}

#[test]
fn pages_of_a_node_have_each_of_its_connections_once() {
    let mut worlds = cluster(&["ada", "bob"]);
    let expect: BTreeSet<String> = (0..7)
        .map(|number| {
            let name = format!("eve{number}");
            worlds[1].connected(&name, hello(""));
            worlds[1].id(&name).to_owned()
        })
        .collect();
    worlds[1].close("bob");
    let node = Arc::clone(&worlds[0].node);
    let now = worlds[0].now;
    let other = worlds[1].node.uid().to_owned();
    let mut start = 0;
    let mut found = BTreeSet::new();
    let mut pages = 0;
    loop {
        let page = node.ask_node(&other, PageQuestion { limit: 3, start }, now);
        worlds.iter_mut().for_each(World::settle);
        let page = page.wait().and_then(Surveyed::complete).expect("the node answers");
        assert!(page.connections.len() <= 3);
        page.connections.into_keys().for_each(|client| assert!(found.insert(client)));
        (start, pages) = (page.next, pages + 1);
        if start == 0 {
            break;
        }
    }
    assert_eq!(found, expect);
    assert!(pages >= 3);
    let unknown = node.ask_node("another", PageQuestion { limit: 3, start: 0 }, now).wait();
    assert_eq!(unknown.expect_err("no such node").code, 104);
}

#[test]
fn a_question_that_the_bus_does_not_carry_is_answered_for_this_node_and_names_the_others() {
    let ether = Ether::default();
    let mut worlds = cluster_on(&ether, &["ada", "bob"]);
    ether.is_cut.store(true, Relaxed);
    let node = Arc::clone(&worlds[0].node);
    let now = worlds[0].now;
    let bob = vec!["bob".to_owned()];
    let logs = node.ask(HotListsQuestion { limit: 5 }, now);
    let selector = ConnectionSelector { all_users: true, ..ConnectionSelector::default() };
    let connections = node.ask(ConnectionQuestion::of(&selector), now);
    worlds.iter_mut().for_each(World::settle);
    let logs = logs.wait().expect("this node answers");
    assert_eq!((logs.found.nodes[0].node.as_str(), logs.missing), ("ada", bob.clone()));
    let connections = connections.wait().expect("this node answers");
    assert_eq!((connections.found.connections.len(), connections.missing), (1, bob.clone()));
    let channels = node.ask(ChannelQuestion::from(""), now).wait().expect("this node answers");
    assert_eq!((channels.found.channels["news"], channels.missing), (1, bob.clone()));
    let users = vec!["42".to_owned()];
    let until = node.unix(now) + 60;
    let command = DebugForCommand { users, until, ..DebugForCommand::default() };
    let told = node.diagnostics().debug_for(command).expect("there is room");
    assert_eq!(told.wait(), Ok(bob));
    assert_eq!(node.diagnostics().debug_subjects()[0].name, "42");
}

#[test]
fn the_clock_of_another_node_is_compared_and_a_node_in_a_partition_is_named() {
    let ether = Ether::default();
    let worlds = cluster_on(&ether, &["ada", "bob"]);
    let now = worlds[1].now;
    for (world, ahead_ms) in worlds.iter().zip([0, 5000]) {
        world.node.synchronise(now, UNIX * 1000 + ahead_ms);
    }
    let node = &worlds[0].node;
    let answer = node.ask(ClockQuestion::of(node, now), now);
    let clocks = answer.wait().and_then(Surveyed::complete).expect("both nodes answer").nodes;
    assert_eq!((clocks[0].node.as_str(), clocks[0].offset_ms), ("ada", 0));
    assert_eq!((clocks[1].node.as_str(), clocks.len()), ("bob", 2));
    // A node notices no step of a millisecond, and cuts what it notices.
    let error_ms = (clocks[1].offset_ms - 5000).unsigned_abs();
    assert!(error_ms <= clocks[1].uncertainty_ms + 2, "{clocks:?}");

    ether.is_cut.store(true, Relaxed);
    let answer = node.ask(ClockQuestion::of(node, now), now).wait().expect("this node answers");
    assert_eq!((answer.found.nodes.len(), answer.missing), (1, vec!["bob".to_owned()]));
}

#[test]
fn an_ordered_subscription_and_a_refresh_reach_connections_of_every_node() {
    let mut worlds = cluster(&["ada", "bob"]);
    let overrides = Overrides { presence: Some(false), ..Overrides::default() };
    let subscription = ServerSubscription {
        channel: "extra".into(),
        data: "[1]".into(),
        overrides,
        ..ServerSubscription::default()
    };
    let ordered = worlds[0].node.connections().subscribe(
        ConnectionSelector::default(),
        subscription,
        worlds[0].now,
    );
    worlds[0].settle();
    assert_eq!(ordered.wait(), Ok(()), "without the other node");
    let renewal = Renewal { expire_at: Some(UNIX + 10), info: "{}".into() };
    assert_eq!(
        worlds[0].node.connections().refresh(ConnectionSelector::default(), renewal).wait(),
        Ok(())
    );
    for (world, name) in worlds.iter_mut().zip(["ada", "bob"]) {
        world.settle();
        world.play(&format!(
            r#"
            {name} < {{"push":{{"channel":"extra","subscribe":{{"data":[1]}}}}}}
            {name} < {{"push":{{"refresh":{{"expires":true,"ttl":10}}}}}}
            {name} awaits 36s
            {name} x 3005 connection expired
        "#
        ));
    }
}

#[test]
fn an_order_that_other_nodes_do_not_hear_is_obeyed_here_and_answered_with_100() {
    let ether = Ether::default();
    let mut worlds = cluster_on(&ether, &["ada", "bob"]);
    ether.is_cut.store(true, Relaxed);
    let node = Arc::clone(&worlds[0].node);
    let now = worlds[0].now;
    let extra = || ServerSubscription { channel: "extra".into(), ..ServerSubscription::default() };
    let bye = || Disconnect { code: 4_000, reason: "bye".into() };
    let renewal = Renewal { expire_at: Some(UNIX + 10), info: "{}".into() };
    let everybody = ConnectionSelector::default;
    let unheard = [
        node.connections().subscribe(everybody(), extra(), now),
        node.connections().unsubscribe(everybody(), Some("news")),
        node.connections().refresh(everybody(), renewal),
        node.connections().disconnect(everybody(), bye()),
    ];
    worlds.iter_mut().for_each(World::settle);
    for answer in unheard {
        assert_eq!(answer.wait(), Err(ErrorCode::INTERNAL));
    }
    worlds[0].play(
        r#"
        ada < {"push":{"channel":"extra","subscribe":{}}}
        ada < {"push":{"channel":"news","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}
        ada < {"push":{"refresh":{"expires":true,"ttl":10}}}
        ada x 4000 bye
    "#,
    );
    worlds[1].play("bob receives nothing");
    ether.is_cut.store(false, Relaxed);
    assert_eq!(node.connections().disconnect(everybody(), bye()).wait(), Ok(()), "repeated");
    worlds[1].settle();
    worlds[1].play("bob x 4000 bye");
}

#[test]
fn a_connection_that_should_be_the_only_one_comes_again_when_other_nodes_did_not_hear_of_it() {
    let ether = Ether::default();
    let mut worlds = ["ada", "bob"].map(|name| {
        let mut world = World::new(options(|options| {
            let personal = &mut options.client.subscribe_to_user_personal_channel;
            (personal.enabled, personal.single_connection) = (true, true);
        }));
        ether.add(&world.node);
        ether.is_cut.store(name == "bob", Relaxed);
        world.connected(name, hello("json as 42"));
        world.settle();
        world
    });
    worlds[0].settle();
    worlds[0].play("ada receives nothing");
    worlds[1].play("bob x 3004 internal server error");
}

#[test]
fn a_single_connection_closes_the_others_of_its_user_on_every_node() {
    let ether = Ether::default();
    let mut worlds = Vec::new();
    for (name, user) in [("ada", "42"), ("eve", "43"), ("bob", "42")] {
        let mut world = World::new(options(|options| {
            let personal = &mut options.client.subscribe_to_user_personal_channel;
            (personal.enabled, personal.single_connection) = (true, true);
        }));
        ether.add(&world.node);
        world.connected(name, hello(&format!("json as {user}")));
        worlds.push(world);
    }
    worlds.iter_mut().for_each(World::settle);
    worlds[0].play("ada x 3504 connection limit");
    worlds[1].play("eve receives nothing");
    worlds[2].play("bob receives nothing");
}

#[test]
fn every_node_knows_of_all_nodes_and_their_channels() {
    let worlds = cluster(&["ada", "bob", "eve"]);
    for (world, own) in worlds.iter().zip(["ada", "bob", "eve"]) {
        let nodes = world.node.nodes(world.now);
        assert_eq!(nodes[0].name, own, "this one first");
        let mut names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["ada", "bob", "eve"]);
        assert!(nodes.iter().all(|node| (node.connections, node.subscriptions) == (1, 1)));
        let channels = world.node.list_channels("n*", world.now).wait();
        assert_eq!(channels, Ok([("news".to_owned(), 3)].into()));
    }
}

#[test]
fn pages_of_channels_hold_what_all_nodes_have_together() {
    let mut worlds = cluster(&["ada", "bob", "eve"]);
    for (number, (world, name)) in worlds.iter_mut().zip(["ada", "bob", "eve"]).enumerate() {
        for channel in (number..9).step_by(number + 1) {
            world.say(name, &format!(r#"{{"id":3,"subscribe":{{"channel":"{channel}"}}}}"#));
        }
        world.settle();
    }
    let node = &worlds[1].node;
    let now = worlds[1].now;
    let whole = node.list_channels("?", now).wait().expect("all nodes answer");
    assert_eq!(whole.len(), 9);
    for limit in [1, 2, 8, 9, 10] {
        let mut pages = BTreeMap::new();
        let mut after = String::new();
        loop {
            let query = ChannelQuestion { pattern: "?".into(), after, limit };
            let mut page = node.list_channels(query, now).wait().expect("all nodes answer");
            let has_more = page.len() > limit as usize && page.pop_last().is_some();
            pages.extend(page);
            after = pages.last_key_value().expect("a channel").0.clone();
            if !has_more {
                break;
            }
        }
        assert_eq!(pages, whole, "{limit} in a page");
    }
}

/// Always the same level.
struct Level(f64);

impl Meters for Level {
    fn read(&self) -> Vec<Reading> {
        vec![Reading { name: "level".into(), kind: ReadingKind::Level, value: self.0 }]
    }
}

#[test]
fn every_node_hears_the_numbers_of_all_nodes() {
    let worlds = cluster(&["ada", "bob"]);
    for (world, level) in worlds.iter().zip([1.0, 2.0]) {
        world.node.summarise(Arc::new(Level(level)));
    }
    let level = |of: &World, name: &str| {
        let nodes = of.node.nodes(of.now);
        let node = nodes.into_iter().find(|node| node.name == name).expect("both are there");
        node.metrics.map(|metrics| (metrics.interval_seconds, metrics.items["level"]))
    };
    let before = [level(&worlds[0], "ada"), level(&worlds[1], "ada")];
    assert_eq!(before, [None, None], "nothing was read");
    for after in [0, 60] {
        worlds.iter().for_each(|world| world.node.tick(world.now + Duration::from_secs(after)));
    }
    for world in &worlds {
        assert_eq!(level(world, "ada"), Some((60.0, 1.0)));
        assert_eq!(level(world, "bob"), Some((60.0, 2.0)));
    }
}

#[test]
fn a_node_that_goes_is_not_waited_for() {
    let mut worlds = cluster(&["ada", "bob", "eve"]);
    worlds.pop().expect("three").node.cluster().leave();
    assert_eq!(worlds[0].node.nodes(worlds[0].now).len(), 2);
    let world = worlds.remove(0);
    drop(worlds); // without a word
    let survey = world.node.list_channels("", world.now);
    (0..=11).for_each(|second| world.node.tick(world.now + Duration::from_secs(second)));
    assert_eq!(survey.wait(), Err(ErrorCode::INTERNAL), "what it had is not known");
    let survey = world.node.list_channels("", world.now);
    assert_eq!(survey.wait(), Ok([("news".to_owned(), 1)].into()));
    assert_eq!(world.node.nodes(world.now).len(), 1);
}

#[test]
fn a_view_is_moved_from_any_node() {
    let mut nodes = cluster(&["red", "blue"]);
    let client = ClientId::parse(nodes[1].id("blue")).expect("an id");
    let shape = Shape::Circle { radius: 1.0 };
    let view = View { x: 15.0, y: 5.0, layer: 0, shape, margin: 0.0 };
    nodes[0].node.connections().set_view_on_every_node(client, "news", view).wait().expect("sent");
    nodes[1].settle();
    for (x, data) in [(5.0, "1"), (15.0, "2")] {
        let publication = Publication { data: data.into(), ..Publication::default() };
        let place = Place { x, y: 5.0, layer: 0 };
        let now = nodes[1].now;
        let options = PublishOptions::default();
        nodes[1]
            .node
            .channels()
            .publish_at(place, "news", publication, options, now)
            .wait()
            .expect("a place");
    }
    nodes[1].settle();
    let expected = r#"{"push":{"channel":"news","pub":{"data":2}}}"#;
    assert_eq!(nodes[1].heard("blue").as_deref(), Some(expected));
    assert_eq!(nodes[1].heard("blue"), None);
    let wrong = View { x: f64::NAN, ..view };
    let result = nodes[0].node.connections().set_view_on_every_node(client, "news", wrong).wait();
    assert_eq!(result, Err(ErrorCode::BAD_REQUEST));
}

#[test]
fn nodes_share_the_rates_of_tenants_and_the_connections_of_addresses() {
    let ether = Ether::default();
    let mut worlds = ["one", "two"].map(|name| {
        let mut world = World::new(options(|options| {
            options.name = name.to_owned();
            let limits = &mut options.channel.without_namespace.limits;
            limits.user_publish =
                TenantRate { limit: 2, interval: Duration::from_secs(60), dry_run: false };
            options.client.address_connections = AddressLimit { limit: 2, dry_run: false };
        }));
        ether.add(&world.node);
        world.connected("ada", hello("as 1"));
        world
    });
    let mut publish = |at: usize| {
        let world: &mut World = &mut worlds[at];
        world.say("ada", r#"{"id":2,"publish":{"channel":"news","data":1}}"#);
        let is_published = world.heard("ada").as_deref() == Some(r#"{"id":2,"publish":{}}"#);
        let now = world.now;
        world.node.tick(now);
        is_published
    };
    assert_eq!([0, 0, 0].map(&mut publish), [true, true, false]);
    assert_eq!([1, 1, 0].map(&mut publish), [false, false, false]);
    let address = Some(IpAddr::from([192, 0, 2, 7]));
    let [one, two] =
        worlds.each_ref().map(|world| world.node.channels().usage().addresses().clone());
    let places = [one.enter(address), two.enter(address)];
    worlds.iter().for_each(|world| world.node.tick(world.now));
    assert!(one.enter(address).is_err() && two.enter(address).is_err());
    drop(places);
    let place = one.enter(address);
    assert!(place.is_ok());
    assert!(one.enter(address).is_err(), "it has not heard that the other one has none");
}
