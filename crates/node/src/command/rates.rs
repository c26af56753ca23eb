//! Rate limits of a session: its commands, publishes and subscribes in a namespace, and refusals.
//! In: a command before its execution → out: continue, error 111, or the disconnect of a client that ignores refusals.
//! Uses: options, `policy::limits`. Never: the effects of a command.
//! Changed here: which command counts against which rate. Buckets fill in `limits/bucket.rs`.

use fanwire_policy::options::Namespace;
use fanwire_policy::{InNamespace, NamespaceAction, Tenant};
use fanwire_protocol::{Disconnect, ErrorCode, Request};

use super::context::CommandContext;
use crate::refusal::CommandError;

impl CommandContext<'_> {
    /// The rate of all commands of the connection. Commands that end something, and those without a reply, always
    /// pass: after a refused unsubscribe client and server would disagree.
    pub(super) fn limit(&mut self, request: &Request) -> Result<(), CommandError> {
        let passes = matches!(
            request,
            Request::Connect(_) | Request::Unsubscribe(_) | Request::Send(_) | Request::Unknown
        );
        let rate = self.settings.options.client.command_rate;
        let index = self.key.index;
        let now = self.node.clock().nanos(self.now);
        if passes || self.session_table.limits.take_command(index, rate, now) {
            return Ok(());
        }
        self.session_table.counters.limited_commands.add(1);
        Err(ErrorCode::TOO_MANY_REQUESTS.into())
    }

    /// The rates of publishes and subscribes of the connection in a namespace, and of publishes of its tenants; refused ones count against
    /// the rates of the connection as well, because they cost as much.
    pub(super) fn limit_in(
        &mut self,
        action: InNamespace,
        channel: &str,
        namespace: &Namespace,
    ) -> Result<(), CommandError> {
        let rate = match action {
            InNamespace::Publish => namespace.publish_rate,
            InNamespace::Subscribe => namespace.subscribe_rate,
        };
        let limits_tenants = action == InNamespace::Publish && namespace.limits.are_set();
        if (rate.limit == 0 && !limits_tenants) || self.decision.is_some() {
            return Ok(()); // a command that begins again was counted
        }
        let id = self.settings.channels.namespace_id(channel);
        let counted = NamespaceAction { namespace: id, action };
        let index = self.key.index;
        let now = self.node.clock().nanos(self.now);
        let is_allowed = self.session_table.limits.take_in(index, counted, rate, now);
        let tenant = Tenant { namespace: id, user: &self.session().user };
        let usage = self.node.channels().usage();
        if is_allowed && (!limits_tenants || usage.may_publish(tenant, &namespace.limits, now)) {
            return Ok(());
        }
        let counters = &self.session_table.counters;
        match action {
            InNamespace::Publish => counters.limited_publishes.add(1),
            InNamespace::Subscribe => counters.limited_subscribes.add(1),
        }
        Err(ErrorCode::TOO_MANY_REQUESTS.into())
    }

    /// Counts a refusal. A client that ignores refusals is disconnected, with a code after which SDKs do not
    /// reconnect.
    pub(super) fn refused(&mut self) -> Result<(), Disconnect> {
        let rate = self.settings.options.client.refusal_rate;
        let index = self.key.index;
        let now = self.node.clock().nanos(self.now);
        let may_stay = self.session_table.limits.take_refusal(index, rate, now);
        if may_stay { Ok(()) } else { Err(Disconnect::TOO_MANY_ERRORS) }
    }
}
