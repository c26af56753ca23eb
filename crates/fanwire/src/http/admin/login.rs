//! Logins of the admin page: passwords, tokens, and addresses that guess.
//! In: a password or a token, an address, the Unix time → out: a token, a role, or why not.
//! Uses HMAC-SHA256 and one lock. Never: a clock, HTTP.
//! Changed here: how long a login lasts, and how long a wrong password keeps an address away.

use std::collections::HashMap;
use std::net::IpAddr;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fanwire_config::AdminOptions;
use parking_lot::Mutex;

/// The accounts of the page.
pub(super) struct Logins {
    accounts: Vec<Account>,
    failures: Mutex<HashMap<IpAddr, Failures>>,
}

/// What a login permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Everything,
    Reading,
}

struct Account {
    role: Role,
    /// Signs tokens; it is made of the secret, the role and the password, so that another one of these ends all logins.
    key: hmac::Key,
    password: hmac::Tag,
}

/// Wrong passwords of one address.
#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    /// Unix second before which the address may not try again.
    blocked_until: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum LoginError {
    WrongPassword,
    /// Too many wrong passwords; seconds to wait.
    TryLater(u64),
}

impl Logins {
    pub(super) fn new(options: &AdminOptions) -> Self {
        let passwords =
            [(Role::Everything, &options.password), (Role::Reading, &options.read_only_password)];
        let is_usable = |password: &str| !password.is_empty() && !options.secret.is_empty();
        let usable = passwords.into_iter().filter(|(_, password)| is_usable(password));
        let accounts = usable.map(|(role, password)| Account::new(role, &options.secret, password));
        Self { accounts: accounts.collect(), failures: Mutex::default() }
    }

    /// A token for the password.
    ///
    /// # Errors
    /// The password is wrong, or the address has tried too many.
    pub(super) fn log_in(
        &self,
        password: &str,
        peer: IpAddr,
        unix: u64,
    ) -> Result<String, LoginError> {
        let mut failures = self.failures.lock();
        if let Some(blocked) = failures.get(&peer).filter(|it| it.blocked_until > unix) {
            return Err(LoginError::TryLater(blocked.blocked_until - unix));
        }
        let has_password = |account: &&Account| account.has_password(password);
        if let Some(account) = self.accounts.iter().find(has_password) {
            failures.remove(&peer);
            return Ok(account.token(unix + LOGIN_SECONDS));
        }
        if failures.len() >= ADDRESSES_MAX {
            failures.retain(|_, it| it.blocked_until + FORGOTTEN_AFTER > unix);
        }
        if failures.len() < ADDRESSES_MAX || failures.contains_key(&peer) {
            let entry = failures.entry(peer).or_insert(Failures { count: 0, blocked_until: unix });
            entry.count += 1;
            let pause = 1_u64 << entry.count.saturating_sub(FREE_FAILURES).min(6);
            entry.blocked_until = unix + if entry.count < FREE_FAILURES { 0 } else { pause };
        }
        Err(LoginError::WrongPassword)
    }

    /// What a token permits; `None` for one that is not ours, or has ended.
    pub(super) fn role(&self, token: &str, unix: u64) -> Option<Role> {
        let (end, signature) = token.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let signed =
            |account: &&Account| hmac::verify(&account.key, end.as_bytes(), &signature).is_ok();
        let account = self.accounts.iter().find(signed)?;
        (end.parse::<u64>().ok()? > unix).then_some(account.role)
    }
}

