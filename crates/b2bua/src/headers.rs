//! What is read from messages and what goes from one leg into the other: the header policy.
//!
//! Two dialogs lie back to back, so what belongs to one dialog (Via, Route, Contact, tags,
//! Call-ID, CSeq) never crosses. The caller's name and user do; the host of its From does where it
//! is a domain, and is replaced by ours where it is an address, which tells the callee nothing.
//! Max-Forwards crosses, one less, so that a loop through us ends (RFC 7332 section 3).

use std::net::SocketAddr;

use sip::{Body, Contact, Fields, Flow, HeaderField, Host, Incoming, Invite, Name, Transport, Uri};

use crate::config::Config;
use crate::registrar::{Binding, Contacts};

/// The parties of an INVITE as the dialplan knows them.
#[derive(Debug, Default)]
pub(crate) struct Parties {
    pub(crate) called_user: String,
    pub(crate) called_host: String,
    pub(crate) caller_user: String,
    pub(crate) caller_host: String,
}

impl Parties {
    pub(crate) fn of(message: &Incoming) -> Self {
        let (called_user, called_host) =
            message.request_uri().map(user_and_host).unwrap_or_default();
        let from = message.from().ok().map(|from| user_and_host(from.uri));
        let (caller_user, caller_host) = from.unwrap_or_default();
        Self {
            called_user,
            called_host,
            caller_user,
            caller_host,
        }
    }
}

/// User (unescaped) and host of a URI; the number of a tel: URI is its user.
fn user_and_host(uri: &str) -> (String, String) {
    Uri::parse(uri).map_or_else(
        |_| Default::default(),
        |uri| {
            let user = uri
                .user_decoded()
                .map(std::borrow::Cow::into_owned)
                .unwrap_or_default();
            (
                user,
                uri.host().map(|host| host.to_string()).unwrap_or_default(),
            )
        },
    )
}

/// The address-of-record's user in a REGISTER (RFC 3261 section 10.3, step 5).
pub(crate) fn aor_user(message: &Incoming) -> Option<String> {
    let to = message.to().ok()?;
    let (user, _) = user_and_host(to.uri);
    (!user.is_empty() && user.len() <= 128).then_some(user)
}

/// The contacts of a REGISTER with their own intervals in seconds; `None` where one is unreadable.
pub(crate) fn registered_contacts(message: &Incoming) -> Option<Contacts<'_>> {
    let mut contacts = Vec::new();
    for value in message.contact_values() {
        match value.ok()? {
            Contact::Star => return Some(Contacts::All),
            Contact::Address(contact) => contacts.push((contact.uri, contact.expires())),
        }
    }
    Some(Contacts::These(contacts))
}

/// The session description of a message.
///
/// # Errors
/// The status to refuse it with: 400 where it cannot be read, 415 where the body is something
/// else (RFC 3261 section 8.2.3).
pub(crate) fn description(message: &Incoming) -> Result<Option<sdp::Session>, u16> {
    match message.sdp_body() {
        Some(bytes) => sdp::Session::parse(bytes).map(Some).map_err(|_| 400),
        None if message.body().is_empty() => Ok(None),
        None => Err(415),
    }
}

/// A message's body as it is, for the other leg.
pub(crate) fn body(message: &Incoming) -> Option<Body> {
    let content_type = message.header(Name::ContentType)?;
    (!message.body().is_empty()).then(|| Body {
        content_type: content_type.to_owned().into(),
        bytes: message.body().to_vec(),
    })
}

/// A session description as a body.
pub(crate) fn sdp(bytes: Vec<u8>) -> Body {
    Body {
        content_type: "application/sdp".into(),
        bytes,
    }
}

/// A flow's far end, for records and logs.
pub(crate) fn source(flow: &Flow) -> String {
    format!(
        "{}:{}",
        flow.transport.as_str().to_ascii_lowercase(),
        flow.remote
    )
}

/// Headers that a request within a dialog takes along to the other leg.
pub(crate) fn passed_within(message: &Incoming) -> Fields {
    let package = message.header_named("Info-Package");
    package
        .map(|value| HeaderField::Other("Info-Package".to_owned(), value.to_owned()))
        .into_iter()
        .collect()
}

