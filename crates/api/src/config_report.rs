//! The port by which a program describes its configuration, for `node_config`.
//! In: a function of the program. Out: values without secrets, and how their sources differ.
//! Data only. Never: keys, files.
//! The method is `method/node_config.rs`; what is masked and compared is changed in `fanwire_config`.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

/// The configuration of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeConfigResult {
    /// Name of the node.
    pub node: String,
    /// The values in force.
    pub values: Vec<ConfigValue>,
    /// Keys whose new values a reload (SIGHUP) makes take effect.
    pub needs_reload: Vec<String>,
    /// Keys whose new values need a restart.
    pub needs_restart: Vec<String>,
    /// Why the sources cannot be used now; absent if they can.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// A key with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfigValue {
    /// Its full name, for one `channel.namespaces[chat].history_size`.
    pub key: String,
    /// As it is written; `***` in place of a secret.
    pub value: String,
    /// Where it comes from; empty for a default.
    pub source: String,
}

/// A function that reads the configuration of the process again, if the program has one. It may wait for files.
#[derive(Clone, Default)]
pub struct ConfigReader(pub Option<Arc<dyn Fn() -> NodeConfigResult + Send + Sync>>);

/// Options are equal whatever reads them.
impl PartialEq for ConfigReader {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ConfigReader {}

impl fmt::Debug for ConfigReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfigReader({})", self.0.is_some())
    }
}
