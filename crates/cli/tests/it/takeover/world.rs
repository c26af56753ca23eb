//! A server that is upgraded, its clients, and a publisher that knows what each of them must have.
//! In: numbers of clients, times → out: publications that are numbered by channel, and what arrived.
//! Uses tokio in the test's process. Never: an expectation about an upgrade.
//! Changed here: how a client connects and what it checks.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanwire_client::{
    Client, ClientConfig, ClientEvent, CompressionConfig, Encoding, SubscriptionConfig,
    SubscriptionEvent,
};
use fanwire_testing::{Folder, pause, wait_for};
use flate2::{Decompress, FlushDecompress};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use super::publisher::{Channel, Content, DelaySummary, Delays, Publishers};
use crate::run;
use crate::started::process::Process;

/// The value of a variable of this test, or a small number.
pub(super) fn number(name: &str, small: usize) -> usize {
    let value = std::env::var(format!("FANWIRE_TAKEOVER_{name}"));
    value.map_or(small, |text| text.parse().expect("a number"))
}

/// The server in whichever process it is.
pub(super) struct Server {
    /// Its first process.
    _first: Process,
    _watchdog: Watchdog,
    folder: Folder,
    address: SocketAddr,
}

/// The server with all clients.
pub(super) struct World {
    server: Server,
    runtime: Runtime,
    publishers: Publishers,
    channels: Arc<Vec<Channel>>,
    received: Vec<Arc<Received>>,
    delays: Arc<Delays>,
    /// Mistakes that clients saw, such as a publication that came twice.
    faults: Arc<Mutex<Vec<String>>>,
    clients: Vec<Client>,
}

/// The numbers of the first and the last publication that a client received.
struct Received {
    channel: usize,
    first: AtomicU64,
    last: AtomicU64,
    delays: Arc<Delays>,
}

impl Received {
    /// Each publication once, and in order.
    fn note(&self, content: Content) -> Result<(), String> {
        self.delays.note(content.planned_us);
        let number = content.number;
        let last = self.last.swap(number, SeqCst);
        if last == 0 {
            self.first.store(number, SeqCst);
        } else if number <= last {
            return Err(format!(
                "publication {number} of channel {} behind one of {last}",
                self.channel
            ));
        } else if number != last + 1 {
            return Err(format!("publication {number} of channel {} after {last}", self.channel));
        }
        Ok(())
    }
}

impl Server {
    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The path of the program.
    pub(super) fn program(&self) -> String {
        format!("{}/fanwire", self.folder.path())
    }

    pub(super) fn change_config(&self, from: &str, to: &str) {
        let path = format!("{}/fanwire.yaml", self.folder.path());
        let text = std::fs::read_to_string(&path).expect("it was written");
        assert!(text.contains(from), "{text}");
        std::fs::write(path, text.replace(from, to)).expect("a writable folder");
    }

    /// The process that serves, as the pid file says.
    pub(super) fn pid(&self) -> u32 {
        let text = std::fs::read_to_string(format!("{}/pid", self.folder.path()));
        text.expect("a pid file").trim().parse().expect("a process")
    }

    /// Runs `fanwire upgrade`. Returns what it prints, or why nothing happened.
    pub(super) fn upgrade(&self, arguments: &[&str]) -> Result<String, String> {
        let config = format!("{}/fanwire.yaml", self.folder.path());
        let (code, out, error) = run(&[&["upgrade", "--config", &config], arguments].concat());
        if code == 0 { Ok(out) } else { Err(error) }
    }
}

/// Kills the processes of a server when the value is dropped or the process of the test ends.
struct Watchdog(Child);

impl Watchdog {
    /// The first process leads a group, in which all later ones are. The shell is in a group of its own, because some kill that of a test.
    fn of(first: &Process) -> Self {
        // `read` returns when the pipe is closed.
        let script = "read _; kill -s KILL -- -$0";
        let mut command = Command::new("sh");
        command.args(["-c", script, &first.pid().to_string()]).process_group(0);
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().expect("there is a shell"))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

impl World {
    pub(super) fn start(name: &str, flags: &[&str]) -> Self {
        Self::start_with(name, flags, &[])
    }

