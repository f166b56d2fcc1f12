//! Node names: what they may hold, and the ranges that stand for several.
//!
//! `gpu0..3` is `gpu0`, `gpu1`, `gpu2`, `gpu3`; `gpu3..0` counts down; `box0..1.gpu0..1` is
//! `box0.gpu0`, `box0.gpu1`, `box1.gpu0`, `box1.gpu1`.

/// Longest name [bytes].
const LONGEST: usize = 64;

/// Whether a word can be a node's name, else what is wrong with it.
pub(super) fn check(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("an empty name: write e.g. `gpu0`".to_owned());
    }
    if name.len() > LONGEST {
        return Err(format!(
            "a name of {} bytes: keep it to {LONGEST}",
            name.len()
        ));
    }
    match name
        .chars()
        .find(|c| !c.is_alphanumeric() && !"_-./:".contains(*c))
    {
        Some(c) => Err(format!(
            "{c:?} in a name: use letters, digits and `_ - . / :`"
        )),
        None => Ok(()),
    }
}

/// The names a word stands for, at most `most`.
///
/// # Errors
/// What is wrong with the range, and the remedy.
pub(super) fn expand(word: &str, most: u64) -> Result<Vec<String>, String> {
    let Some(dots) = word.find("..") else {
        check(word)?;
        return Ok(vec![word.to_owned()]);
    };
    let (before, after) = (&word[..dots], &word[dots + 2..]);
    let stem = before.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = after
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(after.len());
    let (first, last) = (&before[stem.len()..], &after[..digits]);
    let (Ok(first), Ok(last)) = (first.parse::<u64>(), last.parse::<u64>()) else {
        return Err(format!(
            "`{word}` is no range: write a number on both sides of `..`, e.g. `gpu0..7`"
        ));
    };
    let rest = match &after[digits..] {
        "" => vec![String::new()],
        rest => expand(rest, most)?,
    };
    let count = first.abs_diff(last).saturating_add(1);
    if count.saturating_mul(rest.len() as u64) > most {
        return Err(format!(
            "`{word}` stands for more than {most} names: shorten the range"
        ));
    }
    let names: Vec<String> = (0..count)
        .map(|step| {
            if first <= last {
                first + step
            } else {
                first - step
            }
        })
        .flat_map(|number| rest.iter().map(move |rest| format!("{stem}{number}{rest}")))
        .collect();
    for name in names.first().into_iter().chain(names.last()) {
        check(name)?;
    }
    Ok(names)
}

/// Whether a word stands for several names.
pub(super) fn is_range(word: &str) -> bool {
    word.contains("..")
}

/// The two ends of a link's name `a->b`.
///
/// # Errors
/// The form to write.
pub(in crate::topology) fn ends(word: &str) -> Result<(&str, &str), String> {
    word.split_once("->")
        .map(|(from, to)| (from.trim(), to.trim()))
        .filter(|(from, to)| !from.is_empty() && !to.is_empty())
        .ok_or_else(|| format!("`{word}` is not the name of a link: write `from->to`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_ranges() {
        assert_eq!(expand("gpu0..2", 100).unwrap(), ["gpu0", "gpu1", "gpu2"]);
        assert_eq!(expand("s2..0", 100).unwrap(), ["s2", "s1", "s0"]);
        assert_eq!(
            expand("b0..1.g8..9x", 100).unwrap(),
            ["b0.g8x", "b0.g9x", "b1.g8x", "b1.g9x"]
        );
        assert_eq!(expand("nic", 100).unwrap(), ["nic"]);
    }

    #[test]
    fn refuses_in_words() {
        assert!(
            expand("gpu0..gpu7", 100)
                .unwrap_err()
                .contains("e.g. `gpu0..7`")
        );
        assert!(
            expand("gpu0..99999999", 100)
                .unwrap_err()
                .contains("more than 100 names")
        );
        assert!(
            expand("g0..999.h0..9999", 100)
                .unwrap_err()
                .contains("more than 100 names")
        );
        assert!(expand("..", 100).unwrap_err().contains("no range"));
        assert!(expand("a b", 100).unwrap_err().contains("' ' in a name"));
        assert!(expand("", 100).unwrap_err().contains("empty"));
        assert!(expand("0..18446744073709551615", 100).is_err());
        assert_eq!(ends("a -> b").unwrap(), ("a", "b"));
        assert!(ends("a->").is_err());
    }

    proptest::proptest! {
        #[test]
        fn never_panics(word in "[a-z0-9.é]{0,12}") {
            let _ = expand(&word, 100);
        }
    }
}
