//! SIP messages, transactions, dialogs and the INVITE usage as a sans-IO endpoint.
#![forbid(unsafe_code)]
