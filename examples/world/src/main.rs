//! A world of bots and players, simulated 60 times a second, in one page of the browser.
//! In: `world [PORT]` or `world --help` → out: a page at http://127.0.0.1:PORT, 8080 by default; 0 = any free port.
//! Uses `fanwire` as a library. Never: a rule of the server.
//! Changed here: the options of server and room. The rules of the world are in `world.rs`, the page is `assets/index.html`.
#![forbid(unsafe_code)]

mod page;
mod world;

use std::{error::Error, net::TcpListener, num::NonZeroU32, thread, time::Duration};

use fanwire::{Builder, EmbeddedServer, RoomOptions, Rooms, config::Config};

use crate::world::{TILE_SIZE, World};

/// The channel whose subscribers are the players.
const CHANNEL: &str = "world";
/// The channel of the panel.
const PANEL: &str = "panel";
const BOTS: u64 = 3000;
const HELP: &str = "\
A world of 3,000 bots, and of the players who open its page.

Usage: world [PORT]

  PORT   port of the page on 127.0.0.1; 8080 without it, 0 for any free one
";
const TICKS_PER_SECOND: NonZeroU32 = NonZeroU32::new(60).expect("not 0");

fn main() -> Result<(), Box<dyn Error>> {
    let argument = std::env::args().nth(1);
    if argument.as_deref().is_some_and(|word| ["--help", "-h"].contains(&word)) {
        print!("{HELP}");
        return Ok(());
    }
    let port: u16 = argument
        .map_or(Ok(8080), |port| port.parse())
        .map_err(|_| "expected the number of a port; --help says more")?;
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let rooms = Rooms::new(1);
    let server = Builder::new(config()).rooms(&rooms).start_embedded()?;
    let ticks_per_second = TICKS_PER_SECOND;
    let options = RoomOptions { ticks_per_second, ..RoomOptions::new(CHANNEL) };
    rooms.open(options, World::new(BOTS))?;
    println!("a world at http://{}", listener.local_addr()?);
    let address = server.address();
    thread::spawn(move || publish_panel(&server, &rooms));
    page::serve(&listener, address);
    Ok(())
}

fn config() -> Config {
    let mut config = Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0; // browsers come through the port of the page
    config.client.allowed_origins = vec!["http://127.0.0.1:*".to_owned()];
    config.client.allow_anonymous_connect_without_token = true;
    let namespace = &mut config.channel.without_namespace;
    namespace.allow_subscribe_for_client = true;
    namespace.allow_subscribe_for_anonymous = true;
    namespace.areas.tile_size = TILE_SIZE;
    config
}

/// Publishes the figures of the panel once a second.
fn publish_panel(server: &EmbeddedServer, rooms: &Rooms) {
    let handle = server.handle();
    loop {
        thread::sleep(Duration::from_secs(1));
        let Some(room) = rooms.stats(CHANNEL) else { return };
        let stats = server.stats();
        let sent = format!(
            r#"{{"payload_bytes":{},"wire_bytes":{},"deliveries":{},"connections":{}}}"#,
            stats.payload_bytes, stats.wire_bytes, stats.deliveries, stats.connections,
        );
        let panel = format!(
            r#"{{"players":{},"ticks":{},"overruns":{},"p50_us":{},"p99_us":{},"sent":{sent}}}"#,
            room.players,
            room.ticks,
            room.overruns,
            room.tick_p50.as_micros(),
            room.tick_p99.as_micros(),
        );
        drop(handle.publish(PANEL, panel));
    }
}
