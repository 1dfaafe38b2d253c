//! What can be wrong with a description, an offer or an answer.

use thiserror::Error;

/// Why bytes are no session description. The peer's fault: 400.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SdpError {
    /// The first line is not `v=0`.
    #[error("no `v=0` in front")]
    Version,
    /// A line that does not read as its letter asks.
    #[error("line {line}: malformed {what}")]
    Line {
        /// From 1.
        line: usize,
        /// What could not be read.
        what: &'static str,
    },
    /// A line that may stand once stands twice.
    #[error("line {line}: repeated")]
    Repeated {
        /// From 1.
        line: usize,
    },
    /// An RTP m= line whose format list holds something else than numbers from 0 to 127.
    #[error("media {media}: payload type out of range")]
    PayloadType {
        /// Which m= line, from 0.
        media: usize,
    },
}

/// Why an offer has no answer with audio in it. We cannot, or will not: 488.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// There is no m= line at all.
    #[error("nothing is offered")]
    NoMedia,
    /// No m= line is audio over RTP.
    #[error("no audio over RTP is offered")]
    NoAudio,
    /// Audio is offered over a secure profile only.
    #[error("audio is offered over SRTP only, which is not supported yet")]
    Secure,
    /// No format of the offer is one of ours.
    #[error("no common codec")]
    NoCommonCodec,
    /// No `c=`, a host name, multicast, or the wrong IP version.
    #[error("no address that we can send to")]
    UnusableAddress,
}

/// Why an answer does not fit the offer it was given to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// There is no offer that waits for an answer, or it offers no audio.
    #[error("nothing was offered")]
    NothingOffered,
    /// The answer has another number of m= lines than the offer (RFC 3264, 6).
    #[error("{offered} media offered, {answered} answered")]
    MediaCount {
        /// m= lines of the offer.
        offered: usize,
        /// m= lines of the answer.
        answered: usize,
    },
    /// The answer's stream is of another kind or profile than the offer's.
    #[error("media {media}: another kind or profile than offered")]
    Mismatch {
        /// Which m= line, from 0.
        media: usize,
    },
    /// Every audio stream that we offered is refused with port 0.
    #[error("audio refused")]
    Refused,
    /// The answer's formats are none that we offered.
    #[error("no codec that was offered")]
    NoCommonCodec,
    /// No `c=`, a host name, multicast, or the wrong IP version.
    #[error("no address that we can send to")]
    UnusableAddress,
}
