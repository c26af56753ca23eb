//! Subjects whose events are logged: addresses that are some, and not too many.
//! In: a filled `Config` → out: remarks.
//! Uses values only. Never: looks a name up.
//! The lines are written in `node`.

use std::net::IpAddr;

use fanwire_policy::options::SUBJECTS_MAX;

use super::{Config, Remark, Severity};

pub(super) fn are_addresses(config: &Config) -> Vec<Remark> {
    let options = &config.log.debug_for;
    let is_wrong = |text: &&String| text.parse::<IpAddr>().is_err();
    let wrong = options.addresses.iter().filter(is_wrong).map(|text| {
        let reason = format!(
            "log.debug_for.addresses has {text:?}, expected an IP address without a port, for example 192.0.2.7"
        );
        (Severity::Error, "log.debug_for.addresses", reason)
    });
    let count = options.users.len() + options.channels.len() + options.addresses.len();
    let too_many = (count > SUBJECTS_MAX).then(|| {
        let reason =
            format!("log.debug_for has {count} users, channels and addresses, expected at most {SUBJECTS_MAX}");
        (Severity::Error, "log.debug_for.users", reason)
    });
    wrong.chain(too_many).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_addresses_and_too_many_subjects_are_errors() {
        let mut config = Config::blank();
        config.log.debug_for.addresses =
            ["10.0.0.1", "::1", "10.0.0.0/8", "host"].map(str::to_owned).into();
        let remarks = are_addresses(&config);
        assert_eq!(remarks.len(), 2, "{remarks:?}");
        assert!(remarks[1].2.contains("\"host\""));
        config.log.debug_for.addresses.clear();
        config.log.debug_for.users = (0..=SUBJECTS_MAX).map(|user| user.to_string()).collect();
        assert_eq!(are_addresses(&config)[0].1, "log.debug_for.users");
    }
}
