//! Queues for tests: their processes.
//! In: a program and its arguments → out: a port; the process ends with the value.
//! Uses the machine's programs, a process per value, ended by its own id. Never: default ports, others.
//! Changed here: how a queue is started for tests.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fanwire_testing::{Folder, free_port};

/// A process with a folder and a port.
pub(crate) struct QueueServer {
    child: Child,
    pub(crate) folder: Folder,
    pub(crate) port: u16,
    start: fn(&Path, u16) -> Child,
    /// Signal that ends it as a crash does.
    crash: &'static str,
}

impl QueueServer {
    fn new(start: fn(&Path, u16) -> Child, folder: Folder, crash: &'static str) -> Self {
        let port = free_port();
        Self { child: start(&folder, port), folder, port, start, crash }
    }

    /// PostgreSQL, which refuses to run as root: then another user runs it.
    pub(crate) fn postgres() -> Self {
        Self::postgres_in(Folder::new("postgres"))
    }

    /// PostgreSQL that accepts TLS.
    pub(crate) fn postgres_with_tls() -> Self {
        Self::postgres_in(with_keys(Folder::new("postgres")))
    }

    fn postgres_in(folder: Folder) -> Self {
        if let Some((user, group)) = other_user() {
            chown(&*folder, Some(user), Some(group)).expect("root gives folders away");
        }
        let mut initdb = as_other_user(&program_of_postgres("initdb"));
        initdb.args(["--auth=trust", "--username=app", "--no-sync", "--encoding=UTF8", "-D"]);
        let made = initdb.arg(folder.join("data")).output().expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self::new(start_postgres, folder, "-QUIT")
    }

    /// PgBouncer in transaction mode before a PostgreSQL.
    pub(crate) fn pgbouncer(database: &Self) -> Self {
        let folder = Folder::new("pgbouncer");
        std::fs::write(folder.join("database"), database.port.to_string()).expect("a file");
        Self::new(start_pgbouncer, folder, "-KILL")
    }

    /// Redis that writes each command to a file.
    pub(crate) fn redis() -> Self {
        Self::new(start_redis, Folder::new("redis"), "-KILL")
    }

    /// Redis with TLS only.
    pub(crate) fn redis_with_tls() -> Self {
        Self::new(start_redis, with_keys(Folder::new("redis")), "-KILL")
    }

    /// NATS with JetStream, which the step `nats` of `cargo xtask test` builds.
    pub(crate) fn nats() -> Self {
        Self::new(start_nats, Folder::new("nats"), "-KILL")
    }

    /// NATS that asks for TLS.
    pub(crate) fn nats_with_tls() -> Self {
        Self::new(start_nats, with_keys(Folder::new("nats")), "-KILL")
    }

    /// Ends it without a shutdown.
    pub(crate) fn crash(&mut self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([self.crash, &pid]).status();
        assert!(sent.expect("there is a kill").success());
        self.child.wait().expect("it was killed");
    }

    /// Starts it again with its data.
    pub(crate) fn restart(&mut self) {
        self.child = (self.start)(&self.folder, self.port);
    }

    /// Removes the data of a Redis that does not run.
    pub(crate) fn forget(&self) {
        std::fs::remove_dir_all(self.folder.join("appendonlydir"))
            .expect("it wrote its data there");
    }

    /// The address of the database `postgres`.
    pub(crate) fn dsn(&self) -> String {
        format!("postgres://app@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for QueueServer {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            self.crash();
        }
    }
}

fn start_postgres(folder: &Path, port: u16) -> Child {
    let mut server = as_other_user(&program_of_postgres("postgres"));
    let port = port.to_string();
    server.arg("-D").arg(folder.join("data")).args(["-p", &port, "-h", "127.0.0.1", "-k"]);
    // What is committed is lost by a crash of the machine only.
    server.arg(folder).args(["-F", "-c", "fsync=off", "-c", "max_connections=40"]);
    if let Some([certificate, key]) = keys(folder) {
        server.args(["-c", "ssl=on", "-c", &format!("ssl_cert_file={certificate}")]);
        server.args(["-c", &format!("ssl_key_file={key}")]);
    }
    ready(server.stderr(Stdio::piped()), "ready to accept connections", |child| {
        child.stderr.take().map(|lines| Box::new(lines) as _)
    })
}

