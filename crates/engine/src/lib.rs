//! Shards of media sessions on a rayon pool; deadlines accounted.
