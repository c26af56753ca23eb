//! The metrics of rooms: players, ticks and their times, late ticks, inputs and messages of all rooms together.
//! In: the totals of rooms → out: rows for the writer; none for a server without rooms.
//! Uses the writer and the sum of histograms; no metric is per room, so the number of series stays bounded.
//! Changed here: names and help. `Rooms::stats` has the figures of one room.

use std::{fmt, sync::Arc};

use fanwire_telemetry::MetricsWriter;

use super::shard::{HistogramSum, histogram};
use crate::rooms::RoomTotals;

pub(super) fn write(totals: &RoomTotals, writer: &mut impl MetricsWriter) -> fmt::Result {
    let RoomTotals { rooms, stats, tick_times } = totals;
    writer.gauge("rooms", "Open rooms", *rooms)?;
    writer.gauge("room_players", "Players of all rooms", stats.players)?;
    writer.gauge("room_waiting_commands", "Commands that wait for a tick", stats.waiting)?;
    let counts = [
        ("room_ticks", "Ticks of all rooms", stats.ticks),
        ("room_overruns", "Ticks that were late by a period or more", stats.overruns),
        ("room_inputs", "Inputs of players that were accepted", stats.inputs.accepted),
        (
            "room_inputs_refused",
            "Inputs that were refused: a limit, or no player",
            stats.inputs.refused,
        ),
        (
            "room_messages",
            "Messages of simulations, each for any number of players",
            stats.messages,
        ),
        ("room_message_bytes", "Bytes of these messages", stats.bytes),
        ("room_failed_outputs", "Messages and views that were impossible", stats.failed_outputs),
    ];
    for (name, help, count) in counts {
        writer.counters(name, help, [([], count)])?;
    }
    let sum = HistogramSum::of(tick_times.iter().map(Arc::as_ref));
    let help = "From the commands of a tick to the publication of its last message";
    histogram(writer, "room_tick_duration_seconds", help, &[([], sum)])
}
