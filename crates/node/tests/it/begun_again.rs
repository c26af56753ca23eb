//! Commands that begin again after a wait for a backend: the second run has the effects of one.
//! In: each command of the protocol, in a world where backends answer at once and in one where they answer later → out: the same effects.
//! Uses: `world`, `script`, hooks that decide nothing, published keys. Never: what hooks grant, see `hooks`.
//! Changed here: the table of commands; a new command needs a row.

use std::sync::{Arc, Mutex};

use fanwire_auth::{Fetch, KeySource};
use fanwire_broker::Answer;
use fanwire_node::hooks::{ClientReport, Hook, Hooks};
use fanwire_node::options::Rate;
use fanwire_node::{CommandKind, Options};

use crate::flight_log::{events, logs};
use crate::history::with_history;
use crate::published_keys::{jwk, token};
use crate::script::hello;
use crate::world::World;

/// A command of ada, user 42, after those that she needs before.
struct Row {
    kind: CommandKind,
    before: &'static [&'static str],
    command: String,
    /// Whether it asks a hook or fetches a key.
    waits: bool,
}

const CONNECT: &str = r#"{"id":1,"connect":{"data":1}}"#;
const SUBSCRIBE: &str = r#"{"id":2,"subscribe":{"channel":"news"}}"#;

