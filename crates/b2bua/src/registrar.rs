//! A registrar in memory (RFC 3261 section 10.3): address-of-record to contacts, with expiry.
//!
//! An address-of-record is known by its user part; the server speaks for one domain. Who may
//! register is the owner's question ([`crate::Config`]); this module keeps the bindings. All is
//! bounded: users, contacts per user, and the length of what is kept of each.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sip::{Flow, Scheme, Uri};

/// Limits and intervals of the registrar.
#[derive(Clone, Debug)]
pub struct RegistrarConfig {
    /// Most users with a binding at one time.
    pub max_users: usize,
    /// Most contacts of one user.
    pub max_contacts: usize,
    /// Shortest interval granted; a shorter wish is answered 423 (section 10.2.8).
    pub min_expires: Duration,
    /// Longest interval granted; a longer wish is cut.
    pub max_expires: Duration,
    /// What a contact without any wish gets.
    pub default_expires: Duration,
}

impl Default for RegistrarConfig {
    fn default() -> Self {
        Self {
            max_users: 100_000,
            max_contacts: 10,
            min_expires: Duration::from_secs(10),
            max_expires: Duration::from_secs(3_600),
            default_expires: Duration::from_secs(3_600),
        }
    }
}

/// One contact of one user.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The contact's URI as registered.
    pub uri: String,
    /// Where the REGISTER came from: a phone behind a NAT is reached there.
    pub flow: Flow,
    /// When the binding ends.
    pub expires: Instant,
    call_id: String,
    cseq: u32,
}

/// What a REGISTER asks.
#[derive(Debug)]
pub struct Registration<'a> {
    /// User part of the address-of-record (To).
    pub user: &'a str,
    /// Call-ID and CSeq number order the requests of one phone (section 10.3, step 7).
    pub call_id: &'a str,
    /// See `call_id`.
    pub cseq: u32,
    /// The Expires header, in seconds.
    pub expires: Option<u32>,
    /// The contacts named.
    pub contacts: Contacts<'a>,
    /// Where it came from.
    pub flow: Flow,
}

/// The Contact headers of a REGISTER.
#[derive(Debug)]
pub enum Contacts<'a> {
    /// `Contact: *`.
    All,
    /// Contacts with their own `expires` parameters; none asks what is registered.
    These(Vec<(&'a str, Option<u32>)>),
}

/// Why a REGISTER was refused; nothing of it was kept.
#[derive(Copy, Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// 423: the interval is shorter than ours.
    #[error("interval too brief, at least {min_expires_s} s")]
    TooBrief {
        /// For Min-Expires.
        min_expires_s: u64,
    },
    /// 400: `*` goes with Expires 0 alone (section 10.3, step 6).
    #[error("contact * needs expires 0")]
    StarNeedsZero,
    /// 400: a contact is no URI we could call.
    #[error("contact is not a usable URI")]
    BadContact,
    /// 500: older than what the same phone said before (section 10.3, step 7).
    #[error("out of order")]
    OutOfOrder,
    /// 503: a limit is reached.
    #[error("too many registrations")]
    Full,
}

impl RegisterError {
    /// The SIP status that answers it.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::TooBrief { .. } => 423,
            Self::StarNeedsZero | Self::BadContact => 400,
            Self::OutOfOrder => 500,
            Self::Full => 503,
        }
    }
}

/// The bindings of all users.
#[derive(Debug)]
pub struct Registrar {
    config: RegistrarConfig,
    users: BTreeMap<String, Vec<Binding>>,
    /// (end, user), so that the next expiry is the first entry.
    expiries: BTreeMap<(Instant, String), usize>,
}

/// Longest contact URI kept.
const MAX_URI_BYTES: usize = 512;

impl Registrar {
    /// An empty registrar.
    #[must_use]
    pub fn new(config: RegistrarConfig) -> Self {
        Self {
            config,
            users: BTreeMap::new(),
            expiries: BTreeMap::new(),
        }
    }

    /// Takes one REGISTER as a whole or not at all (section 10.3, step 8) and returns what is then
    /// registered for the user.
    ///
    /// # Errors
    /// The refusal to answer; the bindings are then unchanged.
    pub fn register(
        &mut self,
        now: Instant,
        request: &Registration<'_>,
    ) -> Result<&[Binding], RegisterError> {
        let kept = self.users.get(request.user).map_or(&[][..], Vec::as_slice);
        let next = self.apply(now, kept, request)?;
        if !next.is_empty() && kept.is_empty() && self.users.len() >= self.config.max_users {
            return Err(RegisterError::Full);
        }
        self.replace(request.user, next);
        Ok(self.users.get(request.user).map_or(&[], Vec::as_slice))
    }

