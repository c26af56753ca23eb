//! Tests of one TLS session: records in any pieces, alerts, key updates, and what a session holds at rest.
//! In: bytes of a client without a socket → out: plaintext, records, errors, bytes of memory.
//! Uses rustls as the client; never a socket.
//! Changed here: expectations of `tls`.

use std::io::Write;

use rustls::{
    AlertDescription, InvalidMessage, SupportedProtocolVersion,
    version::{TLS12, TLS13},
};

use super::testing::{Configs, TestClient, configs, connected, sent, shake_hands};
use super::*;

const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

#[test]
fn messages_of_both_sides_arrive() {
    for version in VERSIONS {
        let (mut session, mut client) = connected(version);
        assert!(!session.is_resumed());
        let mut plaintext = Vec::new();
        let mut bytes = client.encrypted(b"question");
        assert_eq!(session.receive(&mut bytes, &mut plaintext), Ok(PeerState::Open));
        assert_eq!(plaintext, b"question");
        session.push(b"answer").expect("it is open");
        session.push(b" and more").expect("it is open");
        assert_eq!(client.receive(&sent(&mut session)), b"answer and more");
    }
}

#[test]
fn records_arrive_in_any_pieces() {
    for version in VERSIONS {
        for piece in [1, 2, 7, 1000, 16 << 10, 70_000] {
            let Configs { server, client } = configs(version);
            let mut session = TlsSession::new(server).expect("a configuration");
            let mut client = TestClient::new(client);
            let mut plaintext = Vec::new();
            let message = vec![b'x'; 100_000];
            let mut receive = |session: &mut TlsSession, mut bytes: Vec<u8>| {
                for part in bytes.chunks_mut(piece) {
                    session.receive(part, &mut plaintext).expect("valid records");
                }
            };
            while session.is_handshaking() || client.0.is_handshaking() {
                receive(&mut session, client.outgoing());
                client.receive(&sent(&mut session));
            }
            receive(&mut session, client.encrypted(&message));
            assert!(plaintext == message, "{piece}");
            assert!(session.partial.is_empty() && session.partial.capacity() == 0);
        }
    }
}

/// RFC 8446 §5.1: a message of the handshake may be divided over records.
#[test]
fn a_client_hello_in_many_records_is_read_and_one_without_end_is_refused() {
    let records = |message: &[u8]| -> Vec<u8> {
        let record = |part: &[u8]| [&[22, 3, 1, 0, part.len() as u8], part].concat();
        message.chunks(40).flat_map(record).collect()
    };
    let Configs { server, client } = configs(&TLS13);
    let mut session = TlsSession::new(server.clone()).expect("a configuration");
    let mut client = TestClient::new(client);
    let hello = client.outgoing();
    for byte in &mut records(&hello[5..]) {
        session.receive(std::slice::from_mut(byte), &mut Vec::new()).expect("a part of it");
        session.close(); // not before the end of the handshake
    }
    client.receive(&sent(&mut session));
    shake_hands(&mut session, &mut client);

    let mut session = TlsSession::new(server).expect("a configuration");
    let endless = [&[1, 0, 0xff, 0xff][..], &[0; 0xffff]].concat();
    let refused = records(&endless).chunks_mut(1000).find_map(|part| {
        assert!(session.partial.len() <= PARTIAL_BYTES_MAX);
        session.receive(part, &mut Vec::new()).err()
    });
    assert_eq!(refused, Some(Error::PeerSentOversizedRecord));
}

#[test]
fn a_full_record_fits_into_the_space_for_records() {
    for version in VERSIONS {
        let (mut session, mut client) = connected(version);
        let message = vec![b'x'; PLAINTEXT_BYTES_MAX];
        let mut records = vec![0; RECORDS_BYTES_MAX];
        let bytes = session.encrypt(&message, &mut records).expect("it fits");
        assert!(client.receive(&records[..bytes]) == message);
    }
}

