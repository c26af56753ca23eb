//! node_config: the configuration of the node that answers, without secrets, and what its sources say now.
//! In: `NodeConfigRequest`. Out: values with their sources, keys whose new values are not in force.
//! Uses the reader of the program, on a thread that may wait for files. Never: a key by its name, a secret.
//! The masks and the comparison are changed in `fanwire_config`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::DiagnosticMethods;
use crate::json::or_default;
use crate::{ApiError, Method, NodeConfigResult};

/// Which values are returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeConfigRequest {
    /// Keys at their defaults, too.
    #[serde(deserialize_with = "or_default")]
    pub all: bool,
}

impl DiagnosticMethods<'_> {
    /// Returns the configuration of this node.
    ///
    /// # Errors
    /// 108 in a program that makes its configuration itself; 100 when reading it panicked.
    pub(super) async fn node_config(
        self,
        request: NodeConfigRequest,
    ) -> Result<NodeConfigResult, ApiError> {
        self.0
            .measure_async(Method::NodeConfig, async |_| {
                let read = self
                    .0
                    .options
                    .config_reader
                    .0
                    .clone()
                    .ok_or(ApiError::NOT_AVAILABLE.because(EMBEDDED))?;
                let read = tokio::task::spawn_blocking(move || read()).await;
                let mut result = read.map_err(|_| ApiError::INTERNAL)?;
                if !request.all {
                    result.values.retain(|value| !value.source.is_empty());
                }
                let node = self.0.node.options().name.clone();
                Ok(NodeConfigResult { node, ..result })
            })
            .await
    }
}

const EMBEDDED: &str = "the program around the server makes its configuration";
