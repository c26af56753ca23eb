//! When consumers begin: when clients can connect, and after a restart not before clients are back or a delay is over.
//! In: phases of the start of a server → out: the moment at which the lanes of one consumer begin.
//! Uses tokio's timer. Never: a queue.
//! Changed here: what a consumer waits for. `fanwire::server` tells the phases.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

/// How far the start of a server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartPhase {
    /// Clients cannot connect yet.
    #[default]
    Starting,
    /// Clients can connect.
    Serving,
    /// Enough clients of the time before a restart are back.
    ClientsBack,
}

/// The conditions that one consumer awaits before it reads.
#[derive(Clone, Debug)]
pub(crate) struct StartGate {
    pub(crate) phase: watch::Receiver<StartPhase>,
    pub(crate) stop: watch::Receiver<bool>,
    /// `start_delay`
    pub(crate) delay: Duration,
}

impl StartGate {
    /// Returns when the consumer may begin, or at the stop.
    pub(crate) async fn opened(mut self) {
        tokio::select! {
            () = wait(&mut self.phase, self.delay) => {}
            // An error means that the consumers are dropped.
            _ = self.stop.wait_for(|is_stopped| *is_stopped) => {}
        }
    }
}

async fn wait(phase: &mut watch::Receiver<StartPhase>, delay: Duration) {
    let _ = phase.wait_for(|phase| *phase != StartPhase::Starting).await;
    tokio::select! {
        () = sleep(delay) => {}
        _ = phase.wait_for(|phase| *phase == StartPhase::ClientsBack) => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;

    struct Phases {
        phase: watch::Sender<StartPhase>,
        stop: watch::Sender<bool>,
    }

    fn gate(delay: Duration) -> (Phases, StartGate) {
        let phases = Phases { phase: watch::Sender::default(), stop: watch::Sender::new(false) };
        let gate =
            StartGate { phase: phases.phase.subscribe(), stop: phases.stop.subscribe(), delay };
        (phases, gate)
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn a_consumer_does_not_begin_before_clients_can_connect() {
        let (phases, gate) = gate(Duration::ZERO);
        assert!(timeout(HOUR, gate.clone().opened()).await.is_err());
        phases.phase.send_replace(StartPhase::Serving);
        assert!(timeout(HOUR, gate.opened()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_begins_when_clients_can_connect() {
        let (phases, gate) = gate(Duration::from_secs(30));
        phases.phase.send_replace(StartPhase::Serving);
        let began = Instant::now();
        gate.opened().await;
        assert_eq!(began.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_are_back_end_the_delay() {
        let (phases, gate) = gate(HOUR);
        phases.phase.send_replace(StartPhase::ClientsBack);
        let began = Instant::now();
        gate.opened().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_the_wait() {
        let (phases, gate) = gate(HOUR);
        phases.stop.send_replace(true);
        let began = Instant::now();
        gate.opened().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
