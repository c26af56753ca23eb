//! Pebble, the test authority of Let's Encrypt, and the name server that it asks.
//! In: the ports of a server → out: a directory URL, the authority's root, its log.
//! Uses the program that `FANWIRE_PEBBLE` names, or that of the PATH; certificates of `tests/keys` for its own https.
//! Changed here: how it is started. What is expected of it is in `with_authority`.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream as StdStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use fanwire_testing::{Folder, free_port, wait_for};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The options of an authority.
pub(crate) struct PebbleOptions {
    pub(crate) name: &'static str,
    /// Its own port; 0 = a free one.
    pub(crate) port: u16,
    /// Where it looks for tls-alpn-01.
    pub(crate) tls_port: u16,
    /// Where it looks for http-01.
    pub(crate) http_port: u16,
    /// Life of its certificates.
    pub(crate) life_seconds: u32,
}

/// A running authority; it ends with its value.
pub(crate) struct Pebble {
    child: Child,
    port: u16,
    management_port: u16,
    log: Arc<Mutex<String>>,
    names: JoinHandle<()>,
    _folder: Folder,
}

impl Pebble {
    /// `None`, with a line past what the test runner captures, if there is no such program here.
    pub(crate) async fn start(options: PebbleOptions) -> Option<Self> {
        let Some(program) = program() else {
            let _ = writeln!(
                std::io::stderr(),
                "NOT RUN: {}: no pebble on the PATH, and {CHOICE} names none",
                options.name
            );
            return None;
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let names_port = listener.local_addr().expect("bound").port();
        let names = tokio::spawn(every_name_is_this_machine(listener));
        let folder = Folder::new(options.name);
        let port = if options.port == 0 { free_port() } else { options.port };
        let management_port = free_port();
        let config = folder.write("pebble.json", &configuration(&options, port, management_port));
        let mut child =
            command(&program, Path::new(&config), names_port).spawn().expect("pebble starts");
        let log = Arc::<Mutex<String>>::default();
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let kept = log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().expect("no holder panics").push_str(&format!("{line}\n"));
            }
        });
        [port, management_port]
            .into_iter()
            .for_each(|port| wait_until_it_listens(&mut child, port));
        Some(Self { child, port, management_port, log, names, _folder: folder })
    }

    pub(crate) fn directory_url(&self) -> String {
        directory_url(self.port)
    }

    /// How often its log has this text.
    fn count(&self, text: &str) -> usize {
        self.log.lock().expect("no holder panics").matches(text).count()
    }

    /// Orders that it accepted.
    pub(crate) fn orders(&self) -> usize {
        self.count("Added order ")
    }

    pub(crate) fn accounts(&self) -> usize {
        self.count("accounts in memory")
    }

    /// The root of its certificates.
    pub(crate) async fn root(&self) -> String {
        let mut stream =
            connect(CA, self.management_port, "localhost").await.expect("our certificate");
        stream.write_all(b"GET /roots/0 HTTP/1.0\r\n\r\n").await.expect("open");
        let mut response = String::new();
        stream.read_to_string(&mut response).await.expect("a response");
        response.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }
}

/// A client that believes this root.
pub(crate) async fn connect(
    root: &str,
    port: u16,
    name: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(root.as_bytes()).expect("PEM")).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has suites")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let socket = TcpStream::connect(("127.0.0.1", port)).await?;
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}

impl Drop for Pebble {
    fn drop(&mut self) {
        self.names.abort();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn directory_url(port: u16) -> String {
    format!("https://localhost:{port}/dir")
}

fn program() -> Option<PathBuf> {
    if let Some(chosen) = std::env::var_os(CHOICE) {
        return Some(chosen.into());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join("pebble")).find(|path| path.is_file())
}

fn configuration(options: &PebbleOptions, port: u16, management_port: u16) -> String {
    let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/keys");
    let PebbleOptions { tls_port, http_port, life_seconds, .. } = options;
    format!(
        r#"{{"pebble": {{
            "listenAddress": "127.0.0.1:{port}", "managementListenAddress": "127.0.0.1:{management_port}",
            "certificate": "{keys}/localhost.pem", "privateKey": "{keys}/localhost.private.pem",
            "tlsPort": {tls_port}, "httpPort": {http_port}, "keyAlgorithm": "ecdsa",
            "profiles": {{"default": {{"description": "of a test", "validityPeriod": {life_seconds}}}}}
        }}}}"#
    )
}

fn command(program: &Path, config: &Path, names_port: u16) -> Command {
    let mut command = Command::new(program);
    command.arg("-config").arg(config);
    command.args(["-dnsserver", &format!("127.0.0.1:{names_port}")]);
    // Each order is validated, at once; refused nonces have a test of their own.
    let environment =
        [("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_WFE_NONCEREJECT", "0"), ("PEBBLE_AUTHZREUSE", "0")];
    command.envs(environment).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn wait_until_it_listens(child: &mut Child, port: u16) {
    let listens = || {
        let status = child.try_wait().expect("our child");
        assert!(status.is_none(), "pebble ended: {status:?}");
        StdStream::connect(SocketAddr::from(([127, 0, 0, 1], port)))
    };
    wait_for(listens, Duration::from_secs(60));
}

/// A name server over TCP (RFC 1035 §4.1, §4.2.2), as Pebble asks it: each name has the address 127.0.0.1 and no other record.
async fn every_name_is_this_machine(listener: TcpListener) {
    while let Ok((mut socket, _)) = listener.accept().await {
        tokio::spawn(async move {
            while let Ok(length) = socket.read_u16().await {
                let mut query = vec![0; length.into()];
                let _ = socket.read_exact(&mut query).await;
                let Some(reply) = reply(&query) else { return };
                let length =
                    u16::try_from(reply.len()).expect("as long as the query, and 16 bytes");
                let _ = socket.write_all(&[&length.to_be_bytes()[..], &reply].concat()).await;
            }
        });
    }
}

fn reply(query: &[u8]) -> Option<Vec<u8>> {
    let question = query.get(12..)?;
    let end = question.iter().position(|byte| *byte == 0)?;
    let question = question.get(..end + 5)?;
    let is_address = question[end + 1..end + 3] == [0, 1];
    let mut reply = query[..2].to_vec();
    reply.extend([0x81, 0x80, 0, 1, 0, u8::from(is_address), 0, 0, 0, 0]);
    reply.extend(question);
    if is_address {
        reply.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    Some(reply)
}

/// The authority of the certificate that Pebble itself shows.
pub(crate) const CA: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/keys/ca.pem"));

/// The variable that names the program.
const CHOICE: &str = "FANWIRE_PEBBLE";
