//! G.711 A-law and mu-law.
#![forbid(unsafe_code)]
