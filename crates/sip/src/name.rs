//! Header field names: known kinds, their spelling, and the look-up from any spelling.
//!
//! Names are case-insensitive and some have a one-letter compact form (RFC 3261, 7.3.1 and 7.3.3; the later
//! compact forms are in the IANA registry of SIP header fields). The look-up is one probe into a table
//! of 256 slots that the compiler fills; no allocation, no lower-cased copy.

use core::fmt;

macro_rules! names {
    ($($variant:ident = $text:literal $(/ $compact:literal)? ;)*) => {
        /// A known header field.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Name {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        const ALL: &[Name] = &[$(Name::$variant),*];
        const TEXTS: &[&str] = &[$($text),*];
        const COMPACT: [Option<Name>; 26] = {
            let mut table = [None; 26];
            $($(table[($compact - b'a') as usize] = Some(Name::$variant);)?)*
            table
        };
    };
}

names! {
    Accept = "Accept";
    AcceptContact = "Accept-Contact" / b'a';
    AcceptEncoding = "Accept-Encoding";
    AcceptLanguage = "Accept-Language";
    AlertInfo = "Alert-Info";
    Allow = "Allow";
    AllowEvents = "Allow-Events" / b'u';
    AuthenticationInfo = "Authentication-Info";
    Authorization = "Authorization";
    CallId = "Call-ID" / b'i';
    CallInfo = "Call-Info";
    Contact = "Contact" / b'm';
    ContentDisposition = "Content-Disposition";
    ContentEncoding = "Content-Encoding" / b'e';
    ContentLanguage = "Content-Language";
    ContentLength = "Content-Length" / b'l';
    ContentType = "Content-Type" / b'c';
    CSeq = "CSeq";
    Date = "Date";
    Diversion = "Diversion";
    ErrorInfo = "Error-Info";
    Event = "Event" / b'o';
    Expires = "Expires";
    From = "From" / b'f';
    HistoryInfo = "History-Info";
    Identity = "Identity" / b'y';
    InReplyTo = "In-Reply-To";
    InfoPackage = "Info-Package";
    Join = "Join";
    MaxForwards = "Max-Forwards";
    MimeVersion = "MIME-Version";
    MinExpires = "Min-Expires";
    MinSe = "Min-SE";
    Organization = "Organization";
    PAssertedIdentity = "P-Asserted-Identity";
    PPreferredIdentity = "P-Preferred-Identity";
    Path = "Path";
    Priority = "Priority";
    Privacy = "Privacy";
    ProxyAuthenticate = "Proxy-Authenticate";
    ProxyAuthorization = "Proxy-Authorization";
    ProxyRequire = "Proxy-Require";
    RAck = "RAck";
    RSeq = "RSeq";
    Reason = "Reason";
    RecordRoute = "Record-Route";
    RecvInfo = "Recv-Info";
    ReferTo = "Refer-To" / b'r';
    ReferredBy = "Referred-By" / b'b';
    RejectContact = "Reject-Contact" / b'j';
    RemotePartyId = "Remote-Party-ID";
    Replaces = "Replaces";
    ReplyTo = "Reply-To";
    RequestDisposition = "Request-Disposition" / b'd';
    Require = "Require";
    RetryAfter = "Retry-After";
    Route = "Route";
    Server = "Server";
    ServiceRoute = "Service-Route";
    SessionExpires = "Session-Expires" / b'x';
    SipEtag = "SIP-ETag";
    SipIfMatch = "SIP-If-Match";
    Subject = "Subject" / b's';
    SubscriptionState = "Subscription-State";
    Supported = "Supported" / b'k';
    TargetDialog = "Target-Dialog";
    Timestamp = "Timestamp";
    To = "To" / b't';
    Unsupported = "Unsupported";
    UserAgent = "User-Agent";
    Via = "Via" / b'v';
    Warning = "Warning";
    WwwAuthenticate = "WWW-Authenticate";
}

