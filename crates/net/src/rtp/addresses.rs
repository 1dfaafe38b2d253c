//! The addresses media may be bound to: single addresses and IPv4 networks.
//!
//! One IPv4 address holds about 8,000 port pairs in the default range, a relayed call takes two;
//! a network (`127.0.1.0/27`) multiplies that without naming every address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// A set of local media addresses, written `127.0.0.1`, `10.0.0.5,10.0.0.6` or `127.0.1.0/27`.
///
/// Of a network of more than two addresses the first (the network's own) and the last (broadcast)
/// are left out. A network may hold at most [`MediaAddresses::MAX`] addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaAddresses(Vec<IpAddr>);

/// Why a list of media addresses is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The list has no address in it.
    #[error("no media address given")]
    Empty,
    /// This part is neither an address nor a network.
    #[error("`{0}` is neither an IP address nor a network such as 127.0.1.0/27")]
    Unreadable(Box<str>),
    /// 0.0.0.0 and :: say nothing that an SDP could carry.
    #[error("{0} is not an address that media can be sent to; name one of this machine's own")]
    Unspecified(IpAddr),
    /// The network would give more addresses than [`MediaAddresses::MAX`].
    #[error("the network {0}/{1} is larger than /16")]
    TooLarge(Ipv4Addr, u8),
}

impl MediaAddresses {
    /// Most addresses that one set holds: a /16.
    pub const MAX: usize = 65_536;

    /// The addresses in the order written, each once.
    pub fn as_slice(&self) -> &[IpAddr] {
        &self.0
    }

    /// Joins several lists (a repeated flag, an array in a file) into one.
    ///
    /// # Errors
    /// [`AddressError`] for the first part that can't be used.
    pub fn from_list<S: AsRef<str>>(
        parts: impl IntoIterator<Item = S>,
    ) -> Result<Self, AddressError> {
        let mut all = Vec::new();
        for part in parts {
            for one in part
                .as_ref()
                .split(',')
                .map(str::trim)
                .filter(|one| !one.is_empty())
            {
                push_part(one, &mut all)?;
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|address| seen.insert(*address));
        if all.is_empty() {
            Err(AddressError::Empty)
        } else {
            Ok(Self(all))
        }
    }
}

impl From<IpAddr> for MediaAddresses {
    fn from(address: IpAddr) -> Self {
        Self(vec![address])
    }
}

impl FromStr for MediaAddresses {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_list([text])
    }
}

impl fmt::Display for MediaAddresses {
    /// One address as it is; several as `first ... last (n addresses)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("none"),
            [one] => write!(f, "{one}"),
            [first, .., last] => write!(f, "{first} ... {last} ({} addresses)", self.0.len()),
        }
    }
}

fn push_part(part: &str, all: &mut Vec<IpAddr>) -> Result<(), AddressError> {
    let unreadable = || AddressError::Unreadable(part.into());
    let Some((network, bits)) = part.split_once('/') else {
        let bare = part
            .strip_prefix('[')
            .and_then(|p| p.strip_suffix(']'))
            .unwrap_or(part);
        let address: IpAddr = bare.parse().map_err(|_| unreadable())?;
        if address.is_unspecified() {
            return Err(AddressError::Unspecified(address));
        }
        all.push(address);
        return Ok(());
    };
    let network: Ipv4Addr = network.parse().map_err(|_| unreadable())?;
    let bits: u8 = bits
        .parse()
        .ok()
        .filter(|bits| *bits <= 32)
        .ok_or_else(unreadable)?;
    if bits < 16 {
        return Err(AddressError::TooLarge(network, bits));
    }
    let mask = u32::MAX << (32 - bits);
    let first = u32::from(network) & mask;
    let last = first | !mask;
    let hosts = if bits >= 31 {
        first..=last
    } else {
        first + 1..=last - 1
    };
    all.extend(hosts.map(|host| IpAddr::V4(Ipv4Addr::from(host))));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &str) -> Vec<String> {
        let addresses: MediaAddresses = list.parse().expect(list);
        addresses
            .as_slice()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn lists_networks_and_single_addresses_are_read() {
        assert_eq!(texts("127.0.0.1"), ["127.0.0.1"]);
        assert_eq!(
            texts("10.0.0.5, 10.0.0.6,10.0.0.5"),
            ["10.0.0.5", "10.0.0.6"]
        );
        assert_eq!(texts("127.0.1.8/30"), ["127.0.1.9", "127.0.1.10"]);
        assert_eq!(texts("127.0.1.9/31"), ["127.0.1.8", "127.0.1.9"]);
        assert_eq!(texts("127.0.1.9/32"), ["127.0.1.9"]);
        assert_eq!(texts("[::1],::1"), ["::1"]);
        assert_eq!(texts("127.0.1.0/27").len(), 30);
        assert_eq!(texts("127.1.0.0/16").len(), 65_534);
    }

    #[test]
    fn what_cannot_be_bound_or_written_into_sdp_is_refused() {
        let error = |list: &str| list.parse::<MediaAddresses>().expect_err(list);
        assert_eq!(error(" , "), AddressError::Empty);
        assert_eq!(
            error("localhost"),
            AddressError::Unreadable("localhost".into())
        );
        assert_eq!(
            error("10.0.0.0/33"),
            AddressError::Unreadable("10.0.0.0/33".into())
        );
        assert_eq!(
            error("10.0.0.0/8"),
            AddressError::TooLarge(Ipv4Addr::new(10, 0, 0, 0), 8)
        );
        assert!(matches!(error("0.0.0.0"), AddressError::Unspecified(_)));
    }
}
