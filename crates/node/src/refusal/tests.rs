//! Tests of `refusal`: causes in reasons, and a cause for every close code that the server sends by itself.
//! In: refusals and codes. Out: nothing.
//! Uses the functions only.
//! The causes of commands are tested with the commands.

use super::*;

fn reason(error: CommandError) -> String {
    told(error, true)
}

/// The text for a client, with the cause if a server says it.
fn told(error: CommandError, says_cause: bool) -> String {
    match error.into_consequence(says_cause) {
        Consequence::Disconnect(disconnect) => disconnect.to_string(),
        Consequence::Error(error) => error.to_string(),
        Consequence::Application(error) => format!("{} ({})", error.message, error.code),
    }
}

#[test]
fn a_cause_is_part_of_the_reason_as_far_as_it_fits_a_close_frame() {
    let refused = |cause: String| reason(CommandError::disconnect(Disconnect::BAD_REQUEST, cause));
    assert_eq!(refused("no token".to_owned()), "bad request: no token (3501)");
    assert_eq!(refused(String::new()), "bad request (3501)");
    let longest = REASON_BYTES_MAX - "bad request: ".len();
    assert_eq!(refused("x".repeat(longest)).len(), REASON_BYTES_MAX + " (3501)".len());
    for text in ["x", "ä", "\u{1b}", "🦀"] {
        let cut = refused(text.repeat(longest + 1));
        let reason = cut.strip_suffix(" (3501)").expect("the code");
        assert!(reason.ends_with('…') && reason.len() <= REASON_BYTES_MAX, "{cut}");
        assert!(reason.starts_with("bad request: ") && !reason.contains('\u{1b}'), "{cut}");
    }
}

#[test]
fn a_reason_has_no_cause_unless_the_server_says_it() {
    let refused = CommandError::disconnect(Disconnect::BAD_REQUEST, "client.insecure is off");
    assert_eq!(told(refused.clone(), false), "bad request (3501)");
    assert_eq!(refused.refused(None).cause, "client.insecure is off", "in the log");
}

#[test]
fn an_error_reply_keeps_its_text() {
    let error = CommandError::error(ErrorCode::PERMISSION_DENIED, "because");
    assert_eq!(reason(error.clone()), "permission denied (103)");
    assert_eq!(error.refused(Some(CommandKind::Publish)).cause, "because");
}

#[test]
fn a_code_without_a_cause_of_its_own_gets_the_usual_one() {
    for code in [100, 102, 103, 105, 106, 107, 108, 110, 111, 112] {
        let code = ErrorCode::ALL.iter().find(|row| row.code == code).expect("a row");
        let refused = CommandError::from(*code).refused(Some(CommandKind::Publish));
        assert!(!refused.cause.is_empty(), "{code}");
    }
}

#[test]
fn every_close_code_without_a_command_has_a_cause() {
    // The rest is sent for commands, with a cause, or by the backend's choice.
    let of_commands = [3000, 3004, 3011, 3014, 3500, 3501, 3505, 3508, 3509];
    for disconnect in Disconnect::ALL {
        let has_cause = !cause_of_disconnect(disconnect.code).is_empty();
        assert_eq!(has_cause, !of_commands.contains(&disconnect.code), "{disconnect}");
    }
}