impl Name {
    /// The canonical spelling, as this crate prints it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        TEXTS[self as usize]
    }

    /// The kind that a name of any case, long or compact, stands for.
    #[must_use]
    pub fn lookup(name: &str) -> Option<Self> {
        Self::from_bytes(name.as_bytes())
    }

    /// Every known header field, in the order of their spelling.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().copied()
    }

    pub(crate) fn from_bytes(name: &[u8]) -> Option<Self> {
        if let [letter] = name {
            let slot = letter.to_ascii_lowercase().wrapping_sub(b'a');
            return COMPACT.get(usize::from(slot)).copied().flatten();
        }
        let mut slot = slot_of(name)?;
        while SLOTS[slot] != EMPTY {
            let at = usize::from(SLOTS[slot]);
            let text = TEXTS[at].as_bytes();
            if text == name || text.eq_ignore_ascii_case(name) {
                return Some(ALL[at]);
            }
            slot = (slot + 1) % SLOTS.len();
        }
        None
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

const EMPTY: u8 = u8::MAX;

/// Open addressing with linear probing; holds indices into `ALL`.
const SLOTS: [u8; 256] = {
    let mut slots = [EMPTY; 256];
    let mut i = 0;
    while i < TEXTS.len() {
        let Some(mut slot) = slot_of(TEXTS[i].as_bytes()) else {
            panic!("a header name is empty")
        };
        while slots[slot] != EMPTY {
            slot = (slot + 1) % slots.len();
        }
        slots[slot] = i as u8;
        i += 1;
    }
    slots
};

/// Length, first, middle and last letter, case folded: enough to keep the table's chains short.
const fn slot_of(name: &[u8]) -> Option<usize> {
    if name.is_empty() {
        return None;
    }
    let first = (name[0] | 0x20) as usize;
    let middle = (name[name.len() / 2] | 0x20) as usize;
    let last = (name[name.len() - 1] | 0x20) as usize;
    Some((name.len() * 31 + first * 7 + middle * 37 + last * 97) & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_case() {
        for name in Name::all() {
            assert_eq!(Name::lookup(name.as_str()), Some(name));
            assert_eq!(Name::lookup(&name.as_str().to_uppercase()), Some(name));
            assert_eq!(Name::lookup(&name.as_str().to_lowercase()), Some(name));
            assert_eq!(Name::lookup(&format!("{name}x")), None);
        }
        assert_eq!(Name::lookup(""), None);
        assert_eq!(Name::lookup("X-Unknown"), None);
    }

    #[test]
    fn compact_forms_of_rfc3261_and_later() {
        let table = [
            ("a", Name::AcceptContact),
            ("b", Name::ReferredBy),
            ("c", Name::ContentType),
            ("d", Name::RequestDisposition),
            ("e", Name::ContentEncoding),
            ("f", Name::From),
            ("i", Name::CallId),
            ("j", Name::RejectContact),
            ("k", Name::Supported),
            ("l", Name::ContentLength),
            ("m", Name::Contact),
            ("o", Name::Event),
            ("r", Name::ReferTo),
            ("s", Name::Subject),
            ("t", Name::To),
            ("u", Name::AllowEvents),
            ("v", Name::Via),
            ("x", Name::SessionExpires),
            ("y", Name::Identity),
        ];
        for (text, name) in table {
            assert_eq!(Name::lookup(text), Some(name));
            assert_eq!(Name::lookup(&text.to_uppercase()), Some(name));
        }
        assert_eq!(Name::lookup("z"), None);
        assert_eq!(Name::lookup("!"), None);
    }

    #[test]
    fn chains_are_short() {
        for (i, text) in TEXTS.iter().enumerate() {
            let home = slot_of(text.as_bytes()).expect("no name is empty");
            let at = SLOTS
                .iter()
                .position(|&s| usize::from(s) == i)
                .expect("every name has a slot");
            assert!((at + 256 - home) % 256 < 6, "{text} sits {at} - {home}");
        }
    }
}
