//! The Lua scripts that make a call one moment in Redis: what is read and written happens with nothing in between.
//! In: keys and arguments → out: an EVALSHA command; the SCRIPT LOAD commands that a connection begins with.
//! Uses: SHA-1, which is how Redis names scripts. Never: time or chance inside a script; both come as arguments.
//! Change here: the list of scripts. Each is a file in `script/`, which says its keys, arguments and reply.

use std::fmt::Write as _;
use std::sync::LazyLock;

use sha1::{Digest as _, Sha1};

use super::wire::RedisCommand;

/// One script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Publish,
    History,
    PresenceAdd,
    PresenceRemove,
    PresenceMembers,
    PresenceStats,
}

impl Script {
    /// Begins a call: `keys` first, then room for `arguments` more, of about `bytes`.
    pub(crate) fn call(self, keys: &[&str], arguments: usize, bytes: usize) -> RedisCommand {
        let key_bytes: usize = keys.iter().map(|key| key.len()).sum();
        let mut command =
            RedisCommand::new(3 + keys.len() + arguments, CALL_BYTES + key_bytes + bytes);
        command.text("EVALSHA").text(&SOURCES[self as usize].name).number(keys.len() as u64);
        for key in keys {
            command.text(key);
        }
        if self.is_write() { command.writes() } else { command }
    }

    /// Whether it changes what others see. A script that begins an empty stream or takes out members whose time is over
    /// does not: another Redis would do the same.
    fn is_write(self) -> bool {
        matches!(self, Self::Publish | Self::PresenceAdd | Self::PresenceRemove)
    }
}

/// Makes a Redis know all scripts.
pub(crate) fn loads() -> impl Iterator<Item = RedisCommand> {
    SOURCES.iter().map(|source| RedisCommand::of(&[b"SCRIPT", b"LOAD", source.text.as_bytes()]))
}

struct Source {
    text: String,
    /// Its SHA-1 in hexadecimal.
    name: String,
}

/// In the order of [`Script`].
static SOURCES: LazyLock<[Source; 6]> = LazyLock::new(|| {
    [
        [REPLICATION_HISTORY, PUBLISH].concat(),
        [REPLICATION_HISTORY, HISTORY].concat(),
        [PRESENCE, PRESENCE_ADD].concat(),
        [PRESENCE, PRESENCE_REMOVE].concat(),
        PRESENCE_MEMBERS.to_owned(),
        [PRESENCE, PRESENCE_STATS].concat(),
    ]
    .map(|text| Source { name: hexadecimal(&Sha1::digest(&text)), text })
});

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What publishing and reading have in common.
const REPLICATION_HISTORY: &str = include_str!("script/replication_history.lua");
const PUBLISH: &str = include_str!("script/publish.lua");
const HISTORY: &str = include_str!("script/history.lua");
/// What adding, removing and counting members have in common.
const PRESENCE: &str = include_str!("script/presence.lua");
const PRESENCE_ADD: &str = include_str!("script/presence_add.lua");
const PRESENCE_REMOVE: &str = include_str!("script/presence_remove.lua");
const PRESENCE_MEMBERS: &str = include_str!("script/presence_members.lua");
const PRESENCE_STATS: &str = include_str!("script/presence_stats.lua");
/// The name of a script and the frame of a call.
const CALL_BYTES: usize = 80;
