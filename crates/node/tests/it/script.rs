//! The language in which tests write dialogues, so that a test reads like what happens on the wire.
//! In: a script of lines (see `World::play`) → out: a panic at the first line that did not happen.
//! Uses: `world`. Never: anything of the node directly.
//! Changed here: words of the language.

use std::collections::BTreeMap;
use std::time::Duration;

use fanwire_broker::map::{MapPublish, MapRemoval};
use fanwire_broker::{ClientId, PublishOptions};
use fanwire_node::{CommandSource, ConnectionInfo, Options};
use fanwire_protocol::{Encoding, Publication};

use crate::world::World;

impl World {
    /// Plays a dialogue, in which one line is one event:
    ///
    /// ```text
    /// ada opens                         (also: opens protobuf, opens frame_ping, opens uni, opens as USER)
    /// ada > {"id":1,"connect":{}}       she says this; `$ada` stands for her client id, `\n` for a line break
    /// ada < {"id":1,"connect":{}}       the next thing she receives; client ids read as names, epochs as E1, E2 …,
    ///                                   her session id as S, the id of the node as N
    /// ada x 3501 bad request            the next thing is this disconnect, with or without a cause
    /// ada x 3501 bad request: no token  the next thing is this disconnect with this cause
    /// ada receives nothing                 there is nothing she has not read
    /// ada closes                        her socket is gone
    /// ada sleeps                        she answers no pings any more, and receives them
    /// api > news {"a":1}                the server API publishes
    /// api skips history: news {"a":1}   it publishes without history
    /// api spares ada: news {"a":1}      it publishes to everybody but her
    /// api tags a=1,b=2: news {"a":1}    it publishes with tags
    /// api removes history: news         it drops what is stored
    /// api sets board k {"a":1}          it sets a key of a map (also: with tags, board k#a=1,b=2 {"a":1})
    /// api unsets board k                it removes a key of a map
    /// api clears board                  it forgets a map
    /// node ticks                        its periodic work is done
    /// node moves                        another node takes over, with all connections
    /// wait 25s                          time passes (also: 500ms); who is awake answers pings
    /// clock +3600                       the clock of the machine is set, by so many seconds
    /// ada awaits 25s                    time passes until she receives something, at most so much
    /// ```
    ///
    /// At the end everybody must have read everything.
    pub(crate) fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if self.moves_before_each_line {
                self.take_over(); // unless a client has a command that waits
            }
            self.play_line(line);
        }
        assert_eq!(self.unread(), [], "heard, but not in the script");
    }

    pub(crate) fn play_line(&mut self, line: &str) {
        let (name, rest) = line.split_once(' ').expect("NAME WORD …");
        let (word, text) = rest.split_once(' ').unwrap_or((rest, ""));
        match (name, word) {
            ("wait", _) => self.wait(duration(rest)),
            ("clock", _) => self.step_clock(rest.parse().expect("seconds")),
            ("api", ">") => {
                let (channel, data) = text.split_once(' ').expect("CHANNEL DATA");
                self.publish(channel, data);
            }
            ("api", "skips") => {
                let (channel, data) =
                    text["history: ".len()..].split_once(' ').expect("CHANNEL DATA");
                let options = PublishOptions { skip_history: true, ..PublishOptions::default() };
                self.publish_with(channel, data, options);
            }
            ("api", "spares") => {
                let (spared, rest) = text.split_once(": ").expect("NAME: CHANNEL DATA");
                let (channel, data) = rest.split_once(' ').expect("CHANNEL DATA");
                let exclude_client = ClientId::parse(self.id(spared));
                assert!(exclude_client.is_some(), "{spared} has an id");
                let options = PublishOptions { exclude_client, ..PublishOptions::default() };
                self.publish_with(channel, data, options);
            }
            ("api", "tags") => {
                let (tags, rest) = text.split_once(": ").expect("TAGS: CHANNEL DATA");
                let (channel, data) = rest.split_once(' ').expect("CHANNEL DATA");
                let tags = tags.split(',').map(|tag| tag.split_once('=').expect("KEY=VALUE"));
                let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
                self.publish_tagged(channel, data, tags, PublishOptions::default());
            }
            ("api", "removes") => {
                let channel = &text["history: ".len()..];
                self.node
                    .channels()
                    .remove_history(channel, self.now)
                    .wait()
                    .expect("the API may remove");
            }
            ("node", "ticks") => {
                self.node.tick(self.now);
                self.settle();
            }
            ("node", "moves") => assert!(self.take_over(), "everything can move"),
            ("api", "sets") => {
                let words: Vec<_> = text.splitn(3, ' ').collect();
                let [channel, key, data] = words[..] else { panic!("CHANNEL KEY DATA") };
                self.set_key(channel, key, data);
            }
            ("api", "unsets") => {
                let (channel, key) = text.split_once(' ').expect("CHANNEL KEY");
                self.unset_key(channel, key);
            }
            ("api", "clears") => {
                let cleared = self.node.maps().clear(text, self.now);
                cleared.wait().expect("the API may clear");
                self.settle();
            }
            (_, "opens") => self.open(name, hello(text)),
            (_, ">") => {
                let text = self.with_epochs(&self.with_ids(text)).replace("\\n", "\n");
                self.say(name, &text);
            }
            (_, "<") => {
                let heard = self.heard(name).map(|heard| self.without_epochs(&heard));
                let heard =
                    heard.map(|heard| renamed(&renamed(&heard, SESSION_KEY, "S"), NODE_KEY, "N"));
                assert_eq!(heard.as_deref(), Some(text), "at: {line}");
            }
            (_, "x") => {
                let heard = self.heard(name).map(|heard| match heard.split_once(": ") {
                    Some((code, _)) if !rest.contains(": ") => code.to_owned(),
                    _ => heard,
                });
                assert_eq!(heard.as_deref(), Some(format!("x {text}").as_str()), "at: {line}");
            }
            (_, "awaits") => self.await_news(name, duration(text)),
            (_, "receives") => assert_eq!(self.heard(name), None, "at: {line}"),
            (_, "closes") => {
                self.close(name);
                self.settle();
            }
            (_, "sleeps") => self.keeps_silent(name),
            _ => panic!("not a line of a script: {line}"),
        }
    }

    pub(crate) fn set_key(&mut self, channel: &str, key: &str, data: &str) {
        let (key, tags) = key.split_once('#').unwrap_or((key, ""));
        let tags = tags.split(',').filter_map(|tag| tag.split_once('='));
        let tags = tags.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let data = data.to_owned().into();
        let publication = Publication { key: key.into(), data, tags, ..Publication::default() };
        let publish = MapPublish { publication, ..MapPublish::default() };
        let changed = self.node.maps().publish(channel, publish, self.now);
        changed.wait().expect("the API may publish").expect("nothing is refused");
        self.settle();
    }

    pub(crate) fn unset_key(&mut self, channel: &str, key: &str) {
        let publication = Publication { key: key.into(), ..Publication::default() };
        let removal = MapRemoval { publication, ..MapRemoval::default() };
        let changed = self.node.maps().remove(channel, removal, self.now);
        changed.wait().expect("the API may remove").expect("nothing is refused");
        self.settle();
    }

    pub(crate) fn publish(&mut self, channel: &str, data: &str) {
        self.publish_with(channel, data, PublishOptions::default());
    }

    fn publish_with(&mut self, channel: &str, data: &str, options: PublishOptions) {
        self.publish_tagged(channel, data, BTreeMap::new(), options);
    }

    fn publish_tagged(
        &mut self,
        channel: &str,
        data: &str,
        tags: BTreeMap<String, String>,
        options: PublishOptions,
    ) {
        let data = data.to_owned().into();
        let publication = Publication { data, tags, ..Publication::default() };
        let published = self.node.channels().publish(channel, publication, options, self.now);
        published.wait().expect("the API may publish");
        self.settle();
    }

    /// Opens and connects a peer and forgets what it heard.
    pub(crate) fn connected(&mut self, name: &str, hello: ConnectionInfo) {
        self.open(name, hello);
        self.say(name, r#"{"id":1,"connect":{}}"#);
        let reply = self.heard(name).expect("a connect reply");
        assert!(reply.contains(r#""client":"#), "{reply}");
    }

    /// Epochs are random; they read as E1, E2 … in the order in which they were first heard.
    pub(crate) fn without_epochs(&mut self, text: &str) -> String {
        let mut pieces = text.split(EPOCH_KEY);
        let mut whole = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (epoch, rest) = piece.split_once('"').expect("a text ends");
            if !self.epochs.iter().any(|known| known == epoch) {
                self.epochs.push(epoch.to_owned());
            }
            let number = self.epochs.iter().position(|known| known == epoch).expect("known") + 1;
            whole.push_str(&format!("{EPOCH_KEY}E{number}\"{rest}"));
        }
        whole
    }

    fn with_epochs(&self, text: &str) -> String {
        let names = (1..).zip(&self.epochs);
        names.fold(text.to_owned(), |text, (number, epoch)| {
            text.replace(&format!("{EPOCH_KEY}E{number}\""), &format!("{EPOCH_KEY}{epoch}\""))
        })
    }

    fn with_ids(&self, text: &str) -> String {
        let mut pieces = text.split('$');
        let mut whole = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let end = piece.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(piece.len());
            let (name, rest) = piece.split_at(end);
            match self.try_id(name) {
                Some(id) => whole.push_str(id),
                None => whole.extend(["$", name]),
            }
            whole.push_str(rest);
        }
        whole
    }
}

