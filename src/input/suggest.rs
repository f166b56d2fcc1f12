//! "Did you mean": the known name nearest to a misspelt one.

/// Optimal string alignment distance: insertions, deletions, replacements and swaps of neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// The name nearest to `word`, where one is near enough (about one slip in three characters, case
/// and `-`/`_` aside); the first of equals.
pub fn closest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let fold = |text: &str| -> Vec<char> {
        text.chars()
            .take(64)
            .flat_map(char::to_lowercase)
            .map(|c| if c == '_' { '-' } else { c })
            .collect()
    };
    let word = fold(word);
    let allowed = (word.len() / 3).max(1);
    names
        .into_iter()
        .filter(|name| !name.is_empty())
        .map(|name| (fold(name), name))
        .filter(|(folded, _)| folded.len().abs_diff(word.len()) <= allowed)
        .map(|(folded, name)| (distance(&word, &folded), name))
        .filter(|(far, _)| *far <= allowed && *far < word.len())
        .min_by_key(|(far, _)| *far)
        .map(|(_, name)| name)
}

/// The remedy for an unknown name: the nearest one, else all there are.
pub fn did_you_mean<'n>(
    word: &str,
    names: impl IntoIterator<Item = &'n str, IntoIter: Clone>,
) -> String {
    let names = names.into_iter();
    match closest(word, names.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known are {}", list(names)),
    }
}

/// Names for a message: `a`, `b` and `c`; beyond a dozen only the first.
pub fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    const SHOWN: usize = 12;
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        many if many.len() > SHOWN => format!(
            "{} and {} more",
            many[..SHOWN].join(", "),
            many.len() - SHOWN
        ),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest() {
        let keys = ["between", "bandwidth", "latency", "kind"];
        assert_eq!(closest("bandwith", keys), Some("bandwidth"));
        assert_eq!(closest("Latnecy", keys), Some("latency"));
        assert_eq!(closest("colour", keys), None);
        assert_eq!(closest("gpu9", ["gpu0", "gpu1"]), Some("gpu0"));
        assert_eq!(closest("", ["a"]), None);
    }

    #[test]
    fn lists_names() {
        assert_eq!(list([]), "none");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
        let many: Vec<String> = (0..20).map(|i| i.to_string()).collect();
        assert!(list(many.iter().map(String::as_str)).ends_with("`11` and 8 more"));
        assert_eq!(did_you_mean("x", ["aaaa"]), "known are `aaaa`");
    }
}