    /// Starts a server that has these variables.
    pub(super) fn start_with(name: &str, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let folder = Folder::new(name);
        let config = folder.write("fanwire.yaml", &config(&folder));
        let program = format!("{}/fanwire", folder.path());
        symlink(env!("CARGO_BIN_EXE_fanwire"), &program).expect("a writable folder");
        let mut command = Command::new(program);
        command.env_clear().envs(variables.iter().copied());
        command.args(["serve", "--config", &config]).args(flags).process_group(0);
        let first = Process::serve(&mut command);
        let watchdog = Watchdog::of(&first);
        let address = first.address.parse().expect("an address");
        let channels: Vec<_> = (0..number("CHANNELS", 24)).map(|_| Channel::default()).collect();
        let channels = Arc::new(channels);
        Self {
            server: Server { _first: first, _watchdog: watchdog, folder, address },
            runtime: Runtime::new().expect("threads"),
            publishers: Publishers::new(address, Arc::clone(&channels)),
            channels,
            received: Vec::new(),
            delays: Arc::default(),
            faults: Arc::default(),
            clients: Vec::new(),
        }
    }

    /// Publishes at another node with the same Redis from now on.
    pub(super) fn publish_at(&mut self, node: &Self) {
        self.publishers = Publishers::new(node.server.address, Arc::clone(&self.channels));
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    pub(super) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// The process that serves, once it is another one than these.
    pub(super) fn pid_other_than(&self, known: &[u32]) -> Result<u32, u32> {
        let pid = self.pid();
        if known.contains(&pid) { Err(pid) } else { Ok(pid) }
    }

    /// The response to a request with the key of the API.
    pub(super) fn request(&self, line: &str, headers: &str, body: &str) -> String {
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: a\r\nX-API-Key: key\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        exchange(self.server.address, &request).expect("a response")
    }

    /// Connects clients of every kind, and waits until all are subscribed.
    pub(super) fn connect(&mut self, websockets: usize, streams: usize) {
        let subscribed = Arc::new(AtomicU64::new(0));
        for index in 0..websockets {
            let received = self.add_received(index);
            let faults = Arc::clone(&self.faults);
            let counted = Arc::clone(&subscribed);
            let _runtime = self.runtime.enter();
            let url = format!("ws://{}/connection/websocket", self.server.address);
            let client =
                Client::new(&url, client_config(index, self.channels.len())).expect("an address");
            let channel = format!("news{}", received.channel);
            let subscription = client
                .new_subscription(&channel, SubscriptionConfig::default())
                .expect("the only one");
            let mut events = subscription.events();
            let mut of_client = client.events();
            let noted = Arc::clone(&faults);
            tokio::spawn(async move {
                while let Some(event) = events.next().await {
                    let noted_event = match event {
                        SubscriptionEvent::Publication { publication, .. } => {
                            received.note(content_of(&publication.data))
                        }
                        SubscriptionEvent::Subscribed(_) => {
                            counted.fetch_add(1, SeqCst);
                            Ok(())
                        }
                        SubscriptionEvent::Subscribing { code: 0, .. } => Ok(()),
                        other => Err(format!("{other:?}")),
                    };
                    noted.lock().expect("no panic").extend(noted_event.err());
                }
            });
            tokio::spawn(async move {
                while let Some(event) = of_client.next().await {
                    match event {
                        ClientEvent::Connecting { code: 0, .. } | ClientEvent::Connected { .. } => {
                        }
                        other => faults.lock().expect("no panic").push(format!("{other:?}")),
                    }
                }
            });
            subscription.subscribe();
            client.connect();
            self.clients.push(client);
            // Not more handshakes at a time than a server takes without overload.
            if index % 500 == 499 {
                wait_for(|| subscribed.load(SeqCst) == index as u64 + 1, PATIENCE);
            }
        }
        wait_for(|| subscribed.load(SeqCst) == websockets as u64, PATIENCE);
        for index in 0..streams {
            let received = self.add_received(index);
            let faults = Arc::clone(&self.faults);
            let address = self.server.address;
            let stream = self.runtime.block_on(EventStream::open(
                address,
                &received,
                index.is_multiple_of(2),
            ));
            self.runtime.spawn(async move {
                let error = stream.read(&received).await;
                faults.lock().expect("no panic").push(format!("event stream: {error}"));
            });
        }
    }

    fn add_received(&mut self, index: usize) -> Arc<Received> {
        let received = Arc::new(Received {
            channel: index % self.channels.len(),
            first: AtomicU64::default(),
            last: AtomicU64::default(),
            delays: Arc::clone(&self.delays),
        });
        self.received.push(Arc::clone(&received));
        received
    }

    pub(super) fn publish_for(&self, time: Duration) {
        self.while_publishing(|_| pause(time));
    }

    /// Publishes at a rate until `work` is done, and a little longer.
    pub(super) fn while_publishing<T>(&self, work: impl FnOnce(&Server) -> T) -> T {
        let stop = Arc::new(AtomicBool::new(false));
        let publishers = self.publishers.start(&stop);
        let done = work(&self.server);
        stop.store(true, SeqCst);
        for publisher in publishers {
            publisher.join().expect("no panic");
        }
        done
    }

    /// The delays of all deliveries so far, which it forgets. Waits until each client has everything.
    pub(super) fn take_delays(&self) -> DelaySummary {
        self.check_arrivals();
        self.delays.take()
    }

    /// Each client has got something, and then everything.
    pub(super) fn check_everything_arrived(&self) {
        self.check_arrivals();
        let deaf = self.received.iter().filter(|received| received.first.load(SeqCst) == 0).count();
        assert_eq!(deaf, 0, "each client got something");
    }

    /// Waits until each client has the last publication of its channel. None saw anything else.
    fn check_arrivals(&self) {
        let missing = || {
            let late = self.received.iter().find(|received| {
                received.last.load(SeqCst) != self.channels[received.channel].0.load(SeqCst)
            });
            late.map_or(Ok(()), |late| Err(format!("channel {} is late", late.channel)))
        };
        let faults = || {
            let faults = self.faults.lock().expect("no panic");
            (faults.len(), faults.iter().take(5).cloned().collect::<Vec<_>>())
        };
        wait_for(|| if faults().0 > 0 { Ok(()) } else { missing() }, PATIENCE);
        assert_eq!(faults(), (0, Vec::new()));
    }

    /// A process has ended, perhaps with connections: another one serves, and no client got a publication twice or in another order.
    pub(super) fn check_one_serves(&self, ended: u32) {
        let serves = || match self.server.upgrade(&["--check"]) {
            Ok(_) if self.pid() != ended => Ok(()),
            other => Err(format!("{other:?}")),
        };
        wait_for(serves, PATIENCE);
        let are_late = || {
            let received = &self.received[..self.clients.len()];
            received
                .iter()
                .any(|it| it.last.load(SeqCst) != self.channels[it.channel].0.load(SeqCst))
        };
        let attempt = || {
            self.publish_for(Duration::from_millis(200));
            !are_late()
        };
        wait_for(attempt, PATIENCE);
        let faults = std::mem::take(&mut *self.faults.lock().expect("no panic"));
        let wrong: Vec<_> = faults.iter().filter(|fault| fault.contains("behind one")).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

/// A third each without compression, with messages that stand alone, and in context; half in JSON, half in Protobuf. A channel has
/// subscribers of each kind.
fn client_config(index: usize, channels: usize) -> ClientConfig {
    let kind = index + index / channels;
    let encoding = if kind.is_multiple_of(2) { Encoding::Json } else { Encoding::Protobuf };
    let mut compression = CompressionConfig::default();
    compression.server.context_takeover = kind % 3 == 2;
    let compression = (!kind.is_multiple_of(3)).then_some(compression);
    ClientConfig::default().encoding(encoding).compression(compression)
}

fn exchange(address: SocketAddr, request: &str) -> std::io::Result<String> {
    let mut socket = std::net::TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(request.as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A unidirectional event stream, compressed or not.
struct EventStream {
    socket: TcpStream,
    inflate: Option<Decompress>,
    bytes: Vec<u8>,
    text: Vec<u8>,
}

impl EventStream {
    /// Opens one, and waits for its first event.
    async fn open(address: SocketAddr, received: &Received, is_compressed: bool) -> Self {
        let mut socket = TcpStream::connect(address).await.expect("the server listens");
        let connect = format!("%7B%22subs%22:%7B%22news{}%22:%7B%7D%7D%7D", received.channel);
        let coding = if is_compressed { "Accept-Encoding: deflate\r\n" } else { "" };
        let request = format!(
            "GET /connection/uni_sse?cf_connect={connect} HTTP/1.1\r\nHost: {address}\r\n{coding}\r\n"
        );
        socket.write_all(request.as_bytes()).await.expect("the server reads");
        let inflate = is_compressed.then(|| Decompress::new(true));
        let mut stream = Self { socket, inflate, bytes: Vec::new(), text: Vec::new() };
        let head_end = loop {
            assert!(
                stream.receive().await,
                "the response ended: {:?}",
                String::from_utf8_lossy(&stream.bytes)
            );
            let end = stream.bytes.windows(4).position(|window| window == b"\r\n\r\n");
            if let Some(end) = end {
                break end + 4;
            }
        };
        let head: Vec<u8> = stream.bytes.drain(..head_end).collect();
        let head = String::from_utf8(head).expect("text").to_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert_eq!(head.contains("content-encoding: deflate"), is_compressed, "{head}");
        while !stream.decode().contains("connect") {
            assert!(stream.receive().await, "the stream ended early");
        }
        stream
    }

    /// Whether there were bytes.
    async fn receive(&mut self) -> bool {
        self.socket.read_buf(&mut self.bytes).await.is_ok_and(|count| count > 0)
    }

    /// The next event that is complete, or "".
    fn decode(&mut self) -> String {
        match &mut self.inflate {
            None => self.text.append(&mut self.bytes),
            Some(inflate) => {
                let before = inflate.total_in();
                self.text.reserve(64 << 10);
                inflate
                    .decompress_vec(&self.bytes, &mut self.text, FlushDecompress::None)
                    .expect("valid blocks");
                self.bytes.drain(..(inflate.total_in() - before) as usize);
            }
        }
        let Some(end) = self.text.windows(2).position(|window| window == b"\n\n") else {
            return String::new();
        };
        let event: Vec<u8> = self.text.drain(..end + 2).collect();
        String::from_utf8(event).expect("text")
    }

    /// Reads events until one is wrong or the stream ends.
    async fn read(mut self, received: &Received) -> String {
        loop {
            let event = self.decode();
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(data) = data.filter(|data| data.contains("\"number\"")) {
                let push: Value = serde_json::from_str(data).expect("JSON");
                if let Err(fault) = received.note(Content::of(&push["pub"]["data"])) {
                    return fault;
                }
            } else if event.is_empty() && !self.receive().await {
                return format!("ended behind {}", received.last.load(SeqCst));
            }
        }
    }
}

fn content_of(data: &[u8]) -> Content {
    Content::of(&serde_json::from_slice(data).expect("JSON"))
}

fn config(folder: &Folder) -> String {
    format!(
        "pid_file: {path}/pid\nshards: 2\nlog: {{file: {path}/log}}\nhttp_server: {{address: 127.0.0.1, port: 0}}\n\
         http_api: {{key: key}}\nclient: {{insecure: true, allow_anonymous_connect_without_token: true}}\n\
         websocket: {{compression: true}}\n\
         uni_sse: {{enabled: true}}\nprometheus: {{enabled: true}}\n\
         channel: {{without_namespace: {{allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true}},\n\
         \x20 namespaces: [{{name: answers, history_size: 100, history_ttl: 1h, force_recovery: true}}]}}\n\
         durable_streams: {{enabled: true, namespace: answers}}\n",
        path = folder.path()
    )
}

pub(super) const PATIENCE: Duration = Duration::from_secs(60);
