//! What caller and callee have in common: the shape the driver drives, and small answers.

use std::net::SocketAddr;
use std::time::Instant;

use sip::{
    Body, Config, Endpoint, Event, HeaderField, Incoming, Invite, Listener, Name, Request,
    Transport, UsageId,
};

use crate::description::Description;
use crate::stream::Agreement;

/// A machine on a SIP endpoint. After any `handle_*` the driver drains the endpoint's
/// `poll_transmit` and hands its events back by [`Agent::handle_events`].
pub trait Agent {
    /// Its endpoint.
    fn endpoint(&mut self) -> &mut Endpoint;
    /// Takes what the endpoint reports.
    fn handle_events(&mut self, now: Instant);
    /// Does what its own schedule says is due; starts the schedule when called first.
    fn handle_due(&mut self, now: Instant);
    /// When its own schedule is due next.
    fn due(&self) -> Option<Instant>;
    /// Whether no call is open and none is planned.
    fn is_idle(&self) -> bool;
}

/// Where an endpoint is, and what makes its tokens its own.
#[derive(Clone, Debug)]
pub struct EndpointSpec {
    /// How it talks.
    pub transport: Transport,
    /// Where it listens; never port 0.
    pub local: SocketAddr,
    /// Seed of its tags, branches and Call-IDs.
    pub seed: [u8; 32],
}

impl EndpointSpec {
    /// One that talks UDP.
    #[must_use]
    pub fn udp(local: SocketAddr, seed: [u8; 32]) -> Self {
        Self {
            transport: Transport::Udp,
            local,
            seed,
        }
    }

    /// An INVITE to `user` at `server`, from `from_user` here.
    pub(crate) fn invite(
        &self,
        user: &str,
        from_user: &str,
        server: SocketAddr,
        body: Body,
    ) -> Invite {
        Invite {
            request_uri: format!("sip:{user}@{server}"),
            from: format!("<sip:{from_user}@{}>", self.local),
            to: format!("<sip:{user}@{server}>"),
            contact_user: Some(from_user.to_owned()),
            route: Vec::new(),
            next_hop: Some((self.transport, server)),
            fields: Vec::new(),
            body: Some(body),
            credentials: None,
            call_id: None,
        }
    }

    /// A REGISTER of `user` at `registrar`, for here (RFC 3261, 10.2).
    pub(crate) fn register(&self, user: &str, registrar: SocketAddr) -> Request {
        let record = format!("<sip:{user}@{registrar}>");
        let contact = format!("<sip:{user}@{}>", self.local);
        Request {
            method: "REGISTER".into(),
            request_uri: format!("sip:{registrar}"),
            from: record.clone(),
            to: record,
            route: Vec::new(),
            next_hop: Some((self.transport, registrar)),
            fields: vec![
                HeaderField::Known(Name::Contact, contact),
                HeaderField::Known(Name::Expires, "600".into()),
            ],
            body: None,
            credentials: None,
            call_id: None,
            cseq: None,
        }
    }
}

/// An endpoint with RFC timers and room for as many calls as a run can have.
pub(crate) fn endpoint(spec: &EndpointSpec) -> Endpoint {
    let config = Config {
        user_agent: "tandem-lab".into(),
        listeners: vec![Listener {
            transport: spec.transport,
            local: spec.local,
            advertised: None,
        }],
        max_transactions: 1 << 20,
        max_usages: 1 << 20,
        ..Config::default()
    };
    Endpoint::new(config, spec.seed)
}

/// The user part of the From header.
pub(crate) fn from_user(message: &Incoming) -> Option<String> {
    let from = message.from().ok()?;
    let uri = sip::Uri::parse(from.uri).ok()?;
    uri.user().map(str::to_owned)
}

/// Answers a re-INVITE: 200 with what was agreed, 488 when nothing can be.
pub(crate) fn answer_reinvite(
    endpoint: &mut Endpoint,
    now: Instant,
    usage: UsageId,
    message: &Incoming,
    description: &mut Description,
) -> Option<Agreement> {
    let agreed = description.answer_again(message);
    let (code, body) = match agreed {
        Some(_) => (200, Some(description.body())),
        None => (488, None),
    };
    // The dialog may have ended meanwhile: then nobody waits for the answer.
    let _ = endpoint.respond_reinvite(now, usage, code, Vec::new(), body);
    agreed
}

/// Answers what neither side expects: OPTIONS 200, everything else 501.
pub(crate) fn answer_other(endpoint: &mut Endpoint, now: Instant, event: Event) {
    if let Event::Request { txn, message, .. } = event {
        let options = message
            .method()
            .is_some_and(|method| method.as_str() == "OPTIONS");
        let code = if options { 200 } else { 501 };
        // The transaction may have timed out meanwhile: then nobody waits for the answer.
        let _ = endpoint.respond(now, txn, code, None, Vec::new(), None);
    }
}
