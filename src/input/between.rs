//! Paths as other files name them.

use std::path::{Component, Path, PathBuf};

/// The path from one folder to another place, with `/` between the parts; the place with its whole path
/// where only that leads there.
pub fn between(from: &Path, to: &Path) -> String {
    let parts = |path: &Path| -> Vec<String> {
        let named = path
            .components()
            .filter(|part| !matches!(part, Component::CurDir));
        named
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect()
    };
    if from.is_absolute() != to.is_absolute() {
        return whole(to);
    }
    let (a, b) = (parts(from), parts(to));
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    if a[same..].iter().any(|part| part == "..") {
        return whole(to);
    }
    let up = std::iter::repeat_n("..", a.len() - same);
    let path: Vec<&str> = up.chain(b[same..].iter().map(String::as_str)).collect();
    if path.is_empty() {
        ".".to_owned()
    } else {
        path.join("/")
    }
}

fn whole(path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.display().to_string()
}

/// The place that `path` names in a file of `folder`, without the steps up that it need not have.
pub fn beside(folder: &Path, path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in folder.join(path).components() {
        match (part, out.components().next_back()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                out.pop();
            }
            (part, _) => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_finds_its_figures() {
        let path = |from, to| between(Path::new(from), Path::new(to));
        assert_eq!(path("results/a", "results/a/plots"), "plots");
        assert_eq!(path("experiments/a", "./plots/a"), "../../plots/a");
        assert_eq!(path("", "plots"), "plots");
        assert_eq!(path("../a", "../a/plots"), "plots");
        assert_eq!(path("../a", "../b/plots"), "../b/plots");
        assert_eq!(path("a", "../plots"), "../../plots");
        assert_eq!(path("/x/y", "/x/plots"), "../plots");
        assert_eq!(path("x", "/tmp/plots"), "/tmp/plots");
        // Only the whole path leads from there to here.
        assert!(Path::new(&path("../a", "plots")).is_absolute());
    }

    #[test]
    fn there_and_back() {
        let path = |from, to| beside(Path::new(from), Path::new(to));
        assert_eq!(path("results/a", "../../x.yaml"), Path::new("x.yaml"));
        assert_eq!(path("../a", "../x.yaml"), Path::new("../x.yaml"));
        assert_eq!(path("a", "/x.yaml"), Path::new("/x.yaml"));
        assert_eq!(path("", "./x.yaml"), Path::new("x.yaml"));
    }
}
