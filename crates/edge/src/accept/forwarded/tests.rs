//! Tests of `forwarded`: which address is believed, and the headers of the PROXY protocol.
//! In: peers, headers, bytes → out: addresses.
//! Uses slices as streams; never a socket.
//! Changed here: tests of `forwarded.rs`.

use axum::http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn trusted() -> TrustedProxies {
    let networks = ["10.0.0.0/8", "fd00::/8"].map(str::to_owned);
    TrustedProxies { networks: Networks::parse(&networks).expect("networks"), proxy_protocol: true }
}

fn check(peer: &str, headers: &[(&str, &str)], expect: Option<&str>) {
    let peer = SocketAddr::new(peer.parse().expect("an address"), 1234);
    let headers = headers.iter().map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        (name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"))
    });
    let headers = headers.fold(HeaderMap::new(), |mut all, (name, value)| {
        all.append(name, value);
        all
    });
    let client = trusted().client_of(peer, &headers).map(|client| client.to_string());
    assert_eq!(client.as_deref(), expect, "{headers:?}");
}

#[test]
fn a_trusted_proxy_says_who_the_client_is() {
    let xff = "x-forwarded-for";
    check("10.0.0.1", &[(xff, "192.0.2.1")], Some("192.0.2.1:0"));
    check("10.0.0.1", &[(xff, "1.1.1.1, 192.0.2.1, 10.2.2.2")], Some("192.0.2.1:0"));
    check("10.0.0.1", &[(xff, "1.1.1.1"), (xff, "192.0.2.1")], Some("192.0.2.1:0"));
    check("10.0.0.1", &[(xff, "192.0.2.1:80")], Some("192.0.2.1:80"));
    check("fd00::1", &[(xff, "[2001:db8::1]:80")], Some("[2001:db8::1]:80"));
    check("fd00::1", &[(xff, "2001:db8::1")], Some("[2001:db8::1]:0"));
    check("10.0.0.1", &[(xff, "10.1.1.1, 10.2.2.2")], Some("10.1.1.1:0"));
    let forwarded = "for=1.1.1.1, for=\"[2001:db8::1]:47\";proto=https;by=10.0.0.1";
    check("10.0.0.1", &[("forwarded", forwarded)], Some("[2001:db8::1]:47"));
    check("10.0.0.1", &[("forwarded", "proto=http; For=192.0.2.1")], Some("192.0.2.1:0"));
}

#[test]
fn others_are_not_believed() {
    check("192.0.2.9", &[("x-forwarded-for", "1.1.1.1")], None);
    check("10.0.0.1", &[], None);
    check("10.0.0.1", &[("x-forwarded-for", "1.1.1.1"), ("forwarded", "for=2.2.2.2")], None);
    for text in
        ["", "unknown", "_hidden", "1.1.1.1.1", "1.1.1.1, unknown", "ä", &"x".repeat(1 << 20)]
    {
        check("10.0.0.1", &[("x-forwarded-for", text)], None);
    }
    check("10.0.0.1", &[("forwarded", "for=_hidden, for=unknown")], None);
    check("10.0.0.1", &[("x-forwarded-for", "1.1.1.1, unknown, 10.3.3.3")], Some("10.3.3.3:0"));
}

async fn read(bytes: &[u8]) -> Result<(Option<String>, usize), ErrorKind> {
    let mut rest = bytes;
    let client = read_proxy_header(&mut rest).await.map_err(|error| error.kind())?;
    Ok((client.map(|client| client.to_string()), rest.len()))
}

fn version_2(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let length = u16::try_from(addresses.len()).expect("short").to_be_bytes();
    [SIGNATURE.as_slice(), &[command, family], &length, addresses, b"GET "].concat()
}

#[tokio::test]
async fn both_versions_of_the_proxy_protocol_are_read_and_nothing_behind_them() {
    let client = |text: &str| Ok((Some(text.to_owned()), 4));
    assert_eq!(
        read(b"PROXY TCP4 192.0.2.1 10.0.0.1 5000 80\r\nGET ").await,
        client("192.0.2.1:5000")
    );
    assert_eq!(
        read(b"PROXY TCP6 2001:db8::1 fd00::1 5000 80\r\nGET ").await,
        client("[2001:db8::1]:5000")
    );
    assert_eq!(read(b"PROXY UNKNOWN\r\nGET ").await, Ok((None, 4)));
    let v4 = [192, 0, 2, 1, 10, 0, 0, 1, 0x13, 0x88, 0, 80];
    assert_eq!(read(&version_2(0x21, 0x11, &v4)).await, client("192.0.2.1:5000"));
    assert_eq!(
        read(&version_2(0x21, 0x11, &[&v4[..], b"extension"].concat())).await,
        client("192.0.2.1:5000")
    );
    let v6 = [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[1], &[0; 16], &[0x13, 0x88, 0, 80]].concat();
    assert_eq!(read(&version_2(0x21, 0x21, &v6)).await, client("[2001:db8::1]:5000"));
    assert_eq!(read(&version_2(0x20, 0, &[])).await, Ok((None, 4)));
    assert_eq!(read(&version_2(0x21, 0x31, &[0; 216])).await, Ok((None, 4)));
}

#[tokio::test]
async fn other_bytes_are_no_proxy_header() {
    let long = format!("PROXY TCP4 {}\r\n", "1".repeat(200));
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"PROXY TCP4 2001:db8::1 fd00::1 1 2\r\n",
        b"PROXY TCP4 a b 1 2\r\n",
        b"PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n",
        b"PROXY TCP4 1.1.1.1 2.2.2.2 70000 1\r\n",
        long.as_bytes(),
        &version_2(0x31, 0x11, &[0; 12]),
        &version_2(0x21, 0x11, &[0; 3]),
        &version_2(0x21, 0x11, &vec![0; ADDRESSES_BYTES_MAX + 1]),
    ] {
        assert_eq!(read(bytes).await, Err(ErrorKind::InvalidData), "{bytes:?}");
    }
    assert_eq!(read(b"PROXY TCP4").await, Err(ErrorKind::UnexpectedEof));
}

proptest! {
    #[test]
    fn no_bytes_of_a_peer_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), version in 0..3_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let start: &[u8] = [&b""[..], b"PROXY TCP4 ", SIGNATURE][version];
        let _ = runtime.block_on(read(&[start, &bytes].concat()));
        let value = HeaderValue::from_bytes(&bytes);
        if let Ok(value) = value {
            for name in [X_FORWARDED_FOR, FORWARDED] {
                let headers = HeaderMap::from_iter([(name, value.clone())]);
                trusted().client_of(SocketAddr::from(([10, 0, 0, 1], 1)), &headers);
            }
        }
    }
}
