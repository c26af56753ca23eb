//! Options of the client and of subscriptions, each with a setter.
//! In: values of the application. Out: [`ClientConfig`], [`SubscriptionConfig`], [`CompressionConfig`] for core, codec and driver.
//! Uses types of ws, deflate, protocol and rustls; decides nothing.
//! Changed here: an option, its unit and its default.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fanwire_deflate::Strategy;
use fanwire_protocol::{Encoding, FilterNode, StreamPosition};
use fanwire_ws::client::TakeoverOffer;

use crate::GetTokenError;

/// Options of a client. The default is JSON without a token and without compression.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// JSON or Protobuf.
    pub encoding: Encoding,
    /// Connection token.
    pub token: String,
    /// Callback for the first token, and for the next one before the token expires.
    pub get_token: Option<GetToken>,
    /// Data for a backend, in JSON unless the encoding is Protobuf.
    pub data: Bytes,
    /// Name and version of the application, for statistics of the server.
    pub name: String,
    pub version: String,
    /// Headers of the handshake's HTTP request.
    pub headers: Vec<(String, String)>,
    /// `None`: without permessage-deflate.
    pub compression: Option<CompressionConfig>,
    /// Settings of TLS; `None`: the authorities of the system.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Name that the certificate must have; "": the host of the address.
    pub tls_server_name: String,
    /// Time for opening a connection, and for the reply to a command.
    pub timeout: Duration,
    /// The delay before the next attempt is random between the minimum and an upper end that doubles up to the maximum.
    pub reconnect_delay_min: Duration,
    pub reconnect_delay_max: Duration,
    /// Time for which a ping of the server may be late.
    pub ping_delay_max: Duration,
    /// Largest message of the server, in bytes, after inflating.
    pub message_size_max: usize,
    /// Events that wait for the application, for each stream of events. If they are more, the client stops reading the
    /// connection; if that lasts, the server ends it, and recovery brings what was missed.
    pub event_queue: usize,
}

impl Default for ClientConfig {
    /// 5 s for a command, 0.2 to 20 s between attempts, 10 s for a late ping, 16 MiB for a message, 1,024 events.
    fn default() -> Self {
        Self {
            encoding: Encoding::Json,
            token: String::new(),
            get_token: None,
            data: Bytes::new(),
            name: "rust".to_owned(),
            version: String::new(),
            headers: Vec::new(),
            compression: None,
            tls: None,
            tls_server_name: String::new(),
            timeout: Duration::from_secs(5),
            reconnect_delay_min: Duration::from_millis(200),
            reconnect_delay_max: Duration::from_secs(20),
            ping_delay_max: Duration::from_secs(10),
            message_size_max: 16 << 20,
            event_queue: 1024,
        }
    }
}

/// Options of a subscription. The default asks for nothing that the namespace of the channel does not force.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubscriptionConfig {
    /// Subscription token.
    pub token: String,
    /// Callback for tokens; it gets the channel.
    pub get_token: Option<GetToken>,
    /// Data for a backend, in JSON unless the encoding is Protobuf.
    pub data: Bytes,
    /// Ask for recovery of missed publications after a lost connection.
    pub recoverable: bool,
    /// Ask the server to notice gaps.
    pub positioned: bool,
    /// Ask for joins and leaves.
    pub join_leave: bool,
    /// Accept publications as differences to the one before.
    pub delta: bool,
    /// The publications to receive, by their tags. It cannot be combined with `delta`.
    pub filter: Option<FilterNode>,
    /// Recover from this position with the first subscribe.
    pub since: Option<StreamPosition>,
    /// The delay before the next attempt is random between the minimum and an upper end that doubles up to the maximum.
    pub resubscribe_delay_min: Duration,
    pub resubscribe_delay_max: Duration,
}

