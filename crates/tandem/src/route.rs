//! `tandem route`: what the dialplan decides for a call, and by which rule.
