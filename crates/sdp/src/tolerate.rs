//! What peers get wrong in a description and a call survives, put right before the grammar sees it.
//!
//! RFC 8866, 5 asks parsers to be tolerant. The grammar (sdp-types) already takes bare LF, a last
//! line without a line end, unknown letters, and lines out of order. Beyond that:
//!
//! - text that is not UTF-8 in `s=`, `i=`, `u=`, `e=`, `p=` and `a=` (other character sets are
//!   legal there) becomes U+FFFD where it cannot be read;
//! - `r=`, `z=` and `k=` are dropped: offer/answer has no schedule (RFC 3264, 5) and `k=` must be
//!   ignored (RFC 8866, 5.12); so is a `b=` that is no `type:number`;
//! - space at the end of `v=` and runs of spaces in `m=` are taken as meant.
//!
//! A dropped line leaves an empty one behind, so line numbers in errors are those of the peer.

/// The description as the grammar can read it.
pub(crate) fn tolerate(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    for line in bytes.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line {
            [b'r' | b'z' | b'k', b'=', ..] => {}
            [b'b', b'=', value @ ..] if !is_bandwidth(value) => {}
            [b's' | b'i' | b'u' | b'e' | b'p' | b'a', b'=', ..] => {
                out.extend_from_slice(String::from_utf8_lossy(line).as_bytes());
            }
            [b'v', b'=', ..] => out.extend_from_slice(line.trim_ascii_end()),
            [b'm', b'=', value @ ..] => {
                out.extend_from_slice(b"m=");
                push_fields(&mut out, value);
            }
            _ => out.extend_from_slice(line),
        }
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn push_fields(out: &mut Vec<u8>, value: &[u8]) {
    let fields = value
        .split(|&byte| byte == b' ')
        .filter(|field| !field.is_empty());
    for (n, field) in fields.enumerate() {
        if n > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(field);
    }
}

fn is_bandwidth(value: &[u8]) -> bool {
    let Some(colon) = value.iter().position(|&byte| byte == b':') else {
        return false;
    };
    let (kind, number) = (&value[..colon], &value[colon + 1..]);
    // 18 digits fit into u64 whatever they are.
    kind.iter().all(u8::is_ascii_graphic)
        && (1..=18).contains(&number.len())
        && number.iter().all(u8::is_ascii_digit)
}
