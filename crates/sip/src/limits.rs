//! How much of a message is read before it is refused.

/// Bounds on one message. What exceeds them is refused with a status, never truncated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Octets of the whole message, body included (513 above). Start line and headers together can never
    /// exceed 65,535 octets, whatever stands here, because the index keeps 16 bit offsets.
    pub max_message_bytes: usize,
    /// Header fields, at most [`Limits::HEADER_SLOTS`], whatever stands here (513 above).
    pub max_headers: usize,
    /// Octets of one header field: name, colon, value and its folds (513 above).
    pub max_header_bytes: usize,
    /// Octets of the start line (414 above).
    pub max_start_line_bytes: usize,
}

impl Limits {
    /// The header fields that a message's inline index has room for.
    pub const HEADER_SLOTS: usize = 128;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_bytes: 65_535,
            max_headers: Self::HEADER_SLOTS,
            max_header_bytes: 8_192,
            max_start_line_bytes: 8_192,
        }
    }
}
