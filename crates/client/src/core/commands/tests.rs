//! Tests of `commands`: messages, their sizes, and ids of replies.
//! Commands → messages and receivers.
//! Uses the protocol's decoder of commands.
//! Changed here: cases of messages.

use fanwire_protocol::{Commands, PublishRequest};

use super::*;

#[test]
fn messages_stop_growing_before_the_limit_of_servers() {
    let now = Instant::now();
    for encoding in Encoding::ALL {
        let mut commands = OutgoingCommands::new(encoding, Duration::from_secs(5));
        for call in 0..100 {
            let data = format!("\"{}\"", "a".repeat(1_000)).into();
            let publish = PublishRequest { channel: "a".into(), data, ..Default::default() };
            let command = Command { publish: Some(publish), ..Command::default() };
            assert_eq!(commands.push(command, Purpose::Call(call), now), Ok(()));
        }
        let mut ids = Vec::new();
        while let Some(message) = commands.take_message() {
            assert!(message.len() <= MESSAGE_BYTES + 1);
            ids.extend(Commands::new(encoding, &message).map(|it| it.expect("a command").id));
        }
        assert_eq!(ids, (1..=100).collect::<Vec<_>>());
        assert_eq!(commands.take(7), Some(Purpose::Call(6)));
        assert_eq!(commands.take(7), None);
    }
}

#[test]
fn the_oldest_command_expires_first() {
    let now = Instant::now();
    let mut commands = OutgoingCommands::new(Encoding::Json, Duration::from_secs(5));
    for call in 0..2 {
        let sent = now + Duration::from_secs(call);
        assert_eq!(commands.push(Command::default(), Purpose::Call(call), sent), Ok(()));
    }
    assert_eq!(commands.deadline(), Some(now + Duration::from_secs(5)));
    assert_eq!(commands.take_expired(now + Duration::from_millis(5_500)), Some(Purpose::Call(0)));
    assert_eq!(commands.take_expired(now + Duration::from_millis(5_500)), None);
    assert_eq!(commands.clear().collect::<Vec<_>>(), [Purpose::Call(1)]);
    assert!(commands.take_message().is_none());
}
