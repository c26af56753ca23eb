//! Tests of the TLS of a listener: forms of options, mistakes in them, warnings, and what a reload replaces.
//! In: certificates of rcgen as text, base64 and files → out: errors by option, warnings.
//! Uses the file system; never a socket. Handshakes are in `fanwire/tests/it/tls.rs`.
//! Changed here: expectations of `tls::server` and `tls::pem`.

use base64::{Engine, engine::general_purpose::STANDARD};
use fanwire_testing::Folder;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};

use super::*;

const DAY: u64 = 86_400;

/// A certificate with its key.
struct Pair {
    certificate: Certificate,
    key: KeyPair,
}

impl Pair {
    /// Signed by `issuer`, or by itself; valid in the years 2020 and 2021.
    fn new(name: &str, issuer: Option<&Issuer<'_, KeyPair>>) -> Self {
        let params = params(name);
        let key = KeyPair::generate().expect("random numbers");
        let certificate = match issuer {
            Some(issuer) => params.signed_by(&key, issuer),
            None => params.self_signed(&key),
        };
        Self { certificate: certificate.expect("a certificate"), key }
    }

    fn options(&self) -> ServerTlsOptions {
        ServerTlsOptions {
            enabled: true,
            cert_pem: self.certificate.pem(),
            key_pem: self.key.serialize_pem().into(),
            client_ca_pem: String::new(),
        }
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2022, 1, 1));
    params
}

const END: u64 = 1_640_995_200;

fn fault(options: &ServerTlsOptions) -> String {
    let Err(error) = Credentials::load(options) else { panic!("these are wrong") };
    error.to_string()
}

#[test]
fn options_are_text_or_base64_or_the_name_of_a_file() {
    let pair = Pair::new("localhost", None);
    let options = pair.options();
    let folder = Folder::new("tls");
    let cert = folder.write("cert.pem", &options.cert_pem);
    let key = folder.write("key.pem", &options.key_pem);
    let encoded = |text: &str| {
        let lines: Vec<_> =
            STANDARD.encode(text).into_bytes().chunks(76).map(<[u8]>::to_vec).collect();
        String::from_utf8(lines.join(&b'\n')).expect("text") + "\n"
    };
    for (cert_pem, key_pem) in [
        (options.cert_pem.clone(), options.key_pem.to_string()),
        (encoded(&options.cert_pem), encoded(&options.key_pem)),
        (cert, key),
    ] {
        let options = ServerTlsOptions { cert_pem, key_pem: key_pem.into(), ..pair.options() };
        let credentials = Credentials::load(&options).expect("a pair");
        assert_eq!(credentials.certified.cert, [pair.certificate.der().clone()]);
    }
}

#[test]
fn wrong_options_are_named_with_what_would_be_right_and_without_the_key() {
    let (own, other) = (Pair::new("localhost", None), Pair::new("localhost", None));
    let options = own.options();
    let pem = "expected PEM, base64 of PEM, or the name of a file with it";
    let check = |options: ServerTlsOptions, expected: &str| assert_eq!(fault(&options), expected);
    check(
        ServerTlsOptions { cert_pem: "/no/such.pem".to_owned(), ..options.clone() },
        &format!(
            "cert_pem: \"/no/such.pem\" cannot be read (No such file or directory (os error 2)), {pem}"
        ),
    );
    check(
        ServerTlsOptions { cert_pem: options.key_pem.to_string(), ..options.clone() },
        &format!("cert_pem: it contains no certificate, {pem}"),
    );
    check(
        ServerTlsOptions { key_pem: options.cert_pem.clone().into(), ..options.clone() },
        &format!("key_pem: it contains no private key, {pem}"),
    );
    check(
        ServerTlsOptions { key_pem: "c2VjcmV0".into(), ..options.clone() },
        &format!("key_pem: No such file or directory (os error 2), {pem}"),
    );
    let encrypted = options.key_pem.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    check(
        ServerTlsOptions { key_pem: encrypted.into(), ..options.clone() },
        "key_pem: the private key is encrypted, expected a key without a passphrase, as `openssl pkey` writes it",
    );
    check(
        ServerTlsOptions { key_pem: other.options().key_pem, ..options.clone() },
        "key_pem: it is not the key of the certificate in cert_pem, expected the private key that this certificate was \
         made for",
    );
    let chain = other.certificate.pem() + &own.certificate.pem();
    check(
        ServerTlsOptions { cert_pem: chain, ..options.clone() },
        "cert_pem: the certificate of key_pem is number 2 in it, expected the server's own certificate first, then the \
         one that signed it, and so on",
    );
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned();
    let wrong = fault(&ServerTlsOptions { cert_pem: broken.clone(), ..options.clone() });
    assert!(wrong.starts_with("cert_pem: ") && wrong.ends_with(pem), "{wrong}");
    let wrong = fault(&ServerTlsOptions { client_ca_pem: broken, ..options });
    assert!(wrong.starts_with("client_ca_pem: ") && wrong.ends_with(pem), "{wrong}");
}

