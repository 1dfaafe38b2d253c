//! Session descriptions and offer/answer (RFC 3264) as pure functions.
#![forbid(unsafe_code)]
