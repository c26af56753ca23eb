//! Tests of `queue`: order, limits, newest-wins, against a simple model.
//! In: random commands of a few clients. Out: nothing.
//! Uses proptest.
//! Changed here: tests of what waits for a tick.

use proptest::prelude::*;

use super::*;

const EACH: InputKind = InputKind { kind: 0, newest_wins: false, sequence: None };

fn unlimited() -> InputLimits {
    InputLimits { rate: InputRate { per_second: 0, burst: 0 }, ..InputLimits::default() }
}

fn input(player: u32, data: &str) -> RoomCommand {
    let data = Bytes::copy_from_slice(data.as_bytes());
    RoomCommand::Input { player: PlayerId(player), sequence: None, data }
}

#[test]
fn each_refusal_has_its_cause_and_changes_nothing() {
    let limits = InputLimits { bytes_max: 3, waiting_max: 2, ..unlimited() };
    let mut queue = CommandQueue::new(limits);
    let now = Duration::ZERO;
    assert_eq!(queue.input("a", EACH, "1".into(), now), Err(RoomCommandError::NotJoined));
    assert_eq!(queue.join("a", "ada", "".into()), Ok(PlayerId(1)));
    assert_eq!(queue.join("a", "ada", "".into()), Err(RoomCommandError::JoinedAlready));
    assert_eq!(queue.input("a", EACH, "1234".into(), now), Err(RoomCommandError::TooLong));
    let kind = InputKind { kind: KINDS_MAX, ..EACH };
    assert_eq!(queue.input("a", kind, "1".into(), now), Err(RoomCommandError::UnknownKind));
    assert_eq!(queue.input("a", EACH, "1".into(), now), Ok(()));
    assert_eq!(queue.input("a", EACH, "2".into(), now), Ok(()));
    assert_eq!(queue.input("a", EACH, "3".into(), now), Err(RoomCommandError::QueueFull));
    assert_eq!(queue.join("b", "", "".into()), Ok(PlayerId(2)), "joins have no limit");
    assert_eq!(queue.leave("c"), None);
    assert_eq!(queue.drain(Vec::new()).len(), 4);
    assert_eq!(queue.input("a", EACH, "3".into(), now), Ok(()), "a drained queue has room");
    assert_eq!(queue.counts(), InputCounts { accepted: 3, replaced: 0, refused: 4 });
}

#[test]
fn a_flood_of_one_player_leaves_the_rate_of_others_alone() {
    let rate = InputRate { per_second: 10, burst: 5 };
    let mut queue = CommandQueue::new(InputLimits { rate, ..InputLimits::default() });
    for client in ["a", "b"] {
        queue.join(client, "", "".into()).expect("new");
    }
    let mut accepted = 0;
    for ms in 0..2000 {
        let now = Duration::from_millis(ms);
        accepted += u32::from(queue.input("a", EACH, "1".into(), now).is_ok());
        if ms % 100 == 0 {
            assert_eq!(queue.input("b", EACH, "1".into(), now), Ok(()));
        }
    }
    assert_eq!(accepted, 5 + 19, "the burst, then 10 per second");
}

#[test]
fn the_newest_input_of_a_kind_takes_the_place_of_the_one_that_waits() {
    let mut queue = CommandQueue::new(unlimited());
    let steer = InputKind { kind: 1, newest_wins: true, sequence: None };
    queue.join("a", "", "".into()).expect("new");
    queue.drain(Vec::new());
    for (kind, data) in [(steer, "left"), (EACH, "fire"), (steer, "right"), (EACH, "jump")] {
        queue.input("a", kind, data.into(), Duration::ZERO).expect("a player");
    }
    let expected = [input(1, "right"), input(1, "fire"), input(1, "jump")];
    assert_eq!(queue.drain(Vec::new()), expected);
    queue.input("a", steer, "up".into(), Duration::ZERO).expect("a player");
    assert_eq!(queue.drain(Vec::new()), [input(1, "up")], "nothing of an earlier tick is replaced");
    assert_eq!(queue.counts().replaced, 1);
}

#[derive(Clone, Debug)]
enum Step {
    Join(usize),
    Leave(usize),
    Input(usize, u8, bool),
    Drain,
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..3_usize;
    prop_oneof![
        client.clone().prop_map(Step::Join),
        client.clone().prop_map(Step::Leave),
        (client, 0..3_u8, any::<bool>())
            .prop_map(|(client, kind, newest)| Step::Input(client, kind, newest)),
        Just(Step::Drain),
    ]
}

proptest! {
    /// The model keeps a list per tick and removes what was replaced by comparing everything with everything.
    #[test]
    fn commands_come_in_order_once_and_newest_wins(steps in prop::collection::vec(step(), 1..200)) {
        let mut queue = CommandQueue::new(unlimited());
        let mut players: [Option<u32>; 3] = [None; 3];
        let (mut joins, mut inputs) = (0, 0_u32);
        let mut model: Vec<(Option<(u32, u8)>, RoomCommand)> = Vec::new();
        for step in steps {
            match step {
                Step::Join(client) => {
                    let joined = queue.join(&client.to_string(), "", Bytes::new());
                    if players[client].is_some() {
                        prop_assert_eq!(joined, Err(RoomCommandError::JoinedAlready));
                        continue;
                    }
                    joins += 1;
                    prop_assert_eq!(joined, Ok(PlayerId(joins)));
                    players[client] = Some(joins);
                    let (player, user, data) = (PlayerId(joins), String::new(), Bytes::new());
                    model.push((None, RoomCommand::Join { player, user, data }));
                }
                Step::Leave(client) => {
                    let left = players[client].take();
                    prop_assert_eq!(queue.leave(&client.to_string()), left.map(PlayerId));
                    model.extend(left.map(|left| (None, RoomCommand::Leave { player: PlayerId(left) })));
                }
                Step::Input(client, kind, newest_wins) => {
                    inputs += 1;
                    let kind = InputKind { kind, newest_wins, sequence: Some(inputs) };
                    let data = Bytes::from(inputs.to_string());
                    let result = queue.input(&client.to_string(), kind, data.clone(), Duration::ZERO);
                    let Some(player) = players[client] else {
                        prop_assert_eq!(result, Err(RoomCommandError::NotJoined));
                        continue;
                    };
                    prop_assert_eq!(result, Ok(()));
                    let mark = newest_wins.then_some((player, kind.kind));
                    let command = RoomCommand::Input { player: PlayerId(player), sequence: kind.sequence, data };
                    match model.iter_mut().find(|(other, _)| mark.is_some() && *other == mark) {
                        Some((_, old)) => *old = command,
                        None => {
                            // An input that counts by itself ends the replacing of earlier ones of its kind.
                            for (other, _) in &mut model {
                                if *other == Some((player, kind.kind)) {
                                    *other = None;
                                }
                            }
                            model.push((mark, command));
                        }
                    }
                }
                Step::Drain => {
                    let expected: Vec<_> = model.drain(..).map(|(_, command)| command).collect();
                    prop_assert_eq!(queue.drain(Vec::new()), expected);
                }
            }
        }
    }
}
