//! `fanwire doctor` through Debian's nginx and HAProxy: right configurations, and each with one fault.
//! In: configurations of proxies → out: the checks that find something, and exit codes.
//! Uses the built `fanwire`, one nginx and one HAProxy. Never: ports that somebody chose.
//! The rules are tested next to them, without sockets.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use fanwire_testing::{Folder, free_port, wait_for};
use serde_json::{Value, json};

use super::started::PATIENCE;
use super::started::process::Process;
use super::{fanwire, run};

/// A fault, and the lines of configuration that cause it.
type Case = (&'static str, &'static str);

/// A server with each transport, whose proxies have the address 127.0.0.2.
struct Examined {
    node: Process,
    token: String,
    folder: Folder,
}

impl Examined {
    fn start(name: &str) -> Self {
        let folder = Folder::new(name);
        let config = json!({
            "client": {
                "token": {"hmac_secret_key": SECRET},
                "allowed_origins": [ORIGIN],
            },
            "http_api": {"key": KEY},
            "http_server": {
                "address": "127.0.0.1", "port": 0, "trusted_proxies": ["127.0.0.2/32"],
            },
            "http_stream": {"enabled": true},
            "sse": {"enabled": true},
        });
        let path = folder.write("fanwire.json", &config.to_string());
        let node = Process::serve(fanwire().args(["--config", &path]));
        let (code, token, _) = run(&["token", "--user", "ada", "--secret", SECRET]);
        assert_eq!(code, 0);
        Self { node, token: token.trim().to_owned(), folder }
    }

    /// Exit code, and the names of checks that found a problem.
    fn examine(&self, url: &str, more: &[&str]) -> (Option<i32>, BTreeSet<String>, String) {
        let api = format!("http://{}/api", self.node.address);
        let mut doctor = fanwire();
        doctor.args(["doctor", url, "--json", "--idle", "2", "--token", &self.token]);
        doctor.args(["--api", &api, "--key", KEY, "--origin", ORIGIN]).args(more);
        let output = doctor.output().expect("the binary runs");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let problems = findings.iter().filter(|finding| finding["severity"] == "problem");
        let names = problems.map(|finding| {
            let lines = finding["remedies"].as_object().expect("an object");
            assert!(!lines.is_empty(), "{finding}");
            finding["check"].as_str().expect("a name").to_owned()
        });
        let (names, error) = (names.collect(), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), names, format!("{report:#}{error}"))
    }

    /// Examines all at the same time.
    fn examine_each(&self, cases: &[Case], urls: &[String], more: &[&str]) {
        std::thread::scope(|scope| {
            for ((fault, lines), url) in cases.iter().zip(urls) {
                scope.spawn(move || {
                    let (code, found, report) = self.examine(url, more);
                    let expected: BTreeSet<String> =
                        fault.split_terminator(' ').map(str::to_owned).collect();
                    assert_eq!(found, expected, "{lines}\n{report}");
                    assert_eq!(code, Some(i32::from(!expected.is_empty())), "{report}");
                });
            }
        });
    }
}

/// A proxy that ends with its value.
struct Proxy(Child);

impl Proxy {
    /// Starts it and waits until it listens; `None` when the machine has no such program.
    fn start(command: &mut Command, ports: &[u16]) -> Option<Self> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut proxy = Self(command.spawn().ok()?);
        let listens = || {
            if let Some(status) = proxy.0.try_wait().expect("our child") {
                let mut said = String::new();
                let mut stderr = proxy.0.stderr.take().expect("a pipe");
                stderr.read_to_string(&mut said).expect("text");
                panic!("{command:?} did not start: {status} {said}");
            }
            ports.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok())
        };
        wait_for(listens, PATIENCE);
        Some(proxy)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn not_run(what: &str, package: &str) {
    let _ = writeln!(std::io::stderr(), "NOT RUN: {what}: install the Debian package {package}");
}

#[test]
fn each_fault_of_an_nginx_is_found_and_a_right_one_has_none() {
    let examined = Examined::start("doctor-nginx");
    let folder = examined.folder.path();
    let mut config = format!(
        "daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;\n\
         events {{ worker_connections 256; }}\nhttp {{ access_log off;\n"
    );
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(config, "{kind}_temp_path {folder}/{kind};");
    }
    let ports: Vec<u16> = NGINX.iter().map(|_| free_port()).collect();
    for ((_, lines), port) in NGINX.iter().zip(&ports) {
        let lines = lines.replace("RIGHT", NGINX_RIGHT).replace("NODE", &examined.node.address);
        let _ = writeln!(config, "server {{ listen 127.0.0.1:{port}; {lines} }}");
    }
    config.push('}');
    let path = examined.folder.write("nginx.conf", &config);
    let mut nginx = Command::new("/usr/sbin/nginx");
    let Some(_nginx) = Proxy::start(nginx.args(["-c", &path, "-p", folder]), &ports) else {
        return not_run("nginx", "nginx-light");
    };
    let urls: Vec<String> = ports.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
    examined.examine_each(NGINX, &urls, &[]);
}