/// Where one INVITE of leg B goes.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) uri: String,
    next_hop: Option<(Transport, SocketAddr)>,
}

impl Destination {
    /// To a URI, found as RFC 3263 says.
    pub(crate) fn to(uri: String) -> Self {
        Self {
            uri,
            next_hop: None,
        }
    }

    /// To a registered contact: where its URI says, or where its REGISTER came from when that is
    /// a connection, or another host than the URI names (a NAT between us).
    pub(crate) fn bound(binding: &Binding) -> Self {
        let named = Uri::parse(&binding.uri)
            .ok()
            .and_then(|uri| match uri.host()? {
                Host::V4(address) => Some(address.into()),
                Host::V6(address) => Some(address.into()),
                Host::Name(_) => None,
            });
        let flow = &binding.flow;
        let direct = flow.transport == Transport::Udp && named == Some(flow.remote.ip());
        Self {
            uri: binding.uri.clone(),
            next_hop: (!direct).then_some((flow.transport, flow.remote)),
        }
    }
}

/// What every INVITE of leg B has in common.
#[derive(Debug)]
pub(crate) struct Template {
    from: String,
    caller_user: String,
    fields: Fields,
}

impl Template {
    /// The INVITE to one destination.
    pub(crate) fn invite(&self, to: &Destination, body: Option<Body>) -> Invite {
        Invite {
            request_uri: to.uri.clone(),
            from: self.from.clone(),
            to: format!("<{}>", to.uri),
            contact_user: Some(self.caller_user.clone()).filter(|user| !user.is_empty()),
            route: Vec::new(),
            next_hop: to.next_hop,
            fields: self.fields.clone(),
            body,
            credentials: None,
            call_id: None,
        }
    }
}

/// What the caller's INVITE says to the callee.
///
/// # Errors
/// 483 where the request has no hop left.
pub(crate) fn towards_callee(
    message: &Incoming,
    config: &Config,
    added: &[(String, String)],
) -> Result<Template, u16> {
    const DEFAULT_HOPS: u32 = 70;
    let hops = message
        .max_forwards()
        .ok()
        .flatten()
        .map_or(DEFAULT_HOPS, u32::from);
    let hops = hops.checked_sub(1).ok_or(483_u16)?;
    let mut fields = vec![HeaderField::Known(Name::MaxForwards, hops.to_string())];
    for name in &config.pass_headers {
        for (written, _, value) in message.all_headers() {
            if written.eq_ignore_ascii_case(name) {
                fields.push(HeaderField::Other(
                    name.clone(),
                    sip::unfold(value).into_owned(),
                ));
            }
        }
    }
    fields.extend(
        added
            .iter()
            .map(|(name, value)| HeaderField::Other(name.clone(), value.clone())),
    );
    let from = message.from().map_err(|_| 400_u16)?;
    let uri = Uri::parse(from.uri).map_err(|_| 400_u16)?;
    let raw_user = uri.user().unwrap_or_default();
    let at = if raw_user.is_empty() { "" } else { "@" };
    let host = match uri.host() {
        Some(Host::Name(name)) => name.to_owned(),
        _ => own_host(config),
    };
    let display = from.display.as_deref().filter(|name| !name.is_empty());
    let quoted = display
        .map(|name| format!("{} ", sip::quote(name)))
        .unwrap_or_default();
    Ok(Template {
        from: format!("{quoted}<sip:{raw_user}{at}{host}>"),
        caller_user: raw_user.to_owned(),
        fields,
    })
}

fn own_host(config: &Config) -> String {
    let Some(listener) = config.sip.listeners.first() else {
        return "localhost".to_owned();
    };
    match (&listener.advertised, listener.local) {
        (Some((host, _)), _) => host.clone(),
        (None, SocketAddr::V4(address)) => address.ip().to_string(),
        (None, SocketAddr::V6(address)) => format!("[{}]", address.ip()),
    }
}
