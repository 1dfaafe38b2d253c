//! Bytes only: SIP over UDP and TCP, RTP ports and batched I/O, resolver.
