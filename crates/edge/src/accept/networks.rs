//! Lists of addresses and networks, such as `10.0.0.1` and `fd00::/8` (RFC 4632, RFC 4291 §2.3).
//! In: texts → out: whether an address is in one of them.
//! Uses the types of std. Never: resolves a name.
//! Changed here: the form of a network. Who is believed is decided where they are used.

use std::net::IpAddr;

/// Addresses and networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<(IpAddr, u8)>);

impl Networks {
    /// Parses a list.
    ///
    /// # Errors
    /// The first text that is neither an address nor a network.
    pub fn parse(texts: &[String]) -> Result<Self, String> {
        texts
            .iter()
            .map(|text| network(text).ok_or_else(|| text.clone()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether the address is in a network. IPv4 in IPv6 (RFC 4291 §2.5.5.2) is IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|(network, length)| match (*network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(*length)).unwrap_or(0);
                network.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(*length)).unwrap_or(0);
                network.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address = address.parse::<IpAddr>().ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let length = length.unwrap_or(bits);
    (length <= bits).then_some((address, length))
}

#[cfg(test)]
mod tests {
    use super::Networks;

    fn check(network: &str, address: &str, expect: bool) {
        let networks = Networks::parse(&[network.to_owned()]).expect("a network");
        assert_eq!(
            networks.contains(address.parse().expect("an address")),
            expect,
            "{network} {address}"
        );
    }

    #[test]
    fn addresses_are_in_their_networks() {
        check("10.0.0.1", "10.0.0.1", true);
        check("10.0.0.1", "10.0.0.2", false);
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.0.0.0/8", "::ffff:10.1.1.1", true);
        check("0.0.0.0/0", "1.2.3.4", true);
        check("0.0.0.0/0", "::1", false);
        check("fd00::/8", "fdff::1", true);
        check("fd00::/8", "fe00::1", false);
        check("::/0", "fe00::1", true);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["", "a.example", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.1:80", "10.0.0.0/-1"]
        {
            assert_eq!(Networks::parse(&[text.to_owned()]), Err(text.to_owned()));
        }
    }
}
