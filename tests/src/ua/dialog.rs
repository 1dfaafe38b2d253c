//! A phone's side of a dialog (RFC 3261 section 12) and the descriptions exchanged in it.

use std::net::SocketAddr;

use super::ScriptedUa;
use crate::description::{self, Media};
use crate::message::Sip;

/// Who sent the first INVITE.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// We did.
    Caller,
    /// The peer did.
    Callee,
}

/// How far a dialog is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DialogState {
    /// No final response yet.
    Early,
    /// Answered.
    Confirmed,
    /// Refused, cancelled, or ended by a BYE.
    Over,
}

/// A dialog.
#[derive(Clone, Debug)]
pub struct Dialog {
    /// Call-ID.
    pub call_id: String,
    /// Our tag.
    pub local_tag: String,
    /// The peer's tag, once known.
    pub remote_tag: Option<String>,
    /// Our name-addr, without tag.
    pub local: String,
    /// The peer's name-addr, without tag.
    pub remote: String,
    /// Request-URI for the peer.
    pub target: String,
    /// Route set.
    pub routes: Vec<String>,
    /// Our latest sequence number.
    pub local_cseq: u32,
    /// The peer's latest sequence number.
    pub remote_cseq: u32,
    /// Who called.
    pub role: Role,
    /// How far it is.
    pub state: DialogState,
    /// What we will say about our media.
    pub media: Media,
    session: u64,
    version: u64,
    /// The latest description that we sent.
    pub said: Option<String>,
    /// Every description heard.
    pub heard: Vec<String>,
    /// Our offer that has no answer yet.
    pub open_offer: Option<String>,
    /// To be ended by BYE as soon as it is answered.
    pub unwanted: bool,
}

impl Dialog {
    pub(super) fn new(role: Role, media: Media, session: u64) -> Self {
        Self {
            call_id: String::new(),
            local_tag: String::new(),
            remote_tag: None,
            local: String::new(),
            remote: String::new(),
            target: String::new(),
            routes: Vec::new(),
            local_cseq: 0,
            remote_cseq: 0,
            role,
            state: DialogState::Early,
            media,
            session,
            version: 0,
            said: None,
            heard: Vec::new(),
            open_offer: None,
            unwanted: false,
        }
    }

    /// The latest description of the peer.
    ///
    /// # Panics
    /// When none was heard.
    #[must_use]
    pub fn peer_sdp(&self) -> &str {
        self.heard.last().expect("the peer has described its media")
    }

    /// Our next offer.
    pub(super) fn offer(&mut self) -> String {
        let (media, session) = (self.media.clone(), self.session);
        let text = self.versioned(|version| Some(media.offer(session, version)));
        self.open_offer.clone_from(&text);
        text.unwrap_or_default()
    }

    /// Our answer to the peer's latest description.
    pub(super) fn answer(&mut self) -> Option<String> {
        let (media, session) = (self.media.clone(), self.session);
        let offer = self.heard.last()?.clone();
        self.versioned(|version| media.answer(&offer, session, version))
    }

    /// What an INVITE with this description, or none, gets in its 2xx.
    pub(super) fn describe(&mut self, offered: bool) -> Option<String> {
        if offered {
            self.answer()
        } else {
            Some(self.offer())
        }
    }

    /// RFC 3264 section 8: the version rises when anything else does.
    fn versioned(&mut self, print: impl Fn(u64) -> Option<String>) -> Option<String> {
        let same = print(self.version)?;
        if self.said.as_ref() == Some(&same) {
            return Some(same);
        }
        self.version += 1;
        self.said = print(self.version);
        self.said.clone()
    }

    /// Takes a description from the peer; what is wrong with it.
    pub(super) fn hear(&mut self, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some(before) = self.heard.last() {
            faults.extend(description::fault_of_successor(before, text));
            if description::sections(text).len() < description::sections(before).len() {
                faults.push("media sections were dropped (RFC 3264 section 8)".to_owned());
            }
        }
        if let Some(offer) = self.open_offer.take() {
            faults.extend(description::faults_of_answer(&offer, text));
        }
        self.heard.push(text.to_owned());
        faults
    }

    /// Where requests go: the first route, or the target.
    pub(super) fn next_hop(&self) -> Option<SocketAddr> {
        address_of(self.routes.first().unwrap_or(&self.target))
    }
}

/// The socket address in a URI with an IPv4 host; port 5060 where it has none.
pub(super) fn address_of(uri: &str) -> Option<SocketAddr> {
    let uri = crate::message::uri_of(uri)?;
    let uri = uri.strip_prefix("sip:")?.split([';', '?']).next()?;
    let host = uri.rsplit_once('@').map_or(uri, |(_, host)| host);
    host.parse()
        .ok()
        .or_else(|| Some(SocketAddr::new(host.parse().ok()?, 5060)))
}

impl ScriptedUa {
    /// The dialog that a message belongs to, by Call-ID and our tag.
    pub(super) fn dialog_of(&self, call_id: &str, our_tag: Option<&str>) -> Option<usize> {
        let ours = |d: &Dialog| d.call_id == call_id && Some(d.local_tag.as_str()) == our_tag;
        self.dialogs.iter().position(ours)
    }

    /// Takes the description of a message into a dialog.
    pub(super) fn hear_sdp(&mut self, dialog: usize, sip: &Sip) -> bool {
        let Some(text) = sip.sdp() else { return false };
        // A repeated answer (180, then 200 with the same) is heard once.
        let same = self.dialogs[dialog]
            .heard
            .last()
            .is_some_and(|last| last == text);
        if same && self.dialogs[dialog].open_offer.is_none() {
            return true;
        }
        for fault in self.dialogs[dialog].hear(text) {
            self.complain(sip, fault);
        }
        true
    }
}