impl Default for SubscriptionConfig {
    /// 0.2 to 20 s between attempts.
    fn default() -> Self {
        Self {
            token: String::new(),
            get_token: None,
            data: Bytes::new(),
            recoverable: false,
            positioned: false,
            join_leave: false,
            delta: false,
            filter: None,
            since: None,
            resubscribe_delay_min: Duration::from_millis(200),
            resubscribe_delay_max: Duration::from_secs(20),
        }
    }
}

/// Options of permessage-deflate (RFC 7692). The default offers everything: context takeover both ways in 32 KiB.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CompressionConfig {
    /// The messages of the server: context takeover, and the largest window.
    pub server: TakeoverOffer,
    /// Our messages.
    pub client: TakeoverOffer,
    /// Effort for our messages, 1 (fastest) to 9 (smallest).
    pub level: u8,
    /// Memory for our messages, 1 to 9, as in zlib.
    pub memory_level: u8,
    /// Strategy for our messages, as in zlib.
    pub strategy: Strategy,
}

impl Default for CompressionConfig {
    /// Level 6, memory level 8, the default strategy.
    fn default() -> Self {
        Self {
            server: TakeoverOffer::default(),
            client: TakeoverOffer::default(),
            level: 6,
            memory_level: 8,
            strategy: Strategy::Default,
        }
    }
}

/// Writes a setter for each field.
macro_rules! setters {
    ($($field:ident: $kind:ty,)+) => {
        $(
            #[doc = concat!("Sets `", stringify!($field), "`.")]
            #[must_use]
            pub fn $field(mut self, $field: impl Into<$kind>) -> Self {
                self.$field = $field.into();
                self
            }
        )+
    };
}

impl ClientConfig {
    setters! {
        encoding: Encoding,
        token: String,
        data: Bytes,
        name: String,
        version: String,
        headers: Vec<(String, String)>,
        compression: Option<CompressionConfig>,
        tls: Option<Arc<rustls::ClientConfig>>,
        tls_server_name: String,
        timeout: Duration,
        reconnect_delay_min: Duration,
        reconnect_delay_max: Duration,
        ping_delay_max: Duration,
        message_size_max: usize,
        event_queue: usize,
    }

    /// Sets the callback for tokens.
    #[must_use]
    pub fn get_token<F, R>(mut self, callback: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, GetTokenError>> + Send + 'static,
    {
        self.get_token = Some(GetToken::new(move |_| callback()));
        self
    }
}

impl SubscriptionConfig {
    setters! {
        token: String,
        data: Bytes,
        recoverable: bool,
        positioned: bool,
        join_leave: bool,
        delta: bool,
        filter: Option<FilterNode>,
        since: Option<StreamPosition>,
        resubscribe_delay_min: Duration,
        resubscribe_delay_max: Duration,
    }

    /// Sets the callback for tokens of the channel that it gets.
    #[must_use]
    pub fn get_token<F, R>(mut self, callback: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, GetTokenError>> + Send + 'static,
    {
        self.get_token = Some(GetToken::new(callback));
        self
    }
}

impl CompressionConfig {
    setters! {
        server: TakeoverOffer,
        client: TakeoverOffer,
        level: u8,
        memory_level: u8,
        strategy: Strategy,
    }
}

/// A callback for tokens.
#[derive(Clone)]
pub struct GetToken(Arc<dyn Fn(String) -> TokenFuture + Send + Sync>);

/// A token that a callback promised.
pub(crate) type TokenFuture = Pin<Box<dyn Future<Output = Result<String, GetTokenError>> + Send>>;

impl GetToken {
    fn new<F, R>(callback: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, GetTokenError>> + Send + 'static,
    {
        Self(Arc::new(move |channel| Box::pin(callback(channel))))
    }

    /// Asks for a token of `channel`; "" for a connection token.
    pub(crate) fn call(&self, channel: String) -> TokenFuture {
        (self.0)(channel)
    }
}

impl fmt::Debug for GetToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GetToken")
    }
}
