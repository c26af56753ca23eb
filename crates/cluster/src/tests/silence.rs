//! Tests of nodes that are silent: which ones are forgotten, and when a node believes that.
//! In: states of other nodes, periodic work, a bus that is cut → out: the table of nodes.
//! Uses the nodes of `tests.rs`. Never: surveys.
//! Changed here: when a silent node is forgotten, and what one that receives nothing does to commands.

use super::*;

#[test]
fn a_node_that_appears_is_introduced_once_and_forgotten_when_it_is_silent() {
    let (a, _) = node("a");
    let now = Instant::now();
    assert_eq!(introduce(&a, "b", now), Task::Introduce("b".into()));
    assert_eq!(introduce(&a, "b", now), Task::Nothing);
    assert_eq!(introduce(&a, "a", now), Task::Nothing, "itself");
    assert_eq!(a.peers(), [state("b")]);
    a.tick(now + SILENCE_MAX / 2);
    assert_eq!(a.peers().len(), 1);
    introduce(&a, "b", now + SILENCE_MAX / 2);
    a.tick(now + SILENCE_MAX);
    assert_eq!(a.peers().len(), 1, "it sent its state again");
    tick_until(&a, now + SILENCE_MAX, now + SILENCE_MAX * 2);
    assert_eq!(a.peers(), []);
}

#[test]
fn a_node_whose_process_stood_still_forgets_no_other_node_at_once() {
    let (a, _) = node("a");
    let now = Instant::now();
    introduce(&a, "b", now);
    tick_until(&a, now, now + SILENCE_MAX / 2);
    let again = now + 3 * SILENCE_MAX;
    tick_until(&a, again, again + SILENCE_MAX - Duration::from_millis(1));
    assert_eq!(a.peers(), [state("b")], "it may have sent something in between");
    a.tick(again + SILENCE_MAX);
    assert_eq!(a.peers(), []);
}

#[test]
fn no_node_counts_as_silent_while_this_one_cannot_send() {
    let (a, wire) = node("a");
    let now = Instant::now();
    let tell = |now| a.introduce(now, NodeState::default);
    introduce(&a, "b", now);
    wire.is_cut.store(true, Relaxed);
    tell(now + SILENCE_MAX / 2);
    a.tick(now + 3 * SILENCE_MAX);
    assert_eq!(a.peers(), [state("b")]);
    tell(now + 3 * SILENCE_MAX);
    wire.is_cut.store(false, Relaxed);
    let again = now + 3 * SILENCE_MAX;
    tell(again);
    tick_until(&a, again, again + SILENCE_MAX - Duration::from_millis(1));
    assert_eq!(a.peers(), [state("b")], "it has the full time again");
    a.tick(now + 4 * SILENCE_MAX);
    assert_eq!(a.peers(), []);
}

#[test]
fn no_node_counts_as_silent_while_this_one_does_not_receive_its_own_state() {
    let (a, wire) = new_node("a");
    let start = Instant::now();
    introduce(&a, "b", start);
    let mut now = start;
    let mut until_silence = |wants_join_leave: bool| {
        let since = now;
        while now < since + 3 * SILENCE_MAX && !a.peers().is_empty() {
            a.introduce(now, NodeState::default);
            let (_, state) = wire.take().remove(0);
            if wants_join_leave {
                a.handle_message(&state, now + Duration::from_millis(2));
                a.handle_message(&state, now + Duration::from_millis(9));
            }
            now += STATE_INTERVAL;
            a.tick(now);
        }
        now - since
    };
    assert_eq!(until_silence(false), 3 * SILENCE_MAX, "it receives nothing");
    let time = until_silence(true);
    assert!((SILENCE_MAX..SILENCE_MAX + 2 * STATE_INTERVAL).contains(&time), "{time:?}");
    let (lags, sum_ns) = a.times().pub_sub_lag.snapshot();
    assert_eq!(sum_ns, 2_000_000 * lags.iter().sum::<u64>(), "each from the first copy");
    assert!(sum_ns > 0);
}

/// The bus counts a node that others have forgotten, and whose connection has not ended.
#[test]
fn a_command_is_repeated_while_a_node_receives_nothing() {
    let (a, wire) = node("a");
    let (b, sent) = new_node("b");
    let start = Instant::now();
    let introduce_b = |seconds| {
        b.introduce(start + Duration::from_secs(seconds), || state("b"));
        let (_, message) = sent.take().remove(0);
        a.handle_message(&message, start);
        message
    };
    introduce_b(0);
    introduce_b(3);
    assert!(a.peers()[0].cannot_receive, "it has not received its first state");
    wire.ears.store(2, Relaxed);
    let command = a.command(ControlCommand::unsubscribe(&ConnectionSelector::default(), None));
    let command = command.ready().expect_err("it may not have reached b");
    let message = introduce_b(6);
    assert_eq!(b.handle_message(&message, start), Task::IntroduceAgain);
    introduce_b(6);
    assert!(!a.peers()[0].cannot_receive);
    a.tick(start + Duration::from_secs(1));
    assert_eq!(command.ready().expect("it was sent again"), Ok(()));
}
