//! The load lab: callers, callees, audio checks, measurement; an independent witness.
