//! Typed values of header fields, read on demand from a [`Message`].
//!
//! RFC 3261, 20. Each reader names its header in its error. Fields that may stand once only are
//! refused when they stand twice, since two readers could pick different ones (RFC 4475, 3.3.8).

use crate::error::{HeaderError, HeaderErrorKind as Kind};
use crate::lex;
use crate::multipart;
use crate::params::Params;
use crate::{Message, Method, Name, NameAddr, Via};

/// CSeq (RFC 3261, 20.16).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CSeq<'a> {
    /// The sequence number, below 2^31 (8.1.1.5).
    pub number: u32,
    /// The method.
    pub method: Method<'a>,
}

impl<'a> CSeq<'a> {
    /// Reads `1*DIGIT LWS Method`.
    ///
    /// # Errors
    /// [`Kind::Malformed`], or [`Kind::OutOfRange`] from 2^31 on.
    pub fn parse(text: &'a str) -> Result<Self, Kind> {
        let text = lex::trim(text);
        let digits = text.bytes().position(lex::is_lws).ok_or(Kind::Malformed)?;
        let number = lex::decimal(&text.as_bytes()[..digits]).ok_or(Kind::Malformed)?;
        let method = lex::trim(&text[digits..]);
        if !lex::is_token_str(method) {
            return Err(Kind::Malformed);
        }
        let number = u32::try_from(number)
            .ok()
            .filter(|n| *n < 1 << 31)
            .ok_or(Kind::OutOfRange)?;
        Ok(Self {
            number,
            method: Method::new(method),
        })
    }
}

/// RAck (RFC 3262, 7.2): the RSeq and CSeq of the provisional response that a PRACK acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RAck<'a> {
    /// The RSeq of the response.
    pub rseq: u32,
    /// The CSeq of the response.
    pub cseq: CSeq<'a>,
}

impl<'a> RAck<'a> {
    /// Reads `response-num LWS CSeq-num LWS Method`.
    ///
    /// # Errors
    /// [`Kind::Malformed`] or [`Kind::OutOfRange`].
    pub fn parse(text: &'a str) -> Result<Self, Kind> {
        let text = lex::trim(text);
        let digits = text.bytes().position(lex::is_lws).ok_or(Kind::Malformed)?;
        let rseq = lex::decimal(&text.as_bytes()[..digits]).ok_or(Kind::Malformed)?;
        let rseq = u32::try_from(rseq).map_err(|_| Kind::OutOfRange)?;
        Ok(Self {
            rseq,
            cseq: CSeq::parse(&text[digits..])?,
        })
    }
}

/// A media type (RFC 3261, 20.15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContentType<'a> {
    /// Before the slash, as written.
    pub kind: &'a str,
    /// After the slash, as written.
    pub subtype: &'a str,
    /// `boundary`, `charset` and the rest.
    pub params: Params<'a>,
}

impl<'a> ContentType<'a> {
    /// Reads `type "/" subtype *( ";" parameter )`.
    ///
    /// # Errors
    /// [`Kind::Malformed`].
    pub fn parse(text: &'a str) -> Result<Self, Kind> {
        let (media, params) = text.split_at(text.find(';').unwrap_or(text.len()));
        let (kind, subtype) = media.split_once('/').ok_or(Kind::Malformed)?;
        let (kind, subtype) = (lex::trim(kind), lex::trim(subtype));
        if !lex::is_token_str(kind) || !lex::is_token_str(subtype) {
            return Err(Kind::Malformed);
        }
        Ok(Self {
            kind,
            subtype,
            params: Params::parse(params)?,
        })
    }

    /// Whether it is that type, whatever the case and the parameters.
    #[must_use]
    pub fn is(&self, kind: &str, subtype: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind) && self.subtype.eq_ignore_ascii_case(subtype)
    }
}

/// One Contact value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Contact<'a> {
    /// `*`: every binding of the address (RFC 3261, 10.2.2).
    Star,
    /// An address.
    Address(NameAddr<'a>),
}

