//! Tests of the disconnects for errors of connect.
//! In: codes of errors, configured transforms → out: codes of disconnects.
//! Uses: no session.
//! Dialogues with unidirectional clients are in `tests/it/unidirectional.rs`.

use super::*;

#[test]
fn errors_of_connect_become_disconnects_and_configured_ones_come_first() {
    let transform = |code, disconnect_code| ConnectCodeTransform {
        code,
        to: Disconnect { code: disconnect_code, reason: "custom".into() },
    };
    let transforms = [transform(109, 4109), transform(400, 4400), transform(400, 4401)];
    for error in ErrorCode::ALL {
        let expected = match error.code {
            109 | 110 => 3005,
            111 => 3013,
            103 => 3507,
            _ => 3004,
        };
        assert_eq!(disconnect_of(error.code, &[]).code, expected, "{error}");
        let expected = if error.code == 109 { 4109 } else { expected };
        assert_eq!(disconnect_of(error.code, &transforms).code, expected, "{error}");
    }
    assert_eq!(disconnect_of(400, &transforms), transforms[1].to, "the first one");
    assert_eq!(disconnect_of(400, &[]), Disconnect::SERVER_ERROR);
}
