//! Tests of the lines that a failed order writes.
//! In: a certificate or none, errors, the time → out: lines of the log.
//! Uses a worker without a task. Never: an authority; orders are made with one in `acme::tests`.
//! What an operator reads is a test here.

use super::*;
use crate::acme::{
    schedule::ChallengeKind,
    testing::{logged, self_signed},
};

fn worker(names: &[Arc<str>]) -> Worker {
    let tls = crate::Tls::new(&crate::TlsOptions::default()).expect("no option is set");
    Worker {
        directory_url: "https://ca.example/dir".to_owned(),
        email: String::new(),
        client: AuthorityClient::new(tls),
        cache: Cache::open("", "").expect("no folder"),
        schedule: OrderSchedule::new(names.iter().cloned(), &[ChallengeKind::TlsAlpn]),
        certificates: Arc::new(Certificates::new(names.iter().cloned())),
        challenge: Arc::default(),
        account: None,
    }
}

#[test]
fn a_failure_names_its_consequence_the_remedy_and_the_next_attempt() {
    let name: Arc<str> = "a.example".into();
    let mut worker = worker(std::slice::from_ref(&name));
    let error = || OrderError::Challenge(ChallengeKind::TlsAlpn, "connection refused".to_owned());
    let now = SystemTime::now();
    let check = |worker: &mut Worker, now, level: &str, consequence: &str| {
        let ((), lines) = logged(|| worker.fail(&name, &error(), now));
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(line.starts_with(level), "{line}");
        let cause = "error=tls-alpn-01 was not accepted: connection refused";
        for part in [consequence, cause, "name=\"a.example\"", "port 443", "next_attempt="] {
            assert!(line.contains(part), "{part}: {line}");
        }
    };
    check(&mut worker, now, "ERROR", "TLS handshakes for this name fail");
    let (key, chain) = self_signed(&name);
    let certificate =
        Certificate::from_pem(&name, &format!("{key}{chain}")).expect("a certificate");
    let end = certificate.validity.not_after;
    worker.certificates.set(&name, certificate);
    check(
        &mut worker,
        end - Duration::from_secs(3 * 86_400),
        "WARN",
        "the present one is still valid",
    );
    check(&mut worker, end, "ERROR", "the present one has expired");
}

#[test]
fn times_are_written_for_people() {
    let check = |seconds, expect: &str| assert_eq!(period(Duration::from_secs(seconds)), expect);
    check(0, "0 seconds");
    check(119, "119 seconds");
    check(120, "2 minutes");
    check(7199, "119 minutes");
    check(7200, "2 hours");
    check(90 * 86_400 - 1, "89 days");
}
