//! RTP headers in place, sequence and time arithmetic, statistics, telephone-event.
#![forbid(unsafe_code)]
