//! Requests of ours, in pieces: a request is printed when it is known where it goes, and printed
//! again with credentials, as its CANCEL, or as its ACK.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::api::{Body, Fields, HeaderField, Listener, Transmit, Transport};
use crate::{Host, Name, NameAddr, Uri, Writer};

/// Where a message goes and from where.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) struct Hop {
    pub(crate) transport: Transport,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: SocketAddr,
    pub(crate) connection: Option<u64>,
}

impl Hop {
    pub(crate) fn transmit(self, bytes: Arc<[u8]>) -> Transmit {
        Transmit {
            transport: self.transport,
            local: self.local,
            remote: self.remote,
            connection: self.connection,
            bytes,
        }
    }
}

/// Where a request is to go, as its URIs say (RFC 3261 section 8.1.2, RFC 3263).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Target {
    Address(Transport, SocketAddr),
    Name {
        host: String,
        port: Option<u16>,
        transport: Option<Transport>,
    },
}

/// A request in pieces.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: String,
    pub(crate) request_uri: String,
    pub(crate) routes: Vec<String>,
    /// Whether the Request-URI is a strict router, which the request goes to.
    pub(crate) is_strict: bool,
    /// With our tag.
    pub(crate) from: String,
    /// With the peer's tag, where there is one.
    pub(crate) to: String,
    pub(crate) call_id: String,
    pub(crate) cseq: u32,
    pub(crate) branch: String,
    /// User part of Contact; `None` for requests without Contact.
    pub(crate) contact: Option<String>,
    pub(crate) fields: Fields,
    pub(crate) body: Option<Body>,
}

/// Max-Forwards of requests that bring none along (RFC 3261 section 8.1.1.6).
const MAX_FORWARDS: u8 = 70;

impl Outgoing {
    pub(crate) fn print(&self, via: &SentBy, user_agent: &str) -> Arc<[u8]> {
        let mut writer = self.begin(&self.method, via);
        if !self.brings(Name::MaxForwards) {
            writer.push(Name::MaxForwards, MAX_FORWARDS);
        }
        if let Some(user) = &self.contact {
            writer.push(Name::Contact, via.contact(user));
        }
        writer.push(Name::UserAgent, user_agent);
        finish(writer, &self.fields, self.body.as_ref())
    }

    /// The CANCEL of this request: same branch, same hop (section 9.1).
    pub(crate) fn cancel(&self, fields: Fields) -> Self {
        Self {
            method: "CANCEL".to_owned(),
            contact: None,
            fields,
            body: None,
            ..self.clone()
        }
    }

    /// The ACK of a refusal, within the transaction (section 17.1.1.3). `to` is the response's.
    pub(crate) fn print_ack(&self, via: &SentBy, to: &str) -> Arc<[u8]> {
        let ack = Self {
            to: to.to_owned(),
            ..self.without_body()
        };
        let writer = ack
            .begin("ACK", via)
            .header(Name::MaxForwards, MAX_FORWARDS);
        finish(writer, &self.credentials(), None)
    }

    /// The credentials shown, which the ACK of an INVITE repeats (section 22.1).
    pub(crate) fn credentials(&self) -> Fields {
        let is_credential = |field: &&HeaderField| {
            matches!(
                field,
                HeaderField::Known(Name::Authorization | Name::ProxyAuthorization, _)
            )
        };
        self.fields.iter().filter(is_credential).cloned().collect()
    }

    /// Where this request goes.
    pub(crate) fn target(&self) -> Option<Target> {
        let uri = match self.routes.first() {
            Some(route) if !self.is_strict => NameAddr::parse(route).ok()?.uri,
            _ => &self.request_uri,
        };
        let uri = Uri::parse(uri).ok()?;
        let named = match uri.transport() {
            Some(name) => Some(Transport::from_name(name)?),
            None if uri.scheme() == crate::Scheme::Sips => Some(Transport::Tls),
            None => None,
        };
        let port = uri.port();
        let address = match uri.host()? {
            Host::V4(address) => IpAddr::V4(address),
            Host::V6(address) => IpAddr::V6(address),
            Host::Name(host) => {
                return Some(Target::Name {
                    host: host.to_owned(),
                    port,
                    transport: named,
                });
            }
        };
        let transport = named.unwrap_or(Transport::Udp);
        let port = port.unwrap_or(if transport == Transport::Tls {
            5061
        } else {
            5060
        });
        Some(Target::Address(transport, SocketAddr::new(address, port)))
    }