impl Account {
    fn new(role: Role, secret: &str, password: &str) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let text = format!("{role:?}\n{password}");
        let key = hmac::sign(&secret, text.as_bytes());
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_ref());
        let password = hmac::sign(&key, password.as_bytes());
        Self { role, key, password }
    }

    /// In a time that does not depend on how much of it is right.
    fn has_password(&self, password: &str) -> bool {
        hmac::verify(&self.key, password.as_bytes(), self.password.as_ref()).is_ok()
    }

    fn token(&self, end: u64) -> String {
        let end = end.to_string();
        let signature = hmac::sign(&self.key, end.as_bytes());
        format!("{end}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

const LOGIN_SECONDS: u64 = 30 * 86_400;
/// Wrong passwords without a pause.
const FREE_FAILURES: u32 = 5;
/// Addresses whose failures are counted; a wrong password of another one costs it nothing.
const ADDRESSES_MAX: usize = 10_000;
/// Seconds after a pause.
const FORGOTTEN_AFTER: u64 = 600;

#[cfg(test)]
mod tests {
    use super::*;

    fn logins(password: &str, secret: &str) -> Logins {
        Logins::new(&AdminOptions {
            password: password.into(),
            read_only_password: "schau nur".into(),
            secret: secret.into(),
            ..AdminOptions::default()
        })
    }

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn a_password_gives_a_token_of_its_role() {
        let logins = logins("grüße €", "secret");
        let token = logins.log_in("grüße €", PEER, 1_000).expect("the password");
        assert_eq!(logins.role(&token, 1_000), Some(Role::Everything));
        assert_eq!(logins.role(&token, 1_000 + LOGIN_SECONDS), None, "it has ended");
        let token = logins.log_in("schau nur", PEER, 1_000).expect("the password");
        assert_eq!(logins.role(&token, 1_000), Some(Role::Reading));
    }

    #[test]
    fn other_tokens_permit_nothing() {
        let token = logins("a", "secret").log_in("a", PEER, 0).expect("the password");
        assert_eq!(logins("b", "secret").role(&token, 0), None, "of another password");
        assert_eq!(logins("a", "other").role(&token, 0), None, "of another secret");
        let logins = logins("a", "secret");
        let (_, signature) = token.split_once('.').expect("two parts");
        for wrong in
            ["", ".", "1.", ".x", "99999999999", &format!("9{token}"), &format!("1.{signature}")]
        {
            assert_eq!(logins.role(wrong, 0), None, "{wrong}");
        }
    }

    #[test]
    fn nobody_logs_in_without_a_password_or_a_secret() {
        assert_eq!(logins("", "secret").log_in("", PEER, 0), Err(LoginError::WrongPassword));
        assert_eq!(logins("a", "").log_in("a", PEER, 0), Err(LoginError::WrongPassword));
    }

    #[test]
    fn an_address_that_guesses_waits_longer_and_longer_and_others_do_not() {
        let logins = logins("right", "secret");
        let other = IpAddr::from([10, 0, 0, 1]);
        let mut tried = 0;
        for unix in 0..1_000 {
            if logins.log_in("wrong", PEER, unix) == Err(LoginError::WrongPassword) {
                tried += 1;
            }
        }
        assert!((15..40).contains(&tried), "{tried} of 1,000 guesses were looked at");
        assert!(matches!(logins.log_in("right", PEER, 1_000), Err(LoginError::TryLater(1..=64))));
        assert!(logins.log_in("right", other, 1_000).is_ok());
        assert!(logins.log_in("right", PEER, 1_100).is_ok());
        assert!(logins.log_in("wrong", PEER, 1_100).is_err());
        assert!(logins.log_in("right", PEER, 1_100).is_ok(), "a login ends the count");
    }

    #[test]
    fn ten_thousand_wrong_passwords_of_an_address_cost_the_others_nothing() {
        let logins = logins("right", "secret");
        let looked_at = (0..10_000_u64)
            .filter(|guess| {
                let wrong = logins.log_in("wrong", PEER, guess / 100);
                wrong == Err(LoginError::WrongPassword)
            })
            .count();
        assert!(looked_at < 20, "{looked_at} of 10,000 guesses in 100 s were looked at");
        for address in 1..200_u8 {
            let other = IpAddr::from([10, 0, 0, address]);
            assert!(logins.log_in("right", other, 100).is_ok());
        }
    }

    #[test]
    fn addresses_are_bounded() {
        let logins = logins("right", "secret");
        for number in 0..20_000_u32 {
            let peer = IpAddr::from(number.to_be_bytes());
            assert_eq!(logins.log_in("wrong", peer, 0), Err(LoginError::WrongPassword));
        }
        assert_eq!(logins.failures.lock().len(), ADDRESSES_MAX);
        assert_eq!(logins.log_in("wrong", PEER, 10_000), Err(LoginError::WrongPassword));
        assert_eq!(logins.failures.lock().len(), 1, "old ones are forgotten");
    }
}