impl<B: AsRef<[u8]>> Message<B> {
    /// The topmost Via.
    ///
    /// # Errors
    /// [`Kind::Missing`] or [`Kind::Malformed`].
    pub fn top_via(&self) -> Result<Via<'_>, HeaderError> {
        let text = self
            .values(Name::Via)
            .next()
            .ok_or(Kind::Missing.of(Name::Via))?;
        Via::parse(text).map_err(|kind| kind.of(Name::Via))
    }

    /// Every Via, topmost first.
    pub fn vias(&self) -> impl Iterator<Item = Result<Via<'_>, HeaderError>> {
        self.values(Name::Via)
            .map(|text| Via::parse(text).map_err(|kind| kind.of(Name::Via)))
    }

    /// From.
    ///
    /// # Errors
    /// [`HeaderError`] when it is missing, repeated or malformed.
    pub fn from(&self) -> Result<NameAddr<'_>, HeaderError> {
        self.address(Name::From)
    }

    /// To.
    ///
    /// # Errors
    /// [`HeaderError`] when it is missing, repeated or malformed.
    pub fn to(&self) -> Result<NameAddr<'_>, HeaderError> {
        self.address(Name::To)
    }

    /// A header field that holds one address: Refer-To, Referred-By and the like.
    ///
    /// # Errors
    /// [`HeaderError`] when it is missing, repeated or malformed.
    pub fn address(&self, name: Name) -> Result<NameAddr<'_>, HeaderError> {
        NameAddr::parse(self.single(name)?).map_err(|kind| kind.of(name))
    }

    /// A header field that lists addresses: Contact, Route, Record-Route, Path, P-Asserted-Identity and the like.
    pub fn addresses(&self, name: Name) -> impl Iterator<Item = Result<NameAddr<'_>, HeaderError>> {
        self.values(name)
            .map(move |text| NameAddr::parse(text).map_err(|kind| kind.of(name)))
    }

    /// Every Contact that is an address; `*` is passed over (see [`Message::contact_is_star`]).
    pub fn contacts(&self) -> impl Iterator<Item = Result<NameAddr<'_>, HeaderError>> {
        self.contact_values().filter_map(|contact| match contact {
            Ok(Contact::Star) => None,
            Ok(Contact::Address(address)) => Some(Ok(address)),
            Err(error) => Some(Err(error)),
        })
    }

    /// Every Contact in order, `*` included.
    pub fn contact_values(&self) -> impl Iterator<Item = Result<Contact<'_>, HeaderError>> {
        self.values(Name::Contact).map(|text| match text {
            "*" => Ok(Contact::Star),
            text => match NameAddr::parse(text) {
                Ok(address) => Ok(Contact::Address(address)),
                Err(kind) => Err(kind.of(Name::Contact)),
            },
        })
    }

    /// Whether the only Contact is `*`.
    pub fn contact_is_star(&self) -> bool {
        let mut values = self.values(Name::Contact);
        values.next() == Some("*") && values.next().is_none()
    }

    /// CSeq.
    ///
    /// # Errors
    /// [`HeaderError`] when it is missing, repeated, malformed or out of range.
    pub fn cseq(&self) -> Result<CSeq<'_>, HeaderError> {
        CSeq::parse(self.single(Name::CSeq)?).map_err(|kind| kind.of(Name::CSeq))
    }

    /// RAck.
    ///
    /// # Errors
    /// [`HeaderError`] when it is missing, repeated, malformed or out of range.
    pub fn rack(&self) -> Result<RAck<'_>, HeaderError> {
        RAck::parse(self.single(Name::RAck)?).map_err(|kind| kind.of(Name::RAck))
    }

    /// Call-ID, compared octet by octet (RFC 3261, 20.8).
    ///
    /// # Errors
    /// [`HeaderError`] when it is missing, repeated, empty or holds white space.
    pub fn call_id(&self) -> Result<&str, HeaderError> {
        let text = self.single(Name::CallId)?;
        if text.is_empty() || text.bytes().any(lex::is_lws) {
            return Err(Kind::Malformed.of(Name::CallId));
        }
        Ok(text)
    }

    /// Max-Forwards; `None` when absent, as RFC 2543 has it.
    ///
    /// # Errors
    /// [`HeaderError`] when it is repeated, malformed or above 255 (RFC 3261, 20.22).
    pub fn max_forwards(&self) -> Result<Option<u8>, HeaderError> {
        let Some(number) = self.number(Name::MaxForwards)? else {
            return Ok(None);
        };
        let number = u8::try_from(number).map_err(|_| Kind::OutOfRange.of(Name::MaxForwards))?;
        Ok(Some(number))
    }

    /// Expires in seconds; what overflows 32 bits is `u32::MAX` (RFC 4475, 3.1.2.4).
    ///
    /// # Errors
    /// [`HeaderError`] when it is repeated or malformed.
    pub fn expires(&self) -> Result<Option<u32>, HeaderError> {
        self.seconds(Name::Expires)
    }

    /// A header field of delta-seconds, parameters and comment cut off: Retry-After, Min-Expires,
    /// Session-Expires, Min-SE. What overflows 32 bits is `u32::MAX`.
    ///
    /// # Errors
    /// [`HeaderError`] when it is repeated or malformed.
    pub fn seconds(&self, name: Name) -> Result<Option<u32>, HeaderError> {
        Ok(self
            .number(name)?
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX)))
    }

    /// RSeq (RFC 3262, 7.1).
    ///
    /// # Errors
    /// [`HeaderError`] when it is repeated, malformed or out of range.
    pub fn rseq(&self) -> Result<Option<u32>, HeaderError> {
        let Some(number) = self.number(Name::RSeq)? else {
            return Ok(None);
        };
        u32::try_from(number)
            .map(Some)
            .map_err(|_| Kind::OutOfRange.of(Name::RSeq))
    }

    /// Content-Type; `None` when absent or malformed.
    pub fn content_type(&self) -> Option<ContentType<'_>> {
        ContentType::parse(self.header(Name::ContentType)?).ok()
    }

    /// The first `application/sdp` of the body, also inside `multipart/*`, nested up to three deep.
    pub fn sdp_body(&self) -> Option<&[u8]> {
        multipart::find(self.content_type()?, self.body(), "application", "sdp")
    }

    /// Whether a token stands in a list header: Supported, Require, Allow and the like. Case-insensitive.
    pub fn lists(&self, name: Name, token: &str) -> bool {
        self.values(name)
            .any(|value| value.eq_ignore_ascii_case(token))
    }

    /// The value of a field that must stand exactly once.
    fn single(&self, name: Name) -> Result<&str, HeaderError> {
        self.at_most_one(name)?
            .ok_or_else(|| Kind::Missing.of(name))
    }

    fn at_most_one(&self, name: Name) -> Result<Option<&str>, HeaderError> {
        let mut all = self.headers(name);
        let first = all.next();
        if all.next().is_some() {
            return Err(Kind::Repeated.of(name));
        }
        Ok(first)
    }

    fn number(&self, name: Name) -> Result<Option<u64>, HeaderError> {
        let Some(text) = self.at_most_one(name)? else {
            return Ok(None);
        };
        let digits = lex::trim(text.split([';', '(']).next().unwrap_or(text));
        lex::decimal(digits.as_bytes())
            .map(Some)
            .ok_or_else(|| Kind::Malformed.of(name))
    }
}