#[test]
fn each_fault_of_a_haproxy_is_found_and_a_right_one_has_none() {
    let examined = Examined::start("doctor-haproxy");
    let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/keys/");
    let key = |name: &str| std::fs::read_to_string(format!("{keys}{name}")).expect("a key");
    let pem = key("localhost.pem") + &key("localhost.private.pem");
    let pem = examined.folder.write("site.pem", &pem);
    let mut config = "defaults\n mode http\n timeout connect 5s\n retries 0\n".to_owned();
    let ports: Vec<u16> = HAPROXY.iter().map(|_| free_port()).collect();
    for ((fault, lines), port) in HAPROXY.iter().zip(&ports) {
        let tls = if lines.contains("ssl") { format!("ssl crt {pem}") } else { String::new() };
        let timeouts = match *fault {
            "idle_cut" => " timeout client 1s\n timeout server 1s\n timeout tunnel 1s",
            _ => " timeout client 60s\n timeout server 60s\n timeout tunnel 1h",
        };
        let node = match *fault {
            "no_backend" => "127.0.0.1:1",
            _ => &examined.node.address,
        };
        let lines = lines.replace("ssl", "");
        let _ = writeln!(
            config,
            "listen p{port}\n bind 127.0.0.1:{port} {tls}\n{timeouts}\n {lines}\n \
             server fanwire {node} source 127.0.0.2"
        );
    }
    let path = examined.folder.write("haproxy.cfg", &config);
    let mut haproxy = Command::new("/usr/sbin/haproxy");
    let Some(_haproxy) = Proxy::start(haproxy.args(["-db", "-f", &path]), &ports) else {
        return not_run("HAProxy", "haproxy");
    };
    let urls: Vec<String> = HAPROXY
        .iter()
        .zip(&ports)
        .map(|((_, lines), port)| match lines.contains("ssl") {
            true => format!("https://localhost:{port}"),
            false => format!("http://127.0.0.1:{port}"),
        })
        .collect();
    examined.examine_each(HAPROXY, &urls, &[]);

    let tls = urls.iter().find(|url| url.starts_with("https")).expect("a row with TLS");
    let (code, found, report) = examined.examine(tls, &["--ca", &format!("{keys}ca.pem")]);
    assert!(code == Some(0) && found.is_empty(), "{report}");
    let (code, _, report) = examined.examine(&tls.replace("https", "http"), &[]);
    assert!(code == Some(2) && report.contains("speaks TLS: use https://"), "{report}");
    let (code, _, report) = examined.examine(&urls[0].replace("http", "https"), &[]);
    assert!(code == Some(2) && report.contains("speaks no TLS: use http://"), "{report}");
}

#[test]
fn without_a_server_nothing_is_checked_and_a_page_is_no_server() {
    let port = free_port();
    let (code, out, error) = run(&["doctor", &format!("http://127.0.0.1:{port}")]);
    assert!(code == 2 && out.is_empty() && error.contains("no server listens at"), "{error}");
    for wrong in ["127.0.0.1:8000", "ftp://127.0.0.1", "https://"] {
        let (code, _, error) = run(&["doctor", wrong]);
        assert!(code == 2 && error.starts_with("fanwire: "), "{wrong}: {error}");
    }
    let site = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = site.local_addr().expect("an address");
    std::thread::spawn(move || {
        for socket in site.incoming() {
            let mut socket = socket.expect("a connection");
            let _ = socket.read(&mut [0; 4096]);
            let page = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>";
            let _ = socket.write_all(page);
        }
    });
    let (code, out, error) = run(&["doctor", &format!("http://{address}")]);
    let said = "problem: WebSocket: the answer is 200: <html>";
    assert!(code == 1 && out.contains(said), "{out}{error}");
}

const SECRET: &str = "a secret of this test, long enough";
const KEY: &str = "a key of this test, long enough too";
const ORIGIN: &str = "https://app.example.com";

/// All that a WebSocket needs, and the address of the client.
const NGINX_RIGHT: &str = "proxy_pass http://NODE; proxy_bind 127.0.0.2; proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection \"upgrade\";";

const NGINX: &[Case] = &[
    ("", "location / { RIGHT proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }"),
    (
        "upgrade_missing",
        "location / { proxy_pass http://NODE; proxy_bind 127.0.0.2;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }",
    ),
    (
        "buffered",
        "location / { RIGHT proxy_ignore_headers X-Accel-Buffering;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }",
    ),
    (
        "idle_cut",
        "location / { RIGHT proxy_read_timeout 1s;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }",
    ),
    (
        "deflate_stripped",
        "location / { RIGHT proxy_set_header Sec-WebSocket-Extensions \"\";
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }",
    ),
    ("address_lost", "location / { RIGHT proxy_set_header X-Forwarded-For \"\"; }"),
    ("address_forged", "location / { RIGHT }"),
    (
        "emulation_not_routed",
        "location /connection/ { RIGHT
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }",
    ),
    ("redirect", "return 301 https://example.com$request_uri;"),
];

const HAPROXY: &[Case] = &[
    ("", "option forwardfor"),
    ("upgrade_missing", "option forwardfor\n http-request del-header Upgrade"),
    ("idle_cut", "option forwardfor"),
    ("deflate_stripped", "option forwardfor\n http-request del-header Sec-WebSocket-Extensions"),
    ("address_lost", "http-request del-header X-Forwarded-For"),
    (
        "origin_refused",
        "option forwardfor\n http-request set-header Origin http://internal if { req.hdr(Origin) -m found }",
    ),
    ("no_backend", "option forwardfor"),
    ("certificate", "option forwardfor ssl"),
];
