//! Every code with which the server disconnects a client is counted, and logged for operators.
//! In: one client for each code, and the cause of the disconnect → out: counters of the hub, lines of the log.
//! Uses one turn with Fanwire's application on the test's own thread, and real sockets.
//! Changed here: how each code is caused. The tests of `node` check that the hub counts every cause.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use fanwire_broker::PublishOptions;
use fanwire_node::{ConnectionSelector, Options};
use fanwire_protocol::{Disconnect, Publication};
use fanwire_shard::Stop;

use super::server::Server;

#[test]
fn every_code_of_a_disconnect_is_counted_and_logged() {
    let lines = Lines::default();
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_ansi(false);
    let log = log.with_writer({
        let lines = lines.clone();
        move || lines.clone()
    });
    tracing::subscriber::with_default(log.finish(), || {
        let mut options = Options::default();
        options.client.insecure = true;
        let mut server = Server::of(options);
        for disconnect in Disconnect::ALL {
            subscribe(&mut server, disconnect.code);
            match disconnect.code {
                code if code == Disconnect::SLOW.code => server.publish_until_it_is_slow(code),
                // The test stops the server at its end.
                code if code == Disconnect::SHUTDOWN.code => continue,
                _ => server.order(disconnect),
            }
            assert_eq!(server.counted(Some(disconnect.code)), 1, "{disconnect}");
        }
        let of_an_application = Disconnect { code: 4000, reason: "bye".into() };
        subscribe(&mut server, of_an_application.code);
        server.order(&of_an_application);
        assert_eq!(server.counted(None), 1);
        server.shard.stop(Stop::default());
        server.take_turn();
        let wrong = server.counters.disconnects().find(|(_, count)| *count != 1);
        assert_eq!(wrong, None, "each code once");
    });
    let text = String::from_utf8(lines.0.lock().expect("nobody panicked").clone()).expect("text");
    for code in Disconnect::ALL.iter().map(|row| row.code).chain([4000]) {
        let is_of_code = |line: &&str| {
            line.contains("disconnected a client")
                && line.contains(&format!(" code={code} reason="))
        };
        let lines: Vec<&str> = text.lines().filter(is_of_code).collect();
        let [line] = lines[..] else { panic!("{code}: {lines:?}") };
        assert!(line.contains(" client=") && line.contains(" user="), "{line}");
        assert!(line.contains(" address="), "{line}");
    }
}

/// A user with the name of `code`, in a channel of that name.
fn subscribe(server: &mut Server, code: u16) {
    let commands = format!(
        "{{\"id\":1,\"connect\":{{}}}}\n{{\"id\":2,\"subscribe\":{{\"channel\":\"{code}\"}}}}"
    );
    server.open(Some(code.to_string()), &commands);
}

impl Server {
    /// Disconnects as the server API does.
    fn order(&mut self, disconnect: &Disconnect) {
        let target = ConnectionSelector {
            user: disconnect.code.to_string(),
            ..ConnectionSelector::default()
        };
        self.node.connections().disconnect(target, disconnect.clone()).wait().expect("one node");
        self.take_turn();
    }

    /// The peer reads nothing.
    fn publish_until_it_is_slow(&mut self, code: u16) {
        while self.shard.counters().queue_overflows.value() == 0 {
            let data = format!("\"{}\"", "a".repeat(1 << 19)).into();
            let publication = Publication { data, ..Publication::default() };
            let (channel, now) = (code.to_string(), Instant::now());
            let published =
                self.node.channels().publish(&channel, publication, PublishOptions::default(), now);
            published.wait().expect("accepted");
            self.take_turn();
        }
    }

    fn counted(&self, code: Option<u16>) -> u64 {
        let mut counts = self.counters.disconnects();
        counts.find(|(counted, _)| *counted == code).expect("a row for it").1
    }
}

/// The lines that were logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