/// A raw value with every fold and the white space round it made one space (RFC 3261, 7.3.1).
#[must_use]
pub fn unfold(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains(['\r', '\n']) {
        return text.into();
    }
    let lines = text
        .split(['\r', '\n'])
        .map(lex::trim)
        .filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cseq_reads_folds_and_refuses_overflow() {
        assert_eq!(
            CSeq::parse("0009\r\n  INVITE"),
            Ok(CSeq {
                number: 9,
                method: Method::Invite
            })
        );
        assert_eq!(
            CSeq::parse("2147483647 BYE").map(|c| c.number),
            Ok(2_147_483_647)
        );
        assert_eq!(CSeq::parse("2147483648 BYE"), Err(Kind::OutOfRange));
        assert_eq!(
            CSeq::parse("36893488147419103232 BYE"),
            Err(Kind::OutOfRange)
        );
        for bad in ["", "1", "BYE", "BYE 1", "-1 BYE", "1 B YE", "1BYE"] {
            assert_eq!(CSeq::parse(bad), Err(Kind::Malformed), "{bad}");
        }
    }

    #[test]
    fn rack_reads_three_parts() {
        let rack = RAck::parse("776656 1 INVITE").unwrap();
        assert_eq!(
            (rack.rseq, rack.cseq.number, rack.cseq.method),
            (776_656, 1, Method::Invite)
        );
        assert_eq!(RAck::parse("1 INVITE"), Err(Kind::Malformed));
        assert_eq!(RAck::parse("4294967296 1 INVITE"), Err(Kind::OutOfRange));
    }

    #[test]
    fn content_type_reads_parameters() {
        let t = ContentType::parse("Multipart/Mixed ; boundary=\"a b\"").unwrap();
        assert!(t.is("multipart", "mixed"));
        assert_eq!(t.params.unquoted("boundary").as_deref(), Some("a b"));
        assert_eq!(ContentType::parse("sdp"), Err(Kind::Malformed));
    }

    #[test]
    fn unfold_joins_with_one_space() {
        assert_eq!(unfold("a \r\n\t b\r\n c"), "a b c");
        assert_eq!(unfold("plain  text"), "plain  text");
    }
}
