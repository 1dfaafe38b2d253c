//! The endpoint on a simulated clock: against literal messages ([`solo`]) and against another endpoint ([`pair`]).
//!
//! Every story ends in `drained`: when all is said, no transaction, usage or timer may be left.

mod pair;
mod solo;
mod text;

mod black_box;
mod calls;
mod cancels;
mod credentials;
mod dialogs;
mod drains;
mod hostile;
mod refusals;
mod transport;
