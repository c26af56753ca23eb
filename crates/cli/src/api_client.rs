//! Requests to the server API of a running server, for commands of the program.
//! In: `--url`, `--key` and the rest, or a configuration → out: responses, or an error that says what to change.
//! Uses the HTTP client of `tls`. Never: a method of the API.
//! Changed here: how a command finds the API; which certificate it accepts is in `local`.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use fanwire_tls::{HttpsClient, RequestError, RequestLimits, Tls, TlsOptions};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Incoming};
use serde_json::{Value, json};

use crate::arguments::ApiServer;
use crate::local::LocalServer;

/// Address of the server API, and its key.
#[derive(Debug)]
pub(crate) struct ApiClient {
    /// Without a slash at its end.
    url: String,
    /// Host and port.
    pub(crate) authority: String,
    key: String,
    client: HttpsClient,
}

impl ApiClient {
    /// The address and the key from `--url` and `--key`, or else from the configuration.
    pub(crate) fn new(arguments: &ApiServer) -> Result<Self> {
        let local = LocalServer::load(arguments.config.as_deref())?;
        let url = arguments.url.clone().unwrap_or_else(|| local.api_url());
        let uri: Uri =
            url.parse().with_context(|| format!("--url is {url:?}, expected an address"))?;
        let (tls, scheme, default_port) = match uri.scheme_str() {
            Some("http") => (Tls::new(&TlsOptions::default())?, "http", 80),
            Some("https") => {
                (local.tls(&arguments.trust, arguments.url.as_ref(), true)?, "https", 443)
            }
            _ => bail!("--url is {url:?}, expected http:// or https://HOST:PORT/PREFIX"),
        };
        let authority =
            uri.authority().with_context(|| format!("--url is {url:?}, without a host"))?;
        let port = authority.port_u16().unwrap_or(default_port);
        let authority = format!("{}:{port}", authority.host());
        let prefix = uri.path().trim_end_matches('/');
        let limits = RequestLimits { timeout: CONNECT_TIMEOUT, body_bytes_max: 0 };
        Ok(Self {
            url: format!("{scheme}://{authority}{prefix}"),
            authority,
            key: arguments.key.clone().unwrap_or_else(|| local.api_key()),
            client: HttpsClient::new(tls, limits),
        })
    }

    /// The address of a path below the prefix.
    pub(crate) fn url_of(&self, path: &str) -> String {
        format!("{}/{path}", self.url)
    }

    /// Sends a request and returns the response, whose status is 200.
    pub(crate) async fn post<B>(&self, path: &str, body: B) -> Result<Response<Incoming>>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let authority = &self.authority;
        let request = Request::post(self.url_of(path)).header("X-API-Key", &self.key).body(body)?;
        let response = self.client.request(request).await.map_err(|error| match error {
            RequestError::Io(error) => anyhow!("no server answers at {authority}: {error}"),
            RequestError::Http(_) => anyhow!("the server ended the connection: {error}"),
            error => anyhow!("no connection to the server at {authority}: {error}"),
        })?;
        match response.status() {
            StatusCode::OK => Ok(response),
            StatusCode::UNAUTHORIZED => bail!(
                "the server at {authority} refuses the API key: give --key, or --config with a file that sets http_api.key"
            ),
            StatusCode::NOT_FOUND => {
                let path = self.url_of(path).parse::<Uri>()?.path().to_owned();
                bail!(
                    "the server at {authority} has no {path}: check --url, or http_api.handler_prefix"
                )
            }
            status => {
                let text = response.into_body().collect().await?.to_bytes();
                let text = String::from_utf8_lossy(&text);
                bail!("the server at {authority} answers {status}: {text}")
            }
        }
    }

    /// Calls a method and returns its result.
    pub(crate) async fn call(&self, method: &str, request: &Value) -> Result<Value> {
        let response = self.post(method, Full::new(Bytes::from(request.to_string()))).await?;
        let body = response.into_body().collect().await?.to_bytes();
        let mut reply: Value =
            serde_json::from_slice(&body).context("the answer of the server is not JSON")?;
        match reply["error"].take() {
            Value::Null => Ok(reply["result"].take()),
            error => {
                let text = |part: &str| error[part].as_str().unwrap_or_default().to_owned();
                bail!("{method}: {} {} {}", error["code"], text("message"), text("cause"))
            }
        }
    }

    /// Calls a method without parameters.
    pub(crate) async fn ask(&self, method: &str) -> Result<Value> {
        self.call(method, &json!({})).await
    }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, CliCommand};
    use clap::Parser as _;

    #[test]
    fn a_url_has_a_port_and_a_prefix() {
        let of = |url: &str| {
            let arguments = ["fanwire", "top", "--url", url, "--key", "k"];
            match Arguments::try_parse_from(arguments).expect("good options").command {
                Some(CliCommand::Top(top)) => ApiClient::new(&top.server),
                other => panic!("{other:?}"),
            }
        };
        for (url, authority, stream) in [
            ("http://host:9000/api", "host:9000", "http://host:9000/api/stream"),
            ("http://host", "host:80", "http://host:80/stream"),
            ("https://host/api/", "host:443", "https://host:443/api/stream"),
        ] {
            let got = of(url).expect("good");
            assert_eq!((&*got.authority, &*got.url_of("stream")), (authority, stream));
            assert_eq!(got.key, "k");
        }
        for wrong in ["wss://host/api", "host:9000", "/api", "http://", ""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