fn start_pgbouncer(folder: &Path, port: u16) -> Child {
    let database = std::fs::read_to_string(folder.join("database")).expect("a port");
    let settings = folder.join("pgbouncer.ini");
    let text = format!(
        "[databases]\n* = host=127.0.0.1 port={database} user=app\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = any\npool_mode = transaction\nmax_client_conn = 100\ndefault_pool_size = 5\n"
    );
    std::fs::write(&settings, text).expect("a file");
    let mut pgbouncer = as_other_user(Path::new("pgbouncer"));
    ready(pgbouncer.arg(settings).stderr(Stdio::piped()), "process up", |child| {
        child.stderr.take().map(|lines| Box::new(lines) as _)
    })
}

fn start_redis(folder: &Path, port: u16) -> Child {
    let programs = ["redis-server", "redis-check-rdb"].map(str::to_owned);
    let chosen = std::env::var("FANWIRE_REDIS_SERVER").ok().into_iter().chain(programs);
    let program = chosen.into_iter().find(|name| is_there(name)).expect("the package redis-tools");
    let mut server = Command::new(program);
    let port = port.to_string();
    match keys(folder) {
        None => server.arg0("redis-server").args(["--port", &port]),
        Some([certificate, key]) => server
            .arg0("redis-server")
            .args(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"])
            .args(["--tls-cert-file", &certificate, "--tls-key-file", &key])
            .args(["--tls-ca-cert-file", CA]),
    };
    server.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
    server.args(["--appendfsync", "no", "--dir"]).arg(folder);
    ready(server.stdout(Stdio::piped()), "Ready to accept connections", |child| {
        child.stdout.take().map(|lines| Box::new(lines) as _)
    })
}

fn start_nats(folder: &Path, port: u16) -> Child {
    let program = std::env::var_os("FANWIRE_NATS_SERVER").unwrap_or_else(|| "nats-server".into());
    let mut server = Command::new(program);
    server.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(folder);
    if let Some([certificate, key]) = keys(folder) {
        server.args(["--tls", "--tlscert", &certificate, "--tlskey", &key]);
    }
    ready(server.stderr(Stdio::piped()), "Server is ready", |child| {
        child.stderr.take().map(|lines| Box::new(lines) as _)
    })
}

type Lines = Box<dyn Read + Send>;

/// Starts a server and waits for the line that says that it is ready.
pub(crate) fn ready(
    command: &mut Command,
    line: &str,
    output: fn(&mut Child) -> Option<Lines>,
) -> Child {
    let mut child = command.stdin(Stdio::null()).spawn().unwrap_or_else(|error| {
        panic!(
            "{:?} does not start ({error}): cargo xtask test consumers installs queues",
            command.get_program()
        )
    });
    let mut lines = BufReader::new(output(&mut child).expect("it was piped")).lines();
    let found = lines.by_ref().map_while(Result::ok).find(|said| said.contains(line));
    assert!(found.is_some(), "the server ended before it said {line:?}");
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Debian keeps these programs apart, in a folder for each version.
fn program_of_postgres(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        versions.map(|version| version.path().join("bin").join(name)).collect();
    found.retain(|program| program.is_file());
    found.sort();
    found.pop().unwrap_or_else(|| name.into())
}

/// A user for servers that root must not run; `None` for anybody else.
fn other_user() -> Option<(u32, u32)> {
    let is_root = std::fs::metadata("/proc/self")
        .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let fields: Vec<&str> = users
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
            .find(|fields| fields[0] == name)?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    is_root.then(|| ids("postgres").or_else(|| ids("daemon"))).flatten()
}

fn as_other_user(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = other_user() {
        command.uid(user).gid(group).current_dir("/");
    }
    command
}

/// Adds a certificate of `localhost` and its key to the folder of a server, which then uses TLS.
fn with_keys(folder: Folder) -> Folder {
    for (name, of_tests) in FILES.iter().zip(["localhost.pem", "localhost.private.pem"]) {
        let file = folder.join(name);
        std::fs::copy(Path::new(KEYS).join(of_tests), &file).expect("a key of the tests");
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("it is ours");
        if let Some((user, group)) = other_user() {
            chown(&file, Some(user), Some(group)).expect("root gives files away");
        }
    }
    folder
}

/// The certificate and the key of a server that uses TLS.
fn keys(folder: &Path) -> Option<[String; 2]> {
    let files = FILES.map(|name| folder.join(name));
    let are_there = files.iter().all(|file| file.is_file());
    are_there.then(|| files.map(|file| file.display().to_string()))
}

/// The authority of the certificates of servers.
pub(crate) const CA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/keys/ca.pem");
const KEYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/keys");
const FILES: [&str; 2] = ["certificate.pem", "key.pem"];
