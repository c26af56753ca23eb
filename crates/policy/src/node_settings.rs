//! The settings of a node: what a reload replaces while clients are connected.
//! In: valid options → out: compiled rules and verifiers in one immutable value, shared by shards and the API.
//! May use: `channel`, `options`, fanwire-auth. Never: sessions, a broadcast on its way, files.
//! Changed here: what survives a reload (ids of namespaces, fetched keys). Which keys may change is decided in `config`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fanwire_auth::{OptionsError, TrackVerifier, Verifier};
use hashbrown::HashSet;
use parking_lot::{RwLock, RwLockUpgradableReadGuard};

use crate::channel::{ChannelRules, NamespaceId, ids};
use crate::options::{Namespace, Options};

/// Options with what is compiled from them. A command reads one value from its begin to its end.
#[derive(Debug)]
pub struct NodeSettings {
    pub options: Options,
    pub channels: ChannelRules,
    connection_verifier: Verifier,
    /// `None`: the same as for connections.
    subscription_verifier: Option<Verifier>,
    /// The verifier of signatures of tracked keys.
    pub track_verifier: TrackVerifier,
    /// Names of namespaces by id, those that a reload removed included: their channels may still have subscribers.
    names: Vec<String>,
    version: u64,
}

impl NodeSettings {
    /// # Errors
    /// The first invalid option.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        Self::compile(options, Vec::new())
    }

    /// The settings after these. Namespaces keep their ids, and published keys that were fetched are kept.
    ///
    /// # Errors
    /// The first invalid option; more new namespaces than there are ids left.
    pub fn reloaded(&self, options: Options) -> Result<Self, OptionsError> {
        let mut next = Self::compile(options, self.names.clone())?;
        next.connection_verifier =
            next.connection_verifier.keeping_keys_of(&self.connection_verifier);
        let verifiers = (next.subscription_verifier.take(), &self.subscription_verifier);
        next.subscription_verifier = match verifiers {
            (Some(next), Some(current)) => Some(next.keeping_keys_of(current)),
            (next, _) => next,
        };
        next.version = self.version + 1;
        Ok(next)
    }

    fn compile(options: Options, mut names: Vec<String>) -> Result<Self, OptionsError> {
        options.validate()?;
        let mut known: HashSet<String> = names.iter().cloned().collect();
        let all = NamespaceId::all(&options.channel).map(|namespace| namespace.name.clone());
        names.extend(all.filter(|name| known.insert(name.clone())));
        let client = &options.client;
        let skip_signature = client.insecure_skip_token_signature_verify;
        let verifier = |token, key| Verifier::new(token, key, skip_signature);
        Ok(Self {
            channels: ChannelRules::with_ids(&options.channel, &names)?
                .with_personal(&client.subscribe_to_user_personal_channel),
            connection_verifier: verifier(&client.token, "client.token")?,
            subscription_verifier: match &client.subscription_token {
                Some(token) => Some(verifier(token, "client.subscription_token")?),
                None => None,
            },
            track_verifier: TrackVerifier::new(&options.shared_poll.secrets()),
            names,
            version: 0,
            options,
        })
    }

    pub fn connection_verifier(&self) -> &Verifier {
        &self.connection_verifier
    }

    pub fn subscription_verifier(&self) -> &Verifier {
        self.subscription_verifier.as_ref().unwrap_or(&self.connection_verifier)
    }

    /// The verifiers, each once.
    pub fn verifiers(&self) -> impl Iterator<Item = &Verifier> {
        [Some(&self.connection_verifier), self.subscription_verifier.as_ref()].into_iter().flatten()
    }

    /// Names of namespaces by id; "" for channels without one.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The configured namespaces with their ids.
    pub fn namespaces(&self) -> impl Iterator<Item = (NamespaceId, &Namespace)> {
        let ids = ids(&self.names);
        NamespaceId::all(&self.options.channel)
            .map(move |namespace| (ids[namespace.name.as_str()], namespace))
    }
}

/// The settings of now. Readers never wait for a reload to compile.
#[derive(Debug)]
pub struct CurrentSettings {
    /// That of `settings`, so that shards find out without a lock that there are new ones.
    version: AtomicU64,
    settings: RwLock<Arc<NodeSettings>>,
}

impl CurrentSettings {
    pub fn new(settings: NodeSettings) -> Self {
        Self {
            version: AtomicU64::new(settings.version),
            settings: RwLock::new(Arc::new(settings)),
        }
    }

    pub fn read(&self) -> Arc<NodeSettings> {
        Arc::clone(&self.settings.read())
    }

    /// Replaces `held` if there are newer settings.
    pub fn refresh(&self, held: &mut Arc<NodeSettings>) {
        if self.version.load(Ordering::Acquire) != held.version {
            *held = self.read();
        }
    }

    /// Replaces the settings. `prepare` is called with the new ones before anyone reads them.
    ///
    /// # Errors
    /// Those of [`NodeSettings::reloaded`] and of `prepare`; then nothing has changed.
    pub fn reload(
        &self,
        options: Options,
        prepare: impl FnOnce(&NodeSettings) -> Result<(), OptionsError>,
    ) -> Result<(), OptionsError> {
        let current = self.settings.upgradable_read();
        let next = current.reloaded(options)?;
        prepare(&next)?;
        let version = next.version;
        *RwLockUpgradableReadGuard::upgrade(current) = Arc::new(next);
        self.version.store(version, Ordering::Release);
        Ok(())
    }
}
