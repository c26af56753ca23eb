//! Commands that a hook decides: the question, and its answer when the command begins again.
//! In: a request whose checks passed → out: the pending decision, or the decision that came.
//! Uses: the node's hooks. Never: what a grant means; each command knows that.
//! Changed here: when a hook is asked again. `hooks.rs` has the values, `refusal.rs` the consequence of a rejection.

use fanwire_broker::Answer;
use fanwire_policy::hooks::{CommandDecision, Hook, Rejection};
use fanwire_policy::options::ProxyRoute;

use super::CommandContext;
use crate::refusal::CommandError;

/// State of a hook's decision.
pub(super) enum HookDecision<G> {
    /// The hook was asked: return [`CommandStep::Ask`](super::CommandStep::Ask), and the command begins again with the answer.
    Pending(Answer<CommandDecision, Rejection>),
    /// The hook decided; `None` when it did not, or when there is no hook.
    Made(Option<G>),
}

/// A hook, and the way to the proxy that the options name for the command.
pub(super) struct RoutedHook<'a, E, G> {
    pub(super) hook: &'a Hook<E, G>,
    pub(super) route: ProxyRoute,
}

impl CommandContext<'_> {
    /// Returns the decision about this command if there is one, else asks `hook` with `event`.
    ///
    /// # Errors
    /// The rejection of the hook.
    pub(super) fn ask<E, G: Clone + Send + 'static>(
        &mut self,
        hook: Option<RoutedHook<'_, E, G>>,
        event: impl FnOnce(&Self) -> E,
        decision: fn(Option<G>) -> CommandDecision,
        granted: fn(CommandDecision) -> Option<G>,
    ) -> Result<HookDecision<G>, CommandError> {
        let Some(hook) = hook else { return Ok(HookDecision::Made(None)) };
        match self.decision.take() {
            Some(Ok(decided)) => Ok(HookDecision::Made(granted(decided))),
            Some(Err(rejection)) => Err(rejection.into()),
            None => {
                let answer = hook.hook.call(event(self), hook.route);
                Ok(HookDecision::Pending(answer.map(move |result| result.map(decision))))
            }
        }
    }
}
