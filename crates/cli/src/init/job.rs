//! The jobs of `fanwire init`: a namespace, a client and a first message for each.
//! In: a job → out: text in YAML, JavaScript and JSON.
//! Uses nothing. Never: files, secrets of its own.
//! Changed here: the keys of a job. docs/configuration.md explains them.

use crate::arguments::Job;

impl Job {
    /// The name of the namespace.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Scores => "scores",
            Self::Game => "game",
            Self::Dashboard => "dashboard",
            Self::Answers => "answers",
            Self::Notifications => "notifications",
        }
    }

    /// The keys of the namespace besides its name.
    pub(super) fn namespace(self) -> &'static str {
        match self {
            Self::Chat => CHAT,
            Self::Scores => SCORES,
            Self::Game => GAME,
            Self::Dashboard => DASHBOARD,
            Self::Answers => ANSWERS,
            Self::Notifications => NOTIFICATIONS,
        }
    }

    /// The channel of the client.
    fn channel(self) -> &'static str {
        match self {
            Self::Chat => "chat:lobby",
            Self::Scores => "scores:final",
            Self::Game => "game:arena",
            Self::Dashboard => "dashboard:cpu",
            Self::Answers => "answers:1",
            // Behind the # stands the only user who may subscribe, that of the token.
            Self::Notifications => "notifications:#alice",
        }
    }

    /// The body of a request that publishes there; without `'`, which would end it in a shell.
    pub(super) fn body(self) -> String {
        let data = match self {
            Self::Chat => r#"{"text":"hello"}"#,
            Self::Scores => r#"{"home":1,"away":0}"#,
            Self::Game => r#"{"tick":1,"players":[{"x":3,"y":4}]}"#,
            Self::Dashboard => r#"{"percent":42}"#,
            Self::Answers => r#"{"text":"Once upon a time"}"#,
            Self::Notifications => r#"{"title":"Your order is on its way"}"#,
        };
        format!(r#"{{"channel":"{}","data":{data}}}"#, self.channel())
    }

    /// A module that connects with the stock SDK, subscribes and prints what it receives.
    pub(super) fn client(self, websocket: &str, token: &str) -> String {
        let name = self.name();
        let channel = self.channel();
        let on = match self {
            Self::Chat => CHAT_CLIENT.to_owned(),
            _ => format!("{name}.on('publication', ({{ data }}) => console.log(data));\n"),
        };
        format!(
            "import {{ Centrifuge }} from 'centrifuge';

const client = new Centrifuge('{websocket}', {{
  token: '{token}',
}});
const {name} = client.newSubscription('{channel}');
{on}{name}.subscribe();
client.connect();
"
        )
    }
}

const CHAT: &str = "\
allow_subscribe_for_client: true
allow_publish_for_subscriber: true
publication_data_format: json # what is no JSON would end subscribers with JSON
history_size: 100 # for scrolling back, and for clients that reconnect
history_ttl: 24h
force_recovery: true
allow_history_for_subscriber: true
presence: true
allow_presence_for_subscriber: true
join_leave: true
force_push_join_leave: true
";

const SCORES: &str = "\
allow_subscribe_for_client: true
history_size: 1 # a client that comes late or reconnects gets the newest score
history_ttl: 24h
force_recovery: true
force_recovery_mode: cache
auto_cache_recover: true
";

const GAME: &str = "\
allow_subscribe_for_client: true
delivery: latest # a slow client skips snapshots, and is not disconnected for it
presence: true
allow_presence_for_subscriber: true
";

const DASHBOARD: &str = "\
allow_subscribe_for_client: true
delivery: latest # a slow client skips values, and is not disconnected for it
history_size: 1 # a client that comes late or reconnects gets the newest value
history_ttl: 24h
force_recovery: true
force_recovery_mode: cache
auto_cache_recover: true
";

const ANSWERS: &str = "\
allow_subscribe_for_client: true
history_size: 100 # answers, each with its newest text: your backend appends pieces (docs/recipes/ai-answers.md)
history_ttl: 24h
force_recovery: true # a client that was away gets the newest text of each
allow_history_for_subscriber: true
";

const NOTIFICATIONS: &str = "\
allow_user_limited_channels: true # notifications:#42 is for user 42 alone
history_size: 100 # for a user who was away, and for scrolling back
history_ttl: 168h
force_recovery: true
allow_history_for_subscriber: true
";

const CHAT_CLIENT: &str = "\
chat.on('publication', ({ data, info }) => console.log(info?.user ?? 'backend', data));
chat.on('join', ({ info }) => console.log(info.user, 'joined'));
chat.on('leave', ({ info }) => console.log(info.user, 'left'));
chat.on('subscribed', () => chat.publish({ text: 'hi' }));
";
