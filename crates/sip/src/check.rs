//! The look at a message's meaning that comes before any other: is it fit to be processed at all?
//!
//! RFC 3261, 8.1.1 (what every request must have), 8.1.3.3, 8.2.2 and 16.3. A request that fails is owed the
//! status of its [`Refusal`]; a response that fails is dropped. Left to the endpoint: Require (420), unknown
//! methods (405, 501), media types (415), Max-Forwards of 0 (only a proxy answers 483).

use crate::error::{HeaderError, HeaderErrorKind, Refusal};
use crate::uri::{Scheme, Uri};
use crate::{Message, Method, Name};

impl<B: AsRef<[u8]>> Message<B> {
    /// Judges a request before anything acts on it.
    ///
    /// Looked at: Via (all of them), From, To, Call-ID and CSeq are there, once, and well-formed; CSeq names the
    /// method; Max-Forwards, Expires and every Contact are well-formed when there; the Request-URI is one of
    /// `sip:`, `sips:` or `tel:` and carries no headers.
    ///
    /// # Errors
    /// [`Refusal`] with the status owed. A response is judged by [`Message::check_response`] instead.
    pub fn check_request(&self) -> Result<(), Refusal> {
        self.check_common()?;
        self.max_forwards()?;
        self.expires()?;
        self.contact_values()
            .try_for_each(|contact| contact.map(|_| ()))?;
        if self.method() != Some(self.cseq()?.method) {
            return Err(Refusal::MethodMismatch);
        }
        let uri = Uri::parse(self.request_uri().unwrap_or_default());
        let uri = uri.map_err(|_| Refusal::RequestUri)?;
        match uri.scheme() {
            Scheme::Other(_) => Err(Refusal::Scheme),
            // Headers in a URI make a new request out of it; in a Request-URI they are no part of the grammar.
            _ if uri.headers().next().is_some() => Err(Refusal::RequestUri),
            _ => Ok(()),
        }
    }

    /// Judges a response before it is matched to a transaction; one that fails is dropped without an answer.
    ///
    /// # Errors
    /// The first header that is missing, repeated or malformed.
    pub fn check_response(&self) -> Result<(), HeaderError> {
        self.check_common()
    }

    /// Whether a request is an ACK, which is never answered.
    pub fn is_ack(&self) -> bool {
        self.method() == Some(Method::Ack)
    }

    fn check_common(&self) -> Result<(), HeaderError> {
        if self.vias().try_fold(false, |_, via| via.map(|_| true))? {
            self.check_dialog_fields()
        } else {
            Err(HeaderErrorKind::Missing.of(Name::Via))
        }
    }

    fn check_dialog_fields(&self) -> Result<(), HeaderError> {
        self.from()?;
        self.to()?;
        self.cseq()?;
        self.call_id()?;
        match self.headers(Name::ContentType).nth(1) {
            Some(_) => Err(HeaderErrorKind::Repeated.of(Name::ContentType)),
            None => Ok(()),
        }
    }
}