/// The text with another value of the member `key`, if it has one.
fn renamed(text: &str, key: &str, name: &str) -> String {
    let Some((before, rest)) = text.split_once(key) else { return text.to_owned() };
    let (_, after) = rest.split_once('"').expect("a text ends");
    format!("{before}{key}{name}\"{after}")
}

const SESSION_KEY: &str = r#""session":""#;
const NODE_KEY: &str = r#""node":""#;
const EPOCH_KEY: &str = r#""epoch":""#;

/// Plays one script in a fresh world for each encoding, which `opens` means; then in a world in which another node takes over
/// before each line, because no client may notice that.
pub(crate) fn play_in_both(options: &Options, script: &str) {
    play_in_both_without_moves(options, script);
    for script in in_both(script) {
        let mut world = World::new(options.clone());
        world.moves_before_each_line = true;
        world.play(&script);
    }
}

/// The same for a script in which a client may notice that another node takes over.
pub(crate) fn play_in_both_without_moves(options: &Options, script: &str) {
    in_both(script).iter().for_each(|script| World::new(options.clone()).play(script));
}

fn in_both(script: &str) -> [String; 2] {
    ["json", "protobuf"].map(|encoding| script.replace(" opens", &format!(" opens {encoding}")))
}

pub(crate) fn hello(words: &str) -> ConnectionInfo {
    let mut hello = ConnectionInfo {
        encoding: Encoding::Json,
        frame_ping: false,
        transport: "websocket",
        command_source: CommandSource::Connection,
        user: None,
        last_event_id: None,
        headers: Vec::new(),
    };
    let mut words = words.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "json" => hello.encoding = Encoding::Json,
            "protobuf" => hello.encoding = Encoding::Protobuf,
            "frame_ping" => hello.frame_ping = true,
            "uni" => hello.command_source = CommandSource::None,
            "as" => hello.user = words.next().map(str::to_owned),
            other => panic!("nobody opens {other}"),
        }
    }
    hello
}

fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).expect("a unit"));
    let number = number.parse().expect("a number");
    match unit {
        "s" => Duration::from_secs(number),
        "ms" => Duration::from_millis(number),
        other => panic!("no unit of time: {other}"),
    }
}
