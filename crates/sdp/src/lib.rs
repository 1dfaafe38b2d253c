//! Session descriptions and offer/answer (RFC 3264) as pure functions.
#![forbid(unsafe_code)]

mod error;
mod negotiate;
mod session;
mod types;

pub use error::{AcceptError, AnswerError, SdpError};
pub use negotiate::{Answer, accept, answer, offer, reoffer};
pub use session::{Audio, Profile, Session};
pub use types::{Agreed, Direction, Format, LocalMedia, Origin};
