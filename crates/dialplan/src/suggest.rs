//! The nearest known word to an unknown one.

/// The word of `known` with the fewest edits to `word`; the first of equals.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().min_by_key(|known| distance(word, known))
}

/// Edits (insertions, deletions, replacements) between two words, by Levenshtein's recurrence.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], i + 1);
        for (j, &b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_edits() {
        let rows = [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("cal", "call", 1),
        ];
        for (one, other, edits) in rows {
            assert_eq!(
                (distance(one, other), distance(other, one)),
                (edits, edits),
                "{one} {other}"
            );
        }
    }

    #[test]
    fn the_nearest_word_is_the_one_meant() {
        let keys = ["called", "caller", "codecs", "code"];
        assert_eq!(nearest("caled", keys), Some("called"));
        assert_eq!(nearest("codec", keys), Some("codecs"));
        assert_eq!(nearest("x", []), None);
    }
}