#[test]
fn what_a_socket_did_not_take_is_sent_first() {
    let (mut session, mut client) = connected(&TLS13);
    let mut records = vec![0; RECORDS_BYTES_MAX];
    let bytes = session.encrypt(b"first", &mut records).expect("it is open");
    let received = client.receive(&records[..3]);
    session.keep_unsent(&records[3..bytes]);
    session.push(b" second").expect("it is open");
    session.advance(2);
    assert_eq!(session.unsent()[..4], records[5..9]);
    assert_eq!((received, client.receive(&records[3..5])), (Vec::new(), Vec::new()));
    assert_eq!(client.receive(&sent(&mut session)), b"first second");
    assert_eq!(session.outgoing.capacity(), 0, "the memory is given back");
}

#[test]
fn close_notify_of_the_peer_ends_its_side_and_later_bytes_are_ignored() {
    for version in VERSIONS {
        let (mut session, mut client) = connected(version);
        let mut bytes = client.encrypted(b"last");
        client.0.send_close_notify();
        bytes.extend(client.outgoing());
        bytes.extend(b"anything");
        let mut plaintext = Vec::new();
        assert_eq!(session.receive(&mut bytes, &mut plaintext), Ok(PeerState::Closed));
        assert_eq!(session.receive(&mut b"more".to_vec(), &mut plaintext), Ok(PeerState::Closed));
        assert_eq!(plaintext, b"last");
        session.push(b"answer").expect("our side is open");
        session.close();
        session.close();
        client.0.read_tls(&mut sent(&mut session).as_slice()).expect("memory is readable");
        let state = client.0.process_new_packets().expect("valid records");
        assert!(state.peer_has_closed() && state.plaintext_bytes_to_read() == 6);
    }
}

#[test]
fn garbage_is_answered_with_an_alert() {
    let Configs { server, .. } = configs(&TLS13);
    let mut session = TlsSession::new(server).expect("a configuration");
    let result = session.receive(&mut b"GET / HTTP/1.1\r\n\r\n".to_vec(), &mut Vec::new());
    assert_eq!(result, Err(Error::InvalidMessage(InvalidMessage::InvalidContentType)));
    // Alert, TLS 1.2, two bytes: fatal, decode_error.
    assert_eq!(session.unsent(), [21, 3, 3, 0, 2, 2, 50]);
}

#[test]
fn a_changed_record_ends_the_session_with_bad_record_mac() {
    for version in VERSIONS {
        let (mut session, mut client) = connected(version);
        let mut bytes = client.encrypted(b"question");
        *bytes.last_mut().expect("a record") ^= 1;
        let mut plaintext = Vec::new();
        assert_eq!(session.receive(&mut bytes, &mut plaintext), Err(Error::DecryptError));
        assert_eq!(plaintext, b"");
        client.0.read_tls(&mut session.unsent()).expect("memory is readable");
        let alert = client.0.process_new_packets().expect_err("an alert");
        assert_eq!(alert, Error::AlertReceived(AlertDescription::BadRecordMac));
        session.close(); // nothing follows a fatal alert
    }
}

/// Found by the fuzz target `tls_session`: the next bytes were read as if nothing had happened, or failed an assertion of rustls.
#[test]
fn an_error_stays_and_nothing_follows_its_alert() {
    let bad_records = [&[9, 3, 3, 0, 1, 0][..], &[20, 3, 3, 0, 0], &[22, 3, 3, 0, 1, 0]];
    for (version, bad_record) in
        VERSIONS.into_iter().flat_map(|it| bad_records.map(|bad| (it, bad)))
    {
        let (mut session, mut client) = connected(version);
        let mut plaintext = Vec::new();
        let failure = session.receive(&mut bad_record.to_vec(), &mut plaintext);
        assert!(failure.is_err());
        let alert = sent(&mut session);
        for mut bytes in [client.encrypted(b"question"), bad_record.to_vec(), Vec::new()] {
            assert_eq!(session.receive(&mut bytes, &mut plaintext), failure);
        }
        assert_eq!(session.push(b"answer").err(), failure.err());
        session.close();
        assert!(!alert.is_empty() && session.unsent().is_empty() && plaintext.is_empty());
    }
}

#[test]
fn a_record_longer_than_allowed_is_refused_before_it_has_arrived() {
    let (mut session, _) = connected(&TLS13);
    let mut head = [23, 3, 3, 0xff, 0xff];
    assert!(session.receive(&mut head, &mut Vec::new()).is_err());
}