#[test]
fn certificates_that_ended_or_end_soon_are_warned_about() {
    let credentials = Credentials::load(&Pair::new("localhost", None).options()).expect("a pair");
    let check =
        |now: u64, expected: &[&str]| assert_eq!(credentials.warnings(now), expected, "{now}");
    check(END - 14 * DAY, &[]);
    let soon = "the certificate expires on 2022-01-01, in 13 days; renew it and send SIGHUP";
    check(END - 14 * DAY + 1, &[soon]);
    check(END + 1, &["the certificate expired on 2022-01-01, clients refuse it"]);
    check(1_500_000_000, &["the certificate is not valid before 2020-01-01, clients refuse it"]);
}

#[test]
fn a_certificate_for_six_days_is_warned_about_in_its_last_hours() {
    let mut params = params("localhost");
    (params.not_before, params.not_after) =
        (date_time_ymd(2021, 12, 26), date_time_ymd(2022, 1, 1));
    let key = KeyPair::generate().expect("random numbers");
    let certificate = params.self_signed(&key).expect("a certificate");
    let credentials = Credentials::load(&Pair { certificate, key }.options()).expect("a pair");
    assert!(credentials.warnings(END - DAY).is_empty());
    assert_eq!(credentials.warnings(END - DAY / 2).len(), 1);
}

#[test]
fn a_chain_out_of_order_is_warned_about() {
    let root = Pair::new("root", None);
    let issuer = Issuer::new(params("root"), root.key);
    let between = Pair::new("between", Some(&issuer));
    let between_issuer = Issuer::new(params("between"), between.key);
    let own = Pair::new("localhost", Some(&between_issuer));
    let warnings = |chain: &[&Certificate]| {
        let cert_pem = chain.iter().map(|certificate| certificate.pem()).collect();
        let options = ServerTlsOptions { cert_pem, ..own.options() };
        Credentials::load(&options).expect("a chain").warnings(END - 100 * DAY)
    };
    let [own_one, between, root] = [&own.certificate, &between.certificate, &root.certificate];
    assert!(warnings(&[own_one, between, root]).is_empty());
    assert!(warnings(&[own_one, between]).is_empty());
    for wrong in [&[own_one, root, between][..], &[own_one, root]] {
        let found = warnings(wrong);
        assert!(found.len() == 1 && found[0].contains("not in order"), "{found:?}");
    }
}

#[test]
fn tickets_stay_valid_when_only_the_certificate_is_replaced() {
    let (first, second) = (Pair::new("localhost", None), Pair::new("localhost", None));
    let load = |options: &ServerTlsOptions| Credentials::load(options).expect("a pair");
    let tls = ServerTls::new("http_server.tls", load(&first.options()));
    let before = tls.config();
    assert!(tls.replace(load(&second.options())));
    assert_eq!(
        tls.certificates.as_ref().expect("from files").current().cert,
        [second.certificate.der().clone()]
    );
    assert!(!tls.replace(load(&second.options())), "it is the same");
    assert!(Arc::ptr_eq(&before, &tls.config()));
    let authorities =
        ServerTlsOptions { client_ca_pem: first.certificate.pem(), ..second.options() };
    tls.replace(load(&authorities));
    assert!(!Arc::ptr_eq(&before.ticketer, &tls.config().ticketer), "clients are verified again");
    assert_eq!(tls.end().expect("a certificate").seconds, END);
}