    fn begin(&self, method: &str, via: &SentBy) -> Writer {
        let mut writer = Writer::request(method, &self.request_uri).header(
            Name::Via,
            format_args!(
                "SIP/2.0/{} {};rport;branch={}",
                via.transport.as_str(),
                via.host_port,
                self.branch
            ),
        );
        for route in &self.routes {
            writer.push(Name::Route, route);
        }
        writer.push(Name::From, &self.from);
        writer.push(Name::To, &self.to);
        writer.push(Name::CallId, &self.call_id);
        writer.push(Name::CSeq, format_args!("{} {method}", self.cseq));
        writer
    }

    fn brings(&self, name: Name) -> bool {
        self.fields
            .iter()
            .any(|field| matches!(field, HeaderField::Known(own, _) if *own == name))
    }

    fn without_body(&self) -> Self {
        Self {
            method: String::new(),
            fields: Vec::new(),
            body: None,
            contact: None,
            request_uri: self.request_uri.clone(),
            routes: self.routes.clone(),
            is_strict: self.is_strict,
            from: self.from.clone(),
            to: String::new(),
            call_id: self.call_id.clone(),
            cseq: self.cseq,
            branch: self.branch.clone(),
        }
    }
}

/// Request-URI, routes and whether the first is strict, for a request to `target` along a route set:
/// loose routes lead, a strict one takes the place of the Request-URI (section 12.2.1.1).
pub(crate) fn along(target: &str, route_set: &[String]) -> (String, Vec<String>, bool) {
    let first = route_set
        .first()
        .and_then(|route| NameAddr::parse(route).ok());
    let strict = first.filter(|first| first.uri().is_ok_and(|uri| !uri.lr()));
    match strict {
        Some(strict) => {
            let mut routes = route_set[1..].to_vec();
            routes.push(format!("<{target}>"));
            (strict.uri.to_owned(), routes, true)
        }
        None => (target.to_owned(), route_set.to_vec(), false),
    }
}

/// How we name ourselves on one listener.
#[derive(Clone, Debug)]
pub(crate) struct SentBy {
    pub(crate) transport: Transport,
    pub(crate) local: SocketAddr,
    host_port: Arc<str>,
}

impl SentBy {
    pub(crate) fn of(listener: &Listener) -> Self {
        let host_port = match (&listener.advertised, listener.local) {
            (Some((host, port)), _) => format!("{host}:{port}"),
            (None, local) => local.to_string(),
        };
        Self {
            transport: listener.transport,
            local: listener.local,
            host_port: host_port.into(),
        }
    }

    /// Our Contact. A transport other than UDP is said, so that requests come back over it.
    pub(crate) fn contact(&self, user: &str) -> String {
        let at = if user.is_empty() { "" } else { "@" };
        let host_port = &self.host_port;
        match self.transport {
            Transport::Udp => format!("<sip:{user}{at}{host_port}>"),
            other => {
                let transport = other.as_str().to_ascii_lowercase();
                format!("<sip:{user}{at}{host_port};transport={transport}>")
            }
        }
    }
}

/// Adds headers and body and ends the message.
pub(crate) fn finish(mut writer: Writer, fields: &Fields, body: Option<&Body>) -> Arc<[u8]> {
    for field in fields {
        match field {
            HeaderField::Known(name, value) => writer.push(*name, value),
            HeaderField::Other(name, value) => writer.push_named(name, value),
        }
    }
    match body {
        Some(body) => writer.body(&body.content_type, &body.bytes).into(),
        None => writer.finish().into(),
    }
}
