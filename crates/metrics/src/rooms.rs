//! The metrics of rooms: players, ticks and their times, late ticks, inputs and messages of all rooms together.
//! In: the totals of rooms → out: rows for the writer; none for a server without rooms.
//! Uses the writer and the sum of histograms; labels are kinds of rooms, so the number of series stays bounded.
//! Changed here: names and help. `Rooms::stats` has the figures of one room.

use std::{sync::Arc, time::Duration};

use fanwire_telemetry::{CallHistogram, MetricsWriter};
use parking_lot::Mutex;

use super::shard::{HistogramSum, histogram};

/// The figures of all rooms together.
pub struct RoomTotals {
    pub rooms: usize,
    pub players: usize,
    /// Commands that wait for a tick.
    pub waiting: usize,
    pub ticks: u64,
    pub overruns: u64,
    pub inputs: u64,
    pub inputs_refused: u64,
    pub messages: u64,
    pub bytes: u64,
    pub failed_outputs: u64,
    /// Times of ticks by kind of room.
    pub tick_times: Vec<Arc<TickTimes>>,
}

/// The times of ticks of one kind of room, whose rooms may run on several threads.
pub struct TickTimes {
    kind: String,
    times: Mutex<CallHistogram>,
}

impl TickTimes {
    pub fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), times: Mutex::default() }
    }

    /// The label.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    pub fn observe(&self, duration: Duration) {
        self.times.lock().observe(duration);
    }
}

pub(super) fn write(totals: &RoomTotals, writer: &mut impl MetricsWriter) {
    writer.gauge("rooms", "Open rooms", totals.rooms as u64);
    writer.gauge("room_players", "Players of all rooms", totals.players as u64);
    writer.gauge("room_waiting_commands", "Commands that wait for a tick", totals.waiting as u64);
    let counts = [
        ("room_ticks", "Ticks of all rooms", totals.ticks),
        ("room_overruns", "Ticks that were late by a period or more", totals.overruns),
        ("room_inputs", "Inputs of players that were accepted", totals.inputs),
        (
            "room_inputs_refused",
            "Inputs that were refused: a limit, or no player",
            totals.inputs_refused,
        ),
        (
            "room_messages",
            "Messages of simulations, each for any number of players",
            totals.messages,
        ),
        ("room_message_bytes", "Bytes of these messages", totals.bytes),
        ("room_failed_outputs", "Messages and views that were impossible", totals.failed_outputs),
    ];
    for (name, help, count) in counts {
        writer.counter(name, help, count);
    }
    let row = |of_kind: &Arc<TickTimes>| {
        let sum = HistogramSum::of([&*of_kind.times.lock()].into_iter());
        ([("kind", of_kind.kind.clone())], sum)
    };
    let rows: Vec<_> = totals.tick_times.iter().map(row).collect();
    let help = "From the commands of a tick to the publication of its last message";
    histogram(writer, "room_tick_duration_seconds", help, &rows);
}
