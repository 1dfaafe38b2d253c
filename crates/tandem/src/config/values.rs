//! Values that are text in a file and something better in memory.

/// A list of listeners.
pub(super) mod listen {
    use net::sip::ListenSpec;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Vec<ListenSpec>, D::Error> {
        let texts = Vec::<String>::deserialize(d)?;
        texts
            .iter()
            .map(|text| text.parse().map_err(D::Error::custom))
            .collect()
    }

    pub(in super::super) fn serialize<S: Serializer>(
        specs: &[ListenSpec],
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(specs.iter().map(ToString::to_string))
    }
}

/// One text, or a list of texts, each with addresses in it.
pub(super) mod addresses {
    use net::rtp::MediaAddresses;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected an address, a network, or a list of them"
    )]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<MediaAddresses, D::Error> {
        let texts = match OneOrMany::deserialize(d)? {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        };
        MediaAddresses::from_list(texts).map_err(D::Error::custom)
    }

    pub(in super::super) fn serialize<S: Serializer>(
        addresses: &MediaAddresses,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(addresses.as_slice())
    }
}

/// Whatever is written as one text.
pub(super) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn deserialize<'de, D, T>(d: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err: Display>,
    {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }

    pub(in super::super) fn serialize<S: Serializer>(
        value: &impl Display,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_str(value)
    }
}
