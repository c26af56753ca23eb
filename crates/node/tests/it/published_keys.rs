//! Tokens whose keys an identity provider publishes: commands wait for the document, and for nothing else.
//! In: dialogues with signed tokens, documents that come when the test says so → out: what each peer heard.
//! Uses: `world`, `script`, a `KeySource` that holds fetches back. Never: threads, sockets.
//! Changed here: what a command with such a token comes to. What is remembered of documents is tested in `auth/jwks`.

use std::sync::{Arc, Mutex};

use allocation_counter::measure;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fanwire_auth::{Fetch, KeySource};
use fanwire_node::Options;

use crate::script::hello;
use crate::tokens::guarded;
use crate::world::{UNIX, World};

/// Fetches that wait for the test.
#[derive(Debug, Default)]
struct PendingFetches(Mutex<Vec<Fetch>>);

impl KeySource for PendingFetches {
    fn fetch(&self, fetch: Fetch) {
        self.0.lock().expect("one thread").push(fetch);
    }
}

struct Provider {
    world: World,
    pending_fetches: Arc<PendingFetches>,
}

impl Provider {
    fn new(change: impl FnOnce(&mut Options)) -> Self {
        let options = guarded(|options| {
            options.client.token.jwks_public_endpoint = "https://id.example.com/keys".to_owned();
            change(options);
        });
        let world = World::new(options);
        let pending_fetches = Arc::new(PendingFetches::default());
        world.node.fetch_keys_with(
            Arc::<PendingFetches>::clone(&pending_fetches),
            Arc::<PendingFetches>::clone(&pending_fetches),
        );
        Self { world, pending_fetches }
    }