    /// Live contacts of a user, the newest first.
    pub fn contacts(&self, now: Instant, user: &str) -> impl Iterator<Item = &Binding> {
        self.users
            .get(user)
            .into_iter()
            .flatten()
            .rev()
            .filter(move |binding| binding.expires > now)
    }

    /// Users that have a binding.
    #[must_use]
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Whether nobody is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// The next moment a binding ends.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.expiries.first_key_value().map(|((at, _), _)| *at)
    }

    /// Drops what has expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(((at, user), _)) = self.expiries.first_key_value() {
            if *at > now {
                break;
            }
            let user = user.clone();
            let mut left = self.users.get(&user).cloned().unwrap_or_default();
            left.retain(|binding| binding.expires > now);
            self.replace(&user, left);
        }
    }

    fn apply(
        &self,
        now: Instant,
        kept: &[Binding],
        request: &Registration<'_>,
    ) -> Result<Vec<Binding>, RegisterError> {
        let contacts = match &request.contacts {
            Contacts::All if request.expires == Some(0) => {
                let stale = kept.iter().any(|binding| is_older(request, binding));
                return if stale {
                    Err(RegisterError::OutOfOrder)
                } else {
                    Ok(Vec::new())
                };
            }
            Contacts::All => return Err(RegisterError::StarNeedsZero),
            Contacts::These(contacts) => contacts,
        };
        let mut next = kept.to_vec();
        next.retain(|binding| binding.expires > now);
        for (uri, own) in contacts {
            let parsed = Uri::parse(uri).map_err(|_| RegisterError::BadContact)?;
            if !matches!(parsed.scheme(), Scheme::Sip | Scheme::Sips) || uri.len() > MAX_URI_BYTES {
                return Err(RegisterError::BadContact);
            }
            let interval = self.interval((*own).or(request.expires))?;
            let same = |binding: &Binding| {
                Uri::parse(&binding.uri).is_ok_and(|known| known.equivalent(&parsed))
            };
            if let Some(place) = next.iter().position(same) {
                if is_older(request, &next[place]) {
                    return Err(RegisterError::OutOfOrder);
                }
                next.remove(place);
            }
            if interval.is_zero() {
                continue;
            }
            next.push(Binding {
                uri: (*uri).to_owned(),
                flow: request.flow,
                expires: now + interval,
                call_id: request.call_id.to_owned(),
                cseq: request.cseq,
            });
        }
        if next.len() > self.config.max_contacts {
            return Err(RegisterError::Full);
        }
        Ok(next)
    }

    fn interval(&self, wish_s: Option<u32>) -> Result<Duration, RegisterError> {
        let Some(wish_s) = wish_s else {
            return Ok(self.config.default_expires);
        };
        let wish = Duration::from_secs(wish_s.into());
        if !wish.is_zero() && wish < self.config.min_expires {
            return Err(RegisterError::TooBrief {
                min_expires_s: self.config.min_expires.as_secs(),
            });
        }
        Ok(wish.min(self.config.max_expires))
    }

    fn replace(&mut self, user: &str, next: Vec<Binding>) {
        for binding in self.users.remove(user).into_iter().flatten() {
            self.expiries.remove(&(binding.expires, user.to_owned()));
        }
        if next.is_empty() {
            return;
        }
        for binding in &next {
            *self
                .expiries
                .entry((binding.expires, user.to_owned()))
                .or_default() += 1;
        }
        self.users.insert(user.to_owned(), next);
    }
}

/// A request of the same phone that was overtaken by a later one.
fn is_older(request: &Registration<'_>, binding: &Binding) -> bool {
    binding.call_id == request.call_id && request.cseq <= binding.cseq
}

#[cfg(test)]
mod tests {
    use super::*;
    use sip::Transport;

    fn flow() -> Flow {
        Flow {
            transport: Transport::Udp,
            local: "127.0.0.1:5060".parse().expect("literal"),
            remote: "127.0.0.1:5070".parse().expect("literal"),
            connection: 0,
        }
    }