#[test]
fn the_peer_may_update_its_keys_and_ask_for_ours() {
    let (mut session, mut client) = connected(&TLS13);
    for round in 0..3 {
        client.0.refresh_traffic_keys().expect("TLS 1.3");
        let mut plaintext = Vec::new();
        let mut bytes = client.encrypted(b"question");
        assert_eq!(session.receive(&mut bytes, &mut plaintext), Ok(PeerState::Open));
        assert_eq!(plaintext, b"question", "{round}");
        session.push(b"answer").expect("it is open");
        assert_eq!(client.receive(&sent(&mut session)), b"answer", "{round}");
    }
}

#[test]
fn key_updates_without_end_are_refused() {
    let (mut session, mut client) = connected(&TLS13);
    let refused = (0..100).find_map(|_| {
        client.0.refresh_traffic_keys().expect("TLS 1.3");
        session.receive(&mut client.outgoing(), &mut Vec::new()).err()
    });
    assert!(refused.is_some());
}

#[test]
fn a_key_update_in_two_pieces_does_not_disturb_messages_in_between() {
    let (mut session, mut client) = connected(&TLS13);
    client.0.refresh_traffic_keys().expect("TLS 1.3");
    let mut bytes = client.outgoing();
    let (first, second) = bytes.split_at_mut(9);
    session.receive(first, &mut Vec::new()).expect("an incomplete record");
    session.push(b"answer").expect("it is open");
    assert_eq!(client.receive(&sent(&mut session)), b"answer");
    session.receive(second, &mut Vec::new()).expect("the rest");
    let mut plaintext = Vec::new();
    session.receive(&mut client.encrypted(b"question"), &mut plaintext).expect("new keys");
    assert_eq!(plaintext, b"question");
}

/// RFC 5246 §7.2.2: no_renegotiation. rustls sends that once; the second attempt ends the session.
#[test]
fn renegotiation_is_refused() {
    let (mut session, _) = connected(&TLS12);
    // A record of type handshake that is not encrypted with the keys of the session.
    let mut hello = [22, 3, 3, 0, 4, 1, 0, 0, 0];
    assert!(session.receive(&mut hello, &mut Vec::new()).is_err());
    assert!(!session.unsent().is_empty(), "with an alert");
}

#[test]
fn a_session_is_resumed_with_a_ticket() {
    for version in VERSIONS {
        let Configs { server, client } = configs(version);
        for is_resumed in [false, true, true] {
            let mut session = TlsSession::new(server.clone()).expect("a configuration");
            shake_hands(&mut session, &mut TestClient::new(client.clone()));
            assert_eq!(session.is_resumed(), is_resumed);
        }
    }
}

#[test]
fn a_session_at_rest_holds_no_buffers() {
    for version in VERSIONS {
        let Configs { server, client } = configs(version);
        let mut client = TestClient::new(client);
        let mut kept = None;
        allocation_counter::measure(|| {
            let mut session = TlsSession::new(server).expect("a configuration");
            shake_hands(&mut session, &mut client);
            let mut bytes = client.encrypted(&[b'x'; 50_000]);
            session.receive(&mut bytes, &mut Vec::new()).expect("valid records");
            session.push(&[b'x'; 10_000]).expect("it is open");
            client.receive(&sent(&mut session));
            kept = Some(session);
        });
        let session = kept.take().expect("just made");
        let freed = -allocation_counter::measure(|| drop(session)).bytes_current;
        // 2.3 KB, and 1.3 KB for the keys of both directions in the memory of aws-lc, which is not counted here.
        assert!((1000..2500).contains(&freed), "{freed} bytes");
    }
}

#[test]
fn no_bytes_of_a_peer_cause_a_panic() {
    use proptest::prelude::*;
    let Configs { server, client } = configs(&TLS13);
    proptest!(|(cut in 0usize..2000, noise in prop::collection::vec(any::<u8>(), 0..200), after in any::<bool>())| {
        let mut session = TlsSession::new(server.clone()).expect("a configuration");
        let mut client = TestClient::new(client.clone());
        if after {
            shake_hands(&mut session, &mut client);
            client.0.writer().write_all(b"question").expect("it is open");
        }
        let mut bytes = client.outgoing();
        bytes.truncate(cut);
        bytes.extend(noise);
        for part in bytes.chunks_mut(100) {
            if session.receive(part, &mut Vec::new()).is_err() {
                break;
            }
        }
        session.close();
    });
}
