//! Checks commands against the rights of their sender's key.
//! In: a command and the holder of a key → out: the command as far as the key permits it.
//! Uses names of channels as the node reads them. Never: HTTP, gRPC, secrets.
//! Changed here: which channels a command names. A new method with a channel gets a row in `channels`.

use std::slice::from_ref;
use std::time::Instant;

use fanwire_node::Node;

use crate::keys::KeyHolder;
use crate::{Api, ApiError, BatchRequest, Command, Outcome};

impl Api {
    /// Runs a command as far as the key of its sender permits it.
    ///
    /// # Errors
    /// 103, 111, and the error of the method.
    pub(crate) async fn run_for(
        &self,
        holder: &KeyHolder,
        command: Command,
    ) -> Result<Outcome, ApiError> {
        self.run(holder.admit(&self.node, command, Instant::now())?).await
    }
}

impl KeyHolder {
    /// Counts a command and checks it. In a batch, commands that are not permitted become errors.
    ///
    /// # Errors
    /// 103 if the key does not permit the method, or a channel of the command; 111 above the rate of the key.
    pub(crate) fn admit(
        &self,
        node: &Node,
        command: Command,
        now: Instant,
    ) -> Result<Command, ApiError> {
        if let Command::Batch(BatchRequest { commands, parallel, form }) = command {
            let admit = |one: Result<Command, ApiError>| self.admit(node, one?, now);
            let commands = commands.map(|commands| commands.into_iter().map(admit).collect());
            return Ok(Command::Batch(BatchRequest { commands, parallel, form }));
        }
        let namespace = |channel: &'_ String| match channel.as_str() {
            "" => None,
            channel => Some(node.namespace_of(channel).to_owned()),
        };
        let namespaces: Vec<_> = if self.has_namespaces() {
            command.channels().iter().map(namespace).collect()
        } else {
            Vec::new()
        };
        self.check(command.method(), namespaces.iter().map(Option::as_deref), now)?;
        Ok(command)
    }
}

impl Command {
    /// Channels that it names; an empty one stands for all channels.
    pub(crate) fn channels(&self) -> &[String] {
        match self {
            Self::Publish(request) => from_ref(&request.channel),
            Self::Append(request) => from_ref(&request.channel),
            Self::Broadcast(request) => &request.channels,
            Self::Subscribe(request) => from_ref(&request.channel),
            Self::Unsubscribe(request) => from_ref(&request.channel),
            Self::Presence(request) => from_ref(&request.channel),
            Self::PresenceStats(request) => from_ref(&request.channel),
            Self::History(request) => from_ref(&request.channel),
            Self::HistoryRemove(request) => from_ref(&request.channel),
            Self::MapPublish(request) => from_ref(&request.channel),
            Self::MapRemove(request) => from_ref(&request.channel),
            Self::MapReadState(request) => from_ref(&request.channel),
            Self::MapReadStream(request) => from_ref(&request.channel),
            Self::MapStats(request) => from_ref(&request.channel),
            Self::MapClear(request) => from_ref(&request.channel),
            Self::SharedPollPublish(request) => from_ref(&request.channel),
            Self::SetView(request) => from_ref(&request.channel),
            Self::DebugFor(request) => &request.channels,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests;
