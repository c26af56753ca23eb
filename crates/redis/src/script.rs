//! The Lua scripts, each of which makes a call atomic in Redis.
//! In: keys and arguments → out: an EVALSHA command; the SCRIPT LOAD commands that a connection begins with.
//! Uses: SHA-1, by which Redis names scripts. Never: time or random numbers inside a script; both are arguments.
//! Changed here: the list of scripts. Each is a file in `script/`, which documents its keys, arguments and reply.

use std::fmt::Write as _;
use std::sync::LazyLock;

use sha1::{Digest as _, Sha1};

use super::wire::RedisCommand;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Publish,
    Append,
    History,
    PresenceAdd,
    PresenceRemove,
    PresenceMembers,
    PresencePage,
    PresenceStats,
    RevocationsChange,
    RevocationsPage,
    StatusUpdate,
    MapPublish,
    MapRemove,
    MapState,
    MapChanges,
    MapSweep,
    MapClear,
}

impl Script {
    /// Starts a call: `keys` first, then room for `arguments` more, of about `bytes`.
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

    /// Whether `WAIT` applies. A script that creates an empty stream or removes expired members is not a write,
    /// because another Redis would do the same.
    fn is_write(self) -> bool {
        matches!(
            self,
            Self::Publish
                | Self::Append
                | Self::PresenceAdd
                | Self::PresenceRemove
                | Self::RevocationsChange
                | Self::StatusUpdate
                | Self::MapPublish
                | Self::MapRemove
                | Self::MapClear
        )
    }
}

/// The commands that load all scripts.
pub(crate) fn loads() -> Vec<RedisCommand> {
    let load = |source: &Source| RedisCommand::of(&[b"SCRIPT", b"LOAD", source.text.as_bytes()]);
    SOURCES.iter().map(load).collect()
}

struct Source {
    text: String,
    /// Its SHA-1 in hexadecimal.
    name: String,
}

/// Sources of the scripts, in the order of [`Script`].
static SOURCES: LazyLock<[Source; 17]> = LazyLock::new(|| {
    [
        [REPLICATION_HISTORY, STORE, PUBLISH].concat(),
        [REPLICATION_HISTORY, STORE, APPEND].concat(),
        [REPLICATION_HISTORY, HISTORY].concat(),
        [PRESENCE, PRESENCE_ADD].concat(),
        [PRESENCE, PRESENCE_REMOVE].concat(),
        PRESENCE_MEMBERS.to_owned(),
        PRESENCE_PAGE.to_owned(),
        [PRESENCE, PRESENCE_STATS].concat(),
        REVOCATIONS_CHANGE.to_owned(),
        REVOCATIONS_PAGE.to_owned(),
        STATUS_UPDATE.to_owned(),
        [REPLICATION_HISTORY, STORE, MAP, MAP_PUBLISH].concat(),
        [REPLICATION_HISTORY, STORE, MAP, MAP_REMOVE].concat(),
        [REPLICATION_HISTORY, STORE, MAP, MAP_STATE].concat(),
        [REPLICATION_HISTORY, STORE, MAP, MAP_CHANGES].concat(),
        [REPLICATION_HISTORY, STORE, MAP, MAP_SWEEP].concat(),
        MAP_CLEAR.to_owned(),
    ]
    .map(|text| Source { name: hexadecimal(&Sha1::digest(&text)), text })
});

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Shared by publishing and reading.
const REPLICATION_HISTORY: &str = include_str!("script/replication_history.lua");
/// Shared by publishing and appending.
const STORE: &str = include_str!("script/store.lua");
const APPEND: &str = include_str!("script/append.lua");
const PUBLISH: &str = include_str!("script/publish.lua");
const HISTORY: &str = include_str!("script/history.lua");
/// Shared by adding, removing and counting members.
const PRESENCE: &str = include_str!("script/presence.lua");
const PRESENCE_ADD: &str = include_str!("script/presence_add.lua");
const PRESENCE_REMOVE: &str = include_str!("script/presence_remove.lua");
const PRESENCE_MEMBERS: &str = include_str!("script/presence_members.lua");
const PRESENCE_PAGE: &str = include_str!("script/presence_page.lua");
const PRESENCE_STATS: &str = include_str!("script/presence_stats.lua");
const REVOCATIONS_CHANGE: &str = include_str!("script/revocations_change.lua");
const REVOCATIONS_PAGE: &str = include_str!("script/revocations_page.lua");
const STATUS_UPDATE: &str = include_str!("script/status_update.lua");
/// Shared by all scripts of maps but the one that clears.
const MAP: &str = include_str!("script/map.lua");
const MAP_PUBLISH: &str = include_str!("script/map_publish.lua");
const MAP_REMOVE: &str = include_str!("script/map_remove.lua");
const MAP_STATE: &str = include_str!("script/map_state.lua");
const MAP_CHANGES: &str = include_str!("script/map_changes.lua");
const MAP_SWEEP: &str = include_str!("script/map_sweep.lua");
const MAP_CLEAR: &str = include_str!("script/map_clear.lua");
/// Bytes of the script's name and of the frame of a call.
const CALL_BYTES: usize = 80;
