//! The Via header field (RFC 3261, 20.42; `rport` of RFC 3581).

use core::fmt;
use core::net::{IpAddr, SocketAddr};

use crate::error::HeaderErrorKind;
use crate::host::{self, Host};
use crate::lex;
use crate::params::Params;

/// One Via value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Via<'a> {
    /// `UDP`, `TCP`, `TLS`, `WS`, `WSS` or anything else, as written.
    pub transport: &'a str,
    /// The host of sent-by.
    pub host: Host<'a>,
    /// The port of sent-by, when written.
    pub port: Option<u16>,
    /// `branch`, `received`, `rport`, `maddr`, `ttl` and the rest.
    pub params: Params<'a>,
}

impl<'a> Via<'a> {
    /// The cookie that every branch of RFC 3261 begins with (8.1.1.7).
    pub const MAGIC_COOKIE: &'static str = "z9hG4bK";

    /// Reads one value, white space around the slashes and folds included.
    ///
    /// # Errors
    /// [`HeaderErrorKind::Malformed`].
    pub fn parse(text: &'a str) -> Result<Self, HeaderErrorKind> {
        Self::read(text).ok_or(HeaderErrorKind::Malformed)
    }

    fn read(text: &'a str) -> Option<Self> {
        let (protocol, rest) = lex::trim(text).split_once('/')?;
        let (version, rest) = rest.split_once('/')?;
        if !lex::trim(protocol).eq_ignore_ascii_case("SIP") || lex::trim(version) != "2.0" {
            return None;
        }
        let rest = lex::trim(rest);
        let (transport, rest) = rest.split_at(rest.bytes().position(lex::is_lws)?);
        let (sent_by, params) = rest.split_at(rest.find(';').unwrap_or(rest.len()));
        let (host, port) = Host::parse_with_port(sent_by)?;
        let params = Params::parse(params).ok()?;
        lex::is_token_str(transport).then_some(Self {
            transport,
            host,
            port,
            params,
        })
    }

    /// The branch, as written.
    #[must_use]
    pub fn branch(&self) -> Option<&'a str> {
        self.params.value("branch").filter(|b| !b.is_empty())
    }

    /// The branch, when it is one of RFC 3261: the cookie and something after it (17.2.3; RFC 4475, 3.2.1).
    #[must_use]
    pub fn magic_branch(&self) -> Option<&'a str> {
        self.branch()
            .filter(|b| b.len() > Self::MAGIC_COOKIE.len() && b.starts_with(Self::MAGIC_COOKIE))
    }

    /// The address in `received`, with or without brackets round IPv6.
    #[must_use]
    pub fn received(&self) -> Option<IpAddr> {
        host::ip_maybe_bracketed(self.params.value("received")?)
    }

    /// `rport`: outer `None` when absent, inner `None` when asked for and not filled in.
    #[must_use]
    pub fn rport(&self) -> Option<Option<u16>> {
        let value = self.params.get("rport")?;
        Some(value.and_then(|v| v.parse().ok()))
    }

    /// The port of sent-by or the default of its transport: 5061 for TLS and WSS, 5060 otherwise (18.2.2).
    #[must_use]
    pub fn port_or_default(&self) -> u16 {
        let secure = ["TLS", "WSS"]
            .iter()
            .any(|t| self.transport.eq_ignore_ascii_case(t));
        self.port.unwrap_or(if secure { 5061 } else { 5060 })
    }

    /// This value as the receiver stamps it: `received` when the source address differs from sent-by or `rport`
    /// was asked for, and `rport` filled in (RFC 3261, 18.2.1; RFC 3581, 4). What the sender put there goes.
    #[must_use]
    pub fn stamped(&self, source: SocketAddr) -> String {
        use fmt::Write as _;
        let (ip, port) = (source.ip().to_canonical(), source.port());
        let asked = self.rport().is_some();
        let mut out = format!("SIP/2.0/{} {}", self.transport, self.host);
        let mut add =
            |text: fmt::Arguments<'_>| out.write_fmt(text).expect("a String takes any text");
        if let Some(port) = self.port {
            add(format_args!(":{port}"));
        }
        for (name, value) in self.params.iter() {
            match value {
                _ if name.eq_ignore_ascii_case("received") => {}
                _ if name.eq_ignore_ascii_case("rport") => add(format_args!(";{name}={port}")),
                Some(value) => add(format_args!(";{name}={value}")),
                None => add(format_args!(";{name}")),
            }
        }
        if asked || self.host.ip().map(|h| h.to_canonical()) != Some(ip) {
            add(format_args!(";received={ip}"));
        }
        out
    }
}

impl fmt::Display for Via<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SIP/2.0/{} {}", self.transport, self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if !self.params.is_empty() {
            write!(f, ";{}", self.params.as_str())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_white_space_and_folds() {
        let via =
            Via::parse("SIP  /\r\n 2.0 / TCP   host.example : 5080  ;\r\n branch =  z9hG4bKx")
                .unwrap();
        assert_eq!(
            (via.transport, via.host, via.port),
            ("TCP", Host::Name("host.example"), Some(5080))
        );
        assert_eq!(via.magic_branch(), Some("z9hG4bKx"));
        assert_eq!(
            via.to_string(),
            "SIP/2.0/TCP host.example:5080;\r\n branch =  z9hG4bKx"
        );
    }

    #[test]
    fn refuses_what_is_not_one() {
        for bad in [
            "",
            "SIP/2.0/UDP",
            "SIP/2.0/UDP ",
            "SIP/3.0/UDP a",
            "XIP/2.0/UDP a",
            "SIP/2.0/UDP a;;",
            "SIP/2.0/UDP a:b",
            "SIP/2.0 a",
            "SIP/2.0/UDP a b",
        ] {
            assert_eq!(Via::parse(bad), Err(HeaderErrorKind::Malformed), "{bad}");
        }
    }

    #[test]
    fn stamps_received_and_rport() {
        let source: SocketAddr = "192.0.2.9:40000".parse().unwrap();
        let stamped = |text| Via::parse(text).unwrap().stamped(source);
        assert_eq!(
            stamped("SIP/2.0/UDP 192.0.2.9;branch=z9hG4bKa"),
            "SIP/2.0/UDP 192.0.2.9;branch=z9hG4bKa"
        );
        assert_eq!(
            stamped("SIP/2.0/UDP 10.0.0.1:5070;branch=b;x"),
            "SIP/2.0/UDP 10.0.0.1:5070;branch=b;x;received=192.0.2.9"
        );
        assert_eq!(
            stamped("SIP/2.0/UDP 192.0.2.9;rport;branch=b"),
            "SIP/2.0/UDP 192.0.2.9;rport=40000;branch=b;received=192.0.2.9"
        );
        assert_eq!(
            stamped("SIP/2.0/UDP a;received=1.1.1.1;rport=9"),
            "SIP/2.0/UDP a;rport=40000;received=192.0.2.9"
        );
    }
}