    fn request<'a>(cseq: u32, expires: Option<u32>, contacts: Contacts<'a>) -> Registration<'a> {
        Registration {
            user: "1000",
            call_id: "one",
            cseq,
            expires,
            contacts,
            flow: flow(),
        }
    }

    fn these<'a>(contacts: &[(&'a str, Option<u32>)]) -> Contacts<'a> {
        Contacts::These(contacts.to_vec())
    }

    const PHONE: &str = "sip:1000@127.0.0.1:5070";
    const DESK: &str = "sip:1000@127.0.0.1:5071";

    // The only clock read here: an arbitrary moment to count from.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test needs some moment to count from"
    )]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn bindings_end_when_their_interval_does() {
        let now = start();
        let mut registrar = Registrar::new(RegistrarConfig::default());
        let both = these(&[(PHONE, Some(60)), (DESK, None)]);
        assert_eq!(
            registrar
                .register(now, &request(1, Some(120), both))
                .map(<[_]>::len),
            Ok(2)
        );
        assert_eq!(
            registrar.poll_timeout(),
            Some(now + Duration::from_secs(60))
        );
        let later = now + Duration::from_secs(60);
        assert_eq!(registrar.contacts(later, "1000").count(), 1);
        registrar.handle_timeout(later);
        assert_eq!(
            registrar.poll_timeout(),
            Some(now + Duration::from_secs(120))
        );
        registrar.handle_timeout(now + Duration::from_secs(120));
        assert!(registrar.is_empty() && registrar.poll_timeout().is_none());
    }

    #[test]
    fn an_equivalent_contact_is_refreshed_not_doubled() {
        let now = start();
        let mut registrar = Registrar::new(RegistrarConfig::default());
        for (cseq, uri) in [(1, PHONE), (2, "sip:%31000@127.0.0.1:5070")] {
            let done = registrar.register(now, &request(cseq, Some(60), these(&[(uri, None)])));
            assert_eq!(done.map(<[_]>::len), Ok(1));
        }
    }

    #[test]
    fn zero_and_star_unregister() {
        let now = start();
        let mut registrar = Registrar::new(RegistrarConfig::default());
        let both = || these(&[(PHONE, None), (DESK, None)]);
        registrar
            .register(now, &request(1, None, both()))
            .expect("registers");
        let one = registrar.register(now, &request(2, None, these(&[(PHONE, Some(0))])));
        assert_eq!(one.map(<[_]>::len), Ok(1));
        let star = registrar.register(now, &request(3, None, Contacts::All));
        assert_eq!(star.map(<[_]>::len), Err(RegisterError::StarNeedsZero));
        let star = registrar.register(now, &request(4, Some(0), Contacts::All));
        assert_eq!(star.map(<[_]>::len), Ok(0));
        assert!(registrar.is_empty() && registrar.poll_timeout().is_none());
    }

    #[test]
    fn a_refused_request_changes_nothing() {
        let now = start();
        let mut registrar = Registrar::new(RegistrarConfig::default());
        registrar
            .register(now, &request(5, None, these(&[(PHONE, None)])))
            .expect("registers");
        let rows = [
            (
                request(5, None, these(&[(PHONE, Some(0))])),
                RegisterError::OutOfOrder,
            ),
            (
                request(6, Some(3), these(&[(DESK, None)])),
                RegisterError::TooBrief { min_expires_s: 10 },
            ),
            (
                request(6, None, these(&[(DESK, None), ("tel:123", None)])),
                RegisterError::BadContact,
            ),
        ];
        for (request, error) in rows {
            assert_eq!(
                registrar.register(now, &request).map(<[_]>::len),
                Err(error)
            );
            assert_eq!(registrar.contacts(now, "1000").count(), 1);
        }
    }

    #[test]
    fn limits_are_kept() {
        let now = start();
        let config = RegistrarConfig {
            max_users: 1,
            max_contacts: 1,
            ..Default::default()
        };
        let mut registrar = Registrar::new(config);
        let two = these(&[(PHONE, None), (DESK, None)]);
        assert_eq!(
            registrar.register(now, &request(1, None, two)).err(),
            Some(RegisterError::Full)
        );
        registrar
            .register(now, &request(2, None, these(&[(PHONE, None)])))
            .expect("registers");
        let other = Registration {
            user: "1001",
            ..request(1, None, these(&[(DESK, None)]))
        };
        assert_eq!(
            registrar.register(now, &other).err(),
            Some(RegisterError::Full)
        );
    }
}
