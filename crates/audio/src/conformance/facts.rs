//! Facts that agree with each other.

use crate::codec::CodecInfo;

pub(super) fn agree(info: &CodecInfo) {
    assert!(
        !info.name.is_empty() && info.name.is_ascii(),
        "name {:?}",
        info.name
    );
    assert!(
        info.static_payload_type.is_none_or(|number| number < 96),
        "static number in use"
    );
    assert!(
        info.clock_rate > 0 && info.sample_rate > 0 && info.channels > 0,
        "{info:?}"
    );
    assert!(
        info.frame_step_samples > 0 && info.max_payload_bytes > 0,
        "{info:?}"
    );
    assert_eq!(
        info.max_frame_samples % info.frame_step_samples,
        0,
        "longest frame: whole steps"
    );
    let default = info.samples_per_packet(info.default_ptime_ms);
    let exact = u64::from(info.sample_rate) * u64::from(info.default_ptime_ms) / 1000;
    assert_eq!(
        default as u64, exact,
        "the default packet time is not a whole number of steps"
    );
    assert!(
        info.is_named(
            &info.name.to_ascii_lowercase(),
            info.clock_rate,
            info.rtpmap_channels
        ),
        "case matters"
    );
}

/// A variant is the same to the peer, and has the rate and the channels asked for.
pub(super) fn of_a_variant_agree(
    of: &CodecInfo,
    variant: &CodecInfo,
    sample_rate: u32,
    channels: u8,
) {
    agree(variant);
    let to_the_peer = |info: &CodecInfo| {
        (
            info.name,
            info.static_payload_type,
            info.clock_rate,
            info.rtpmap_channels,
            info.default_ptime_ms,
        )
    };
    assert_eq!(to_the_peer(variant), to_the_peer(of), "a variant");
    assert_eq!(
        (variant.sample_rate, variant.channels),
        (sample_rate, channels),
        "the variant asked for"
    );
}