fn rows() -> Vec<Row> {
    let row = |kind, before, command: &str, waits| {
        let claims = r#"{"sub":"42","channel":"news","exp":1800000600}"#;
        let command = command.replace("TOKEN", &token("k1", claims));
        let command = command.replace("IDENTITY", &token("k1", r#"{"sub":"42"}"#));
        Row { kind, before, command, waits }
    };
    let connected: &[&str] = &[CONNECT];
    let subscribed: &[&str] = &[CONNECT, SUBSCRIBE];
    vec![
        row(CommandKind::Connect, &[], CONNECT, true),
        row(CommandKind::Connect, &[], r#"{"id":1,"connect":{"token":"IDENTITY"}}"#, true),
        row(CommandKind::Subscribe, connected, SUBSCRIBE, true),
        row(
            CommandKind::Subscribe,
            connected,
            r#"{"id":3,"subscribe":{"channel":"news","token":"TOKEN"}}"#,
            true,
        ),
        row(
            CommandKind::Unsubscribe,
            subscribed,
            r#"{"id":3,"unsubscribe":{"channel":"news"}}"#,
            false,
        ),
        row(
            CommandKind::Publish,
            subscribed,
            r#"{"id":3,"publish":{"channel":"news","data":1}}"#,
            true,
        ),
        row(CommandKind::Presence, subscribed, r#"{"id":3,"presence":{"channel":"news"}}"#, false),
        row(
            CommandKind::PresenceStats,
            subscribed,
            r#"{"id":3,"presence_stats":{"channel":"news"}}"#,
            false,
        ),
        row(
            CommandKind::History,
            subscribed,
            r#"{"id":3,"history":{"channel":"news","limit":-1}}"#,
            false,
        ),
        row(CommandKind::Rpc, connected, r#"{"id":3,"rpc":{"method":"buy","data":1}}"#, true),
        row(CommandKind::Send, connected, r#"{"send":{"data":1}}"#, true),
        row(CommandKind::Refresh, connected, r#"{"id":3,"refresh":{"token":"IDENTITY"}}"#, true),
        row(
            CommandKind::SubRefresh,
            subscribed,
            r#"{"id":3,"sub_refresh":{"channel":"news","token":"TOKEN"}}"#,
            true,
        ),
        row(CommandKind::Pong, connected, "{}", false),
        row(CommandKind::Unknown, connected, r#"{"id":3}"#, false),
    ]
}

/// Answers of backends that are due.
type Due = Arc<Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

/// The document with the key, at once or when it is due.
#[derive(Clone)]
struct Keys(Option<Due>);

impl KeySource for Keys {
    fn fetch(&self, fetch: Fetch) {
        let document = format!(r#"{{"keys":[{}]}}"#, jwk("k1")).into_bytes();
        match &self.0 {
            None => fetch.done(document),
            Some(due) => due.lock().expect("one thread").push(Box::new(|| fetch.done(document))),
        }
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

/// A hook that decides nothing, when it is due.
fn undecided<E: Send + 'static, G: Send + 'static>(due: &Due) -> Option<Hook<E, G>> {
    let due = Arc::clone(due);
    Some(Hook::new(move |_| {
        let (promise, answer) = Answer::later();
        due.lock().expect("one thread").push(Box::new(|| promise.keep(Ok(None))));
        answer
    }))
}

/// Every option that makes a second effect visible: rates that two runs of a command would use up, joins, presence, history.
fn observed() -> Options {
    let rate = |limit| Rate { limit, interval: std::time::Duration::from_secs(60) };
    let mut options = with_history(|open| {
        open.publish_rate = rate(2);
        open.subscribe_rate = rate(1);
        open.presence = true;
        open.allow_presence_for_client = true;
        open.join_leave = true;
        open.force_push_join_leave = true;
        open.force_recovery = true;
    });
    options.client.command_rate = rate(3);
    options.client.token.jwks_public_endpoint = "https://id.example.com/keys".to_owned();
    options.rpc.ping = true;
    options.rpc.send_method = "send".to_owned();
    options
}

/// Plays a row, the command twice. Returns the effects, and how many answers of backends the first command needed.
fn play(row: &Row, due: Option<&Due>) -> (Vec<String>, usize) {
    let reports = Arc::<Mutex<Vec<ClientReport>>>::default();
    let reported = Arc::clone(&reports);
    let report = move |report| reported.lock().expect("one thread").push(report);
    let mut hooks = Hooks { report: Some(Box::new(report)), ..Hooks::default() };
    if let Some(due) = due {
        hooks.connect = undecided(due);
        hooks.subscribe = undecided(due);
        hooks.publish = undecided(due);
        hooks.rpc = undecided(due);
    }
    let mut world = World::with_hooks(observed(), hooks);
    let keys = Arc::new(Keys(due.cloned()));
    world.node.fetch_keys_with(Arc::<Keys>::clone(&keys), keys);
    world.open("eve", hello("as 7"));
    world.open("ada", hello("as 42"));
    say(&mut world, due, "eve", &format!("{CONNECT}\n{SUBSCRIBE}"));
    for command in row.before {
        say(&mut world, due, "ada", command);
    }
    let answers = say(&mut world, due, "ada", &row.command);
    let mut all = effects(&mut world, &reports);
    say(&mut world, due, "ada", &row.command);
    all.extend(effects(&mut world, &reports));
    (all, answers)
}

/// Says a command, and lets backends answer until nothing is due. Returns how many answered.
fn say(world: &mut World, due: Option<&Due>, name: &str, command: &str) -> usize {
    world.say(name, command);
    let mut count = 0;
    loop {
        while world.shards.iter().any(|shard| !shard.mailbox.is_empty()) {
            world.settle();
        }
        let answer = due.and_then(|due| due.lock().expect("one thread").pop());
        let Some(answer) = answer else { return count };
        answer();
        count += 1;
    }
}

/// The messages that ada and eve received since the last call, the counts and reports of the node, and the log of ada.
fn effects(world: &mut World, reports: &Mutex<Vec<ClientReport>>) -> Vec<String> {
    let mut effects = Vec::new();
    for name in ["ada", "eve"] {
        while let Some(text) = world.heard(name) {
            let text = world.without_epochs(&text);
            // Members of a presence have no order; those of a JSON value have one.
            let value = serde_json::from_str::<serde_json::Value>(&text);
            let text = value.map_or(text, |value| value.to_string());
            effects.push(format!("{name} receives {text}"));
        }
    }
    effects.extend(world.shards.iter().map(|shard| format!("{:?}", shard.hub.counters())));
    for report in reports.lock().expect("one thread").iter() {
        let text = format!("{report:?}").replace(world.id("ada"), "ada");
        effects.push(text.replace(world.id("eve"), "eve"));
    }
    effects.extend(logs(world, Some("42"), "").iter().flat_map(events));
    effects
}

#[test]
fn each_command_has_the_effects_of_one_run_when_it_begins_again() {
    for row in rows() {
        let (once, _) = play(&row, None);
        let (again, answers) = play(&row, Some(&Due::default()));
        assert_eq!(answers, usize::from(row.waits), "answers that {} needs", row.command);
        for (again, once) in again.iter().zip(&once) {
            assert_eq!(again, once, "{}", row.command);
        }
        assert_eq!(again.len(), once.len(), "{}", row.command);
    }
}

#[test]
fn the_table_has_every_command() {
    let rows = rows();
    for kind in CommandKind::ALL {
        assert!(rows.iter().any(|row| row.kind == kind), "{kind:?} has no row");
    }
}
