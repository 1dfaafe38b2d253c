//! Request methods. Case-sensitive tokens (RFC 3261, 7.1); the fourteen registered ones have a variant each.

use core::fmt;

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident = $text:literal;)*) => {
        /// A request method, borrowed from the message when it is not a registered one.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum Method<'a> {
            $($(#[$doc])* $variant,)*
            /// Any other token, as written.
            Other(&'a str),
        }

        impl<'a> Method<'a> {
            /// The method of that exact spelling (case counts); anything unknown is [`Method::Other`].
            #[must_use]
            pub fn new(text: &'a str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other),
                }
            }

            /// The spelling on the wire.
            #[must_use]
            pub const fn as_str(&self) -> &'a str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }

            /// The same method free of the message it came from; `None` when it is not a registered one.
            #[must_use]
            pub const fn known(self) -> Option<Method<'static>> {
                match self {
                    $(Self::$variant => Some(Method::$variant),)*
                    Self::Other(_) => None,
                }
            }
        }
    };
}

methods! {
    /// RFC 3261.
    Invite = "INVITE";
    /// RFC 3261.
    Ack = "ACK";
    /// RFC 3261.
    Bye = "BYE";
    /// RFC 3261.
    Cancel = "CANCEL";
    /// RFC 3261.
    Register = "REGISTER";
    /// RFC 3261.
    Options = "OPTIONS";
    /// RFC 6086.
    Info = "INFO";
    /// RFC 3311.
    Update = "UPDATE";
    /// RFC 3262.
    Prack = "PRACK";
    /// RFC 3515.
    Refer = "REFER";
    /// RFC 6665.
    Notify = "NOTIFY";
    /// RFC 6665.
    Subscribe = "SUBSCRIBE";
    /// RFC 3428.
    Message = "MESSAGE";
    /// RFC 3903.
    Publish = "PUBLISH";
}

impl fmt::Display for Method<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_counts() {
        assert_eq!(Method::new("INVITE"), Method::Invite);
        assert_eq!(Method::new("invite"), Method::Other("invite"));
        assert_eq!(Method::new("RE%47IST%45R").to_string(), "RE%47IST%45R");
        assert_eq!(Method::new("BYE").known(), Some(Method::Bye));
    }
}
