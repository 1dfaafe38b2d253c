//! Offer and answer.

use crate::error::{AcceptError, AnswerError};
use crate::session::Session;
use crate::types::{Agreed, LocalMedia, Origin};

/// An answer and what it agrees to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The description to send.
    pub session: Session,
    /// What it comes to for us.
    pub agreed: Agreed,
}

/// An offer of one audio stream.
#[must_use]
pub fn offer(_origin: &Origin, _local: &LocalMedia) -> Session {
    unimplemented!()
}

/// A later offer.
#[must_use]
pub fn reoffer(
    _previous: &Session,
    _media_index: usize,
    _origin: &Origin,
    _local: &LocalMedia,
) -> Session {
    unimplemented!()
}

/// The answer to an offer.
///
/// # Errors
/// [`AnswerError`]
pub fn answer(
    _offer: &Session,
    _origin: &Origin,
    _local: &LocalMedia,
) -> Result<Answer, AnswerError> {
    unimplemented!()
}

/// Reads the answer to our offer.
///
/// # Errors
/// [`AcceptError`]
pub fn accept(_offer: &Session, _answer: &Session) -> Result<Agreed, AcceptError> {
    unimplemented!()
}
