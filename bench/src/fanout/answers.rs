//! Answers of a model for `fanout --answers`: 4,000 characters in 800 pieces each, to be published alone or appended.
//! In: nothing → out: requests of the server API; settings of the channel that keeps them.
//! Uses words that repeat as those of a language do, with a fixed seed. Never: a socket.
//! Changed here: what an answer is; who gets it is in `fanout`.

use bytes::Bytes;
use serde_json::{Value, json};

use super::Publication;
use super::schedule::channel;
use crate::target::API_KEY;
use fanwire_load::generator::publisher::http_request;
use fanwire_load::random::Random;

/// Many answers, a piece each; the request publishes it alone, and the trigger appends it.
pub fn pieces() -> Vec<Publication> {
    let mut random = Random(7);
    let words: Vec<String> = (0..400).map(|_| word(&mut random)).collect();
    (0..ANSWERS).flat_map(|number| answer(number, &words, &mut random)).collect()
}

/// History for a reload, and an interval that no loop waits for.
pub fn settings() -> Value {
    json!({ "channel": { "without_namespace": {
        "history_size": 100, "history_ttl": "300s", "force_recovery": true, "append_interval": "1ms",
    }}})
}

fn answer(number: usize, words: &[String], random: &mut Random) -> Vec<Publication> {
    let mut at = 0;
    let mut piece = |index| {
        // Frequent words are frequent, as in any language.
        let common = random.below(words.len()).min(random.below(words.len()));
        let text = &words[common];
        let alone = json!({ "channel": channel(0), "data": text });
        let is_final = index + 1 == PIECES;
        let channel = channel(0);
        let key = format!("answer-{number}");
        let append =
            json!({ "channel": channel, "key": key, "data": text, "at": at, "final": is_final });
        at += text.len();
        let [request, trigger] = [("publish", alone), ("append", append)]
            .map(|(method, body)| http_request(method, &body.to_string(), API_KEY));
        // They come by HTTP alone.
        Publication { request, body: String::new(), command: Bytes::new(), trigger }
    };
    (0..PIECES).map(&mut piece).collect()
}

/// Four letters and a space.
fn word(random: &mut Random) -> String {
    let letters = (0..4).map(|_| char::from(LETTERS[random.below(LETTERS.len())]));
    letters.chain([' ']).collect()
}

const PIECES: usize = 800;
const ANSWERS: usize = 200;
const LETTERS: &[u8] = b"etaoinshrdlucmfwypvbgk";
