//! All signalling as one sans-IO machine: the SIP endpoint and a slab of calls.
#![forbid(unsafe_code)]
