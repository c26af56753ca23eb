//! Logins of the admin page: passwords, tokens, and networks that guess.
//! In: a password or a token, an address, the Unix time → out: a token, a role, or why not.
//! Uses HMAC-SHA256 and one lock. Never: a clock, HTTP.
//! Changed here: how long a login lasts, and how long wrong passwords keep a network, or all of them, away.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fanwire_config::AdminOptions;
use parking_lot::Mutex;

/// The accounts of the page.
pub(super) struct Logins {
    accounts: Vec<Account>,
    guesses: Mutex<Guesses>,
}

/// The rights of a login.
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

/// Wrong passwords.
#[derive(Default)]
struct Guesses {
    networks: HashMap<IpAddr, Failures>,
    /// The networks that logged in last. The common limit does not apply to them, so that guesses of others lock no operator out.
    logged_in: VecDeque<IpAddr>,
    /// The Unix second at which the common limit is as it was at first; each guess adds one second.
    paid_until: u64,
}

/// Wrong passwords of one network.
#[derive(Clone, Copy, Default)]
struct Failures {
    count: u32,
    /// Unix second before which the network may not try again.
    blocked_until: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum LoginError {
    WrongPassword,
    /// Too many wrong passwords of the network, or of all; seconds to wait.
    TryLater(u64),
}

impl Logins {
    pub(super) fn new(options: &AdminOptions) -> Self {
        let passwords =
            [(Role::Everything, &options.password), (Role::Reading, &options.read_only_password)];
        let is_usable = |password: &str| !password.is_empty() && !options.secret.is_empty();
        let usable = passwords.into_iter().filter(|(_, password)| is_usable(password));
        let accounts = usable.map(|(role, password)| Account::new(role, &options.secret, password));
        Self { accounts: accounts.collect(), guesses: Mutex::default() }
    }

    /// A token for the password.
    ///
    /// # Errors
    /// The password is wrong, or there were too many wrong ones.
    pub(super) fn log_in(
        &self,
        password: &str,
        peer: IpAddr,
        unix: u64,
    ) -> Result<String, LoginError> {
        let network = network(peer);
        let mut guesses = self.guesses.lock();
        guesses.check(network, unix)?;
        let has_password = |account: &&Account| account.has_password(password);
        let Some(account) = self.accounts.iter().find(has_password) else {
            guesses.fail(network, unix);
            return Err(LoginError::WrongPassword);
        };
        guesses.succeed(network);
        Ok(account.token(unix + LOGIN_SECONDS))
    }

    /// Returns the rights of a token; `None` for one that is not ours, or has ended.
    pub(super) fn role(&self, token: &str, unix: u64) -> Option<Role> {
        let (end, signature) = token.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let signed =
            |account: &&Account| hmac::verify(&account.key, end.as_bytes(), &signature).is_ok();
        let account = self.accounts.iter().find(signed)?;
        (end.parse::<u64>().ok()? > unix).then_some(account.role)
    }
}

impl Guesses {
    fn check(&self, network: IpAddr, unix: u64) -> Result<(), LoginError> {
        let own = self.networks.get(&network).map_or(0, |failures| failures.blocked_until);
        let common = if self.logged_in.contains(&network) {
            0
        } else {
            (self.paid_until + 1).saturating_sub(GUESSES_AT_ONCE)
        };
        match own.max(common).saturating_sub(unix) {
            0 => Ok(()),
            seconds => Err(LoginError::TryLater(seconds)),
        }
    }

    fn fail(&mut self, network: IpAddr, unix: u64) {
        if !self.logged_in.contains(&network) {
            self.paid_until = self.paid_until.max(unix) + 1;
        }
        self.networks.retain(|_, it| it.blocked_until + FORGOTTEN_AFTER > unix);
        let failures = self.networks.entry(network).or_default();
        failures.count += 1;
        let pause = 1_u64 << failures.count.saturating_sub(FREE_FAILURES).min(6);
        failures.blocked_until = unix + if failures.count < FREE_FAILURES { 0 } else { pause };
    }

    fn succeed(&mut self, network: IpAddr) {
        self.networks.remove(&network);
        self.logged_in.retain(|known| *known != network);
        self.logged_in.push_front(network);
        self.logged_in.truncate(LOGGED_IN_MAX);
    }
}

/// Returns the part of an address that counts as one peer: all of IPv4, 64 bits of IPv6, which a customer gets at least.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
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

    /// Compares in a time that does not depend on how much of the password is right.
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
/// Wrong passwords of all networks together, without those that logged in before; then there is one a second.
const GUESSES_AT_ONCE: u64 = 100;
/// Networks that are known from a login.
const LOGGED_IN_MAX: usize = 64;
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
    fn a_network_that_guesses_waits_longer_and_longer_and_others_do_not() {
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
    fn guesses_from_many_addresses_have_a_common_limit_that_locks_no_operator_out() {
        let logins = logins("right", "secret");
        let addresses = |count: u32| (0..count).map(|number| IpAddr::from(number.to_be_bytes()));
        assert!(logins.log_in("right", PEER, 0).is_ok());
        let looked_at = (0..100_u64)
            .flat_map(|unix| addresses(20_000).map(move |address| (address, unix)))
            .filter(|(address, unix)| {
                logins.log_in("wrong", *address, *unix) == Err(LoginError::WrongPassword)
            })
            .count();
        assert_eq!(looked_at, 199, "100 at once, then one a second");
        let kept = logins.guesses.lock().networks.len();
        assert!(kept <= looked_at, "{kept} networks for {looked_at} guesses");
        let other = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(logins.log_in("right", other, 99), Err(LoginError::TryLater(1)));
        assert!(logins.log_in("right", PEER, 99).is_ok(), "it has logged in before");
        assert!(logins.log_in("right", other, 100).is_ok());
        for address in addresses(200) {
            let _ = logins.log_in("wrong", address, 100);
        }
        assert!(logins.log_in("right", other, 100).is_ok(), "so has this one now");
        assert!(logins.log_in("wrong", other, 10_000).is_err());
        assert_eq!(logins.guesses.lock().networks.len(), 1, "old ones are forgotten");
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_so_is_an_address_in_both_forms() {
        let logins = logins("right", "secret");
        let mut tried = 0;
        for number in 0..1_000_u128 {
            let address = Ipv6Addr::from_bits((0x2001_0db8 << 96) + (number << 40));
            if logins.log_in("wrong", address.into(), 0) == Err(LoginError::WrongPassword) {
                tried += 1;
            }
        }
        assert_eq!(tried, FREE_FAILURES);
        let neighbour = Ipv6Addr::from_bits((0x2001_0db8 << 96) + (1 << 64));
        assert!(logins.log_in("right", neighbour.into(), 0).is_ok());
        assert!(logins.log_in("wrong", PEER, 0).is_err());
        let mapped: IpAddr = "::ffff:127.0.0.1".parse().expect("an address");
        assert_eq!(network(mapped), PEER);
    }

    #[test]
    fn the_last_logins_are_known_and_no_more() {
        let logins = logins("right", "secret");
        for number in 0..200_u8 {
            assert!(logins.log_in("right", IpAddr::from([10, 0, 0, number]), 0).is_ok());
            assert!(logins.log_in("right", PEER, 0).is_ok());
        }
        assert_eq!(logins.guesses.lock().logged_in.len(), LOGGED_IN_MAX);
    }
}
