//! What a client asks for: the history and the presence of channels to which it is subscribed.
//! In: chance, answers → out: commands, what the client saw.
//! Pure. Never: whether an answer is right; `checkers/answers.rs` compares it with the truth.
//! Changed here: which questions programs ask.

use std::time::Duration;

use fanwire_protocol::{Command, HistoryRequest, PresenceRequest, StreamPosition};

use super::frames::HistoryPage;
use super::{Action, PendingKind, SimulatedClient, SubscriptionState, WantedSubscription};

impl SimulatedClient {
    /// Its program asks for a page of a stream, or for the members of a channel.
    pub(super) fn ask(&mut self, now: Duration) -> Vec<Action> {
        let is_on = |(_, it): &(&String, &WantedSubscription)| it.state == SubscriptionState::On;
        let on = self.subscriptions.iter().filter(is_on);
        let channels: Vec<_> = on.map(|(name, it)| (name.clone(), it.position.clone())).collect();
        if channels.is_empty() {
            return Vec::new();
        }
        let (channel, position) = self.random.pick(&channels).clone();
        let is_stream = position.is_some() && !channel.starts_with("map:");
        let command = if is_stream && self.random.percent(60) {
            let reverse = self.random.percent(30);
            let limit = 1 + self.random.index(8);
            let since = position.filter(|_| self.random.percent(70)).map(|at| {
                let least = u64::from(reverse);
                let offset = at.offset.saturating_sub(self.random.below(9)).max(least);
                StreamPosition { offset, epoch: at.epoch }
            });
            let page = HistoryPage { since: since.as_ref().map(|it| it.offset), limit, reverse };
            let id = self.remember(PendingKind::History(channel.clone(), page), now);
            let history = HistoryRequest { channel, limit: limit as i32, since, reverse };
            Command { id, history: Some(history), ..Command::default() }
        } else {
            let id = self.remember(PendingKind::Presence(channel.clone()), now);
            let presence = Some(PresenceRequest { channel });
            Command { id, presence, ..Command::default() }
        };
        vec![self.send(&[command])]
    }
}