    /// The document comes and has keys of these names.
    fn comes(&mut self, kids: &[&str]) {
        let keys: Vec<String> = kids.iter().map(|kid| jwk(kid)).collect();
        self.one_fetch().done(format!(r#"{{"keys":[{}]}}"#, keys.join(",")).into_bytes());
        self.world.settle();
    }

    fn fails(&mut self) {
        drop(self.one_fetch());
        self.world.settle();
    }

    fn one_fetch(&mut self) -> Fetch {
        let mut fetches = self.pending_fetches.0.lock().expect("one thread");
        assert_eq!(fetches.len(), 1, "fetches under way");
        fetches.pop().expect("one")
    }

    fn play(&mut self, script: &str) {
        self.world.play(script);
    }
}

/// The key of this name; different names have different keys.
fn pair(kid: &str) -> Ed25519KeyPair {
    let mut seed = [0; 32];
    seed[..kid.len()].copy_from_slice(kid.as_bytes());
    Ed25519KeyPair::from_seed_unchecked(&seed).expect("any seed makes a key")
}

pub(crate) fn jwk(kid: &str) -> String {
    let x = URL_SAFE_NO_PAD.encode(pair(kid).public_key());
    format!(r#"{{"kty":"OKP","use":"sig","kid":"{kid}","crv":"Ed25519","x":"{x}"}}"#)
}

pub(crate) fn token(kid: &str, claims: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"EdDSA","kid":"{kid}"}}"#));
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(pair(kid).sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn connect(kid: &str) -> String {
    format!(r#"{{"id":1,"connect":{{"token":"{}"}}}}"#, token(kid, r#"{"sub":"42"}"#))
}

const CONNECTED: &str =
    r#"{"id":1,"connect":{"client":"NAME","version":"test","ping":25,"pong":true}}"#;

fn connected(name: &str) -> String {
    CONNECTED.replace("NAME", name)
}

const RETRY: &str = r#"{"code":100,"message":"internal server error","temporary":true}"#;

#[test]
fn a_connect_waits_for_its_key_and_what_follows_waits_behind_it() {
    let mut provider = Provider::new(|options| {
        options.channel.without_namespace.allow_subscribe_for_client = true
    });
    provider.play(&format!(
        r#"ada opens
           ada > {}\n{{"id":2,"subscribe":{{"channel":"a"}}}}
           ada > {{"id":3,"unsubscribe":{{"channel":"a"}}}}
           ada receives nothing"#,
        connect("k1")
    ));
    provider.comes(&["k1"]);
    provider.play(&format!(
        r#"ada < {}
           ada < {{"id":2,"subscribe":{{}}}}
           ada < {{"id":3,"unsubscribe":{{}}}}
           bob opens
           bob > {}
           bob < {}"#,
        connected("ada"),
        connect("k1"),
        connected("bob")
    ));
    assert_eq!(provider.world.node.key_counters().fetches, 1);
}

#[test]
fn a_reload_keeps_fetched_keys_and_connects_that_wait_for_one() {
    let mut provider = Provider::new(|_| {});
    provider.play(&format!("ada opens\n ada > {}\n ada receives nothing", connect("k1")));
    let other = guarded(|options| {
        options.client.token.jwks_public_endpoint = "https://id.example.com/keys".to_owned();
        options.client.token.hmac_secret_key = "other".into();
    });
    provider.world.node.reload(other, |_, _| {}).expect("the options are valid");
    provider.comes(&["k1"]);
    provider.play(&format!(
        "ada < {}\n bob opens\n bob > {}\n bob < {}",
        connected("ada"),
        connect("k1"),
        connected("bob")
    ));
    assert_eq!(provider.world.node.key_counters().fetches, 1);
}

#[test]
fn a_thousand_connections_with_unknown_keys_cause_one_fetch() {
    let mut provider = Provider::new(|_| {});
    for number in 0..1000 {
        let name = format!("peer{number}");
        provider.world.open(&name, hello(""));
        let kid = if number % 2 == 0 { "k1".to_owned() } else { format!("x{number}") };
        provider.world.say(&name, &connect(&kid));
        assert_eq!(provider.world.heard(&name), None);
    }
    provider.comes(&["k1"]);
    assert_eq!(provider.world.node.key_counters().fetches, 1);
    for number in 0..1000 {
        let name = format!("peer{number}");
        let heard = provider.world.heard(&name).expect("an answer");
        let expect = if number % 2 == 0 { r#"{"id":1,"connect":"# } else { "x 3500 " };
        assert!(heard.contains(expect), "{name}: {heard}");
    }
}

#[test]
fn who_signs_with_an_unpublished_key_is_refused_once_the_document_says_so() {
    let mut provider = Provider::new(|_| {});
    provider.play(&format!("ada opens\n ada > {}\n ada receives nothing", connect("x")));
    provider.comes(&["k1"]);
    provider.play("ada x 3500 invalid token");
    provider.play(&format!("bob opens\n bob > {}\n bob x 3500 invalid token", connect("x")));
}

#[test]
fn while_the_endpoint_is_down_clients_are_told_to_come_again() {
    let mut provider = Provider::new(|_| {});
    provider.play(&format!("ada opens\n ada > {}\n ada receives nothing", connect("k1")));
    provider.fails();
    provider.play(&format!(
        r#"ada < {{"id":1,"error":{RETRY}}}
           bob opens
           bob > {}
           bob < {{"id":1,"error":{RETRY}}}
           wait 5s
           eve opens
           eve > {}
           eve receives nothing"#,
        connect("k1"),
        connect("k1")
    ));
    provider.comes(&["k1"]);
    provider.play(&format!("eve < {}", connected("eve")));
}

#[test]
fn what_follows_a_refused_connect_in_its_message_is_dropped() {
    let expired = |kid| {
        let token = token(kid, r#"{"sub":"42","exp":1}"#);
        format!(
            r#"{{"id":1,"connect":{{"token":"{token}"}}}}\n{{"id":2,"subscribe":{{"channel":"a"}}}}"#
        )
    };
    let mut provider = Provider::new(|_| {});
    provider.play(&format!("ada opens\n ada > {}\n ada receives nothing", expired("k1")));
    provider.fails();
    provider
        .play(&format!("ada < {{\"id\":1,\"error\":{RETRY}}}\n ada receives nothing\n wait 5s"));
    provider.play(&format!("bob opens\n bob > {}\n bob receives nothing", expired("k1")));
    provider.comes(&["k1"]);
    provider.play(
        r#"
        bob < {"id":1,"error":{"code":109,"message":"token expired"}}
        bob receives nothing
        bob > {"id":3,"subscribe":{"channel":"a"}}
        bob x 3501 bad request
    "#,
    );
}

#[test]
fn a_command_that_waits_takes_the_memory_of_its_bytes() {
    let mut provider = Provider::new(|_| {});
    provider.play("ada opens");
    let nodes = vec!["{}"; 20_000].join(",");
    let subs = format!(r#"{{"a":{{"tf":{{"nodes":[{nodes}]}}}}}}"#);
    let token = token("k1", r#"{"sub":"42"}"#);
    let connect = format!(r#"{{"id":1,"connect":{{"token":"{token}","subs":{subs}}}}}"#);
    let allocated = measure(|| provider.world.say("ada", &connect));
    assert!(allocated.bytes_max > 10 * connect.len() as u64, "its values are large");
    let held = allocated.bytes_current;
    assert!(held < 2 * connect.len() as i64, "{held} bytes for {}", connect.len());
    provider.comes(&["k1"]);
    provider.play(&format!("ada < {}", connected("ada")));
}

#[test]
fn a_new_key_is_fetched_once_and_the_old_one_goes() {
    let mut provider = Provider::new(|_| {});
    provider.play(&format!("ada opens\n ada > {}", connect("k1")));
    provider.comes(&["k1"]);
    provider.play(&format!(
        "ada < {}\n wait 10s\n bob opens\n bob > {}\n bob receives nothing",
        connected("ada"),
        connect("k2")
    ));
    provider.comes(&["k2"]);
    provider.play(&format!(
        "bob < {}\n wait 5s\n eve opens\n eve > {}\n eve receives nothing",
        connected("bob"),
        connect("k1")
    ));
    provider.comes(&["k2"]);
    provider.play("eve x 3500 invalid token");
    assert_eq!(provider.world.node.key_counters().fetches, 3);
}

#[test]
fn subscribe_refresh_and_sub_refresh_wait_for_their_keys() {
    let mut provider = Provider::new(|_| {});
    provider.play(&format!("ada opens\n ada > {}", connect("k1")));
    provider.comes(&["k1"]);
    let exp = UNIX + 1000;
    let subscription = |kid| token(kid, &format!(r#"{{"sub":"42","channel":"$a","exp":{exp}}}"#));
    let connection = |kid| token(kid, &format!(r#"{{"sub":"42","exp":{exp}}}"#));
    provider.play(&format!(
        r#"ada < {}
           wait 5s
           ada > {{"id":2,"subscribe":{{"channel":"$a","token":"{}"}}}}
           ada receives nothing"#,
        connected("ada"),
        subscription("k2")
    ));
    provider.comes(&["k2"]);
    provider.play(&format!(
        r#"ada < {{"id":2,"subscribe":{{"expires":true,"ttl":995}}}}
           wait 5s
           ada > {{"id":3,"sub_refresh":{{"channel":"$a","token":"{}"}}}}
           ada receives nothing"#,
        subscription("k3")
    ));
    provider.comes(&["k3"]);
    provider.play(&format!(
        r#"ada < {{"id":3,"sub_refresh":{{"expires":true,"ttl":990}}}}
           wait 5s
           ada > {{"id":4,"refresh":{{"token":"{}"}}}}
           ada receives nothing"#,
        connection("k4")
    ));
    provider.comes(&["k4"]);
    provider.play(&format!(
        r#"ada < {{"id":4,"refresh":{{"expires":true,"ttl":985}}}}
           ada > {{"id":5,"sub_refresh":{{"channel":"$a","token":"{}"}}}}
           ada < {{"id":5,"error":{RETRY}}}"#,
        subscription("k5")
    ));
}

#[test]
fn a_bad_key_is_what_the_mapping_says_for_each_command() {
    let connected = |provider: &mut Provider| {
        provider.play(&format!("ada opens\n ada > {}", connect("k1")));
        provider.comes(&["k1"]);
        provider.play(&format!("ada < {}\n wait 5s", connected("ada")));
    };
    let claims = r#"{"sub":"42","channel":"$a"}"#;
    let rows = [
        (
            format!(
                r#"{{"id":2,"subscribe":{{"channel":"$a","token":"{}"}}}}"#,
                token("x", claims)
            ),
            r#"ada < {"id":2,"error":{"code":103,"message":"permission denied"}}"#,
        ),
        (
            format!(r#"{{"id":2,"refresh":{{"token":"{}"}}}}"#, token("x", r#"{"sub":"42"}"#)),
            "ada x 3500 invalid token",
        ),
    ];
    for (command, answer) in rows {
        let mut provider = Provider::new(|_| {});
        connected(&mut provider);
        provider.play(&format!("ada > {command}\n ada receives nothing"));
        provider.comes(&["k1"]);
        provider.play(answer);
    }
}

#[test]
fn a_connection_that_left_meanwhile_is_not_answered() {
    let mut provider = Provider::new(|_| {});
    provider.play(&format!("ada opens\n ada > {}\n ada closes", connect("k1")));
    provider.comes(&["k1"]);
    provider.play(&format!("bob opens\n bob > {}\n bob < {}", connect("k1"), connected("bob")));
}

#[test]
fn subscription_tokens_may_have_an_endpoint_of_their_own() {
    let mut provider = Provider::new(|options| {
        options.client.subscription_token = Some(fanwire_auth::TokenOptions {
            jwks_public_endpoint: "https://id.example.com/subscriptions".to_owned(),
            ..Default::default()
        });
    });
    provider.play(&format!("ada opens\n ada > {}", connect("k1")));
    provider.comes(&["k1"]);
    let token = token("k1", r#"{"sub":"42","channel":"$a"}"#);
    provider.play(&format!(
        r#"ada < {}
           ada > {{"id":2,"subscribe":{{"channel":"$a","token":"{token}"}}}}
           ada receives nothing"#,
        connected("ada")
    ));
    let fetch = provider.one_fetch();
    assert_eq!(fetch.url(), "https://id.example.com/subscriptions");
    fetch.done(br#"{"keys":[]}"#.to_vec());
    provider.world.settle();
    provider.play(r#"ada < {"id":2,"error":{"code":103,"message":"permission denied"}}"#);
}
