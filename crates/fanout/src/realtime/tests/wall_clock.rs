//! The wall clock that tokens are checked against, when it was set after the start of the server.
//! In: a node whose time is a day behind that of the machine → out: the result of a token that expired an hour ago.
//! Uses one turn with Fanwire's application; the time of the machine is read once.
//! Changed here: expectations of the shell. The effect of a jump on sessions is tested in `node`.

use std::io::Read as _;

use fanwire_auth::{ConnectionToken, HmacAlgorithm, Lifetime, sign_hmac_connection};
use fanwire_node::Options;

use super::server::Server;
use crate::clock::unix_ms;

#[test]
fn a_token_is_judged_by_the_clock_as_it_is_and_not_as_it_was() {
    const HOUR_MS: u64 = 3_600_000;
    let now_ms = unix_ms();
    let mut options = Options::default();
    options.client.token.hmac_secret_key = "secret".into();
    let lifetime = Lifetime::Until((now_ms - HOUR_MS) / 1000);
    let claims = ConnectionToken { user: "42", lifetime, ..ConnectionToken::default() };
    let token = sign_hmac_connection("secret", HmacAlgorithm::Hs256, &claims).expect("claims");
    let mut server = Server::starting_at(options, now_ms - 24 * HOUR_MS);
    server.take_turn();
    server.open(None, &format!("{{\"id\":1,\"connect\":{{\"token\":\"{token}\"}}}}"));
    let expected = br#"{"id":1,"error":{"code":109,"message":"token expired"}}"#;
    let mut reply = vec![0; 2 + expected.len()];
    server.peers[0].read_exact(&mut reply).expect("a reply");
    assert_eq!(reply[2..].escape_ascii().to_string(), expected.escape_ascii().to_string());
}
