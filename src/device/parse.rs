//! Profiles from files.
//!
//! A profile is a map of sections, each with its numbers and their `source:`. Nothing is optional
//! but `gemm.table`, `gemm.algorithms`, `library.table`, [`super::MoreCosts`] and [`super::Beside`], so that a new profile states every
//! number it uses:
//!
//! ```yaml
//! name: my-gpu
//! about: what it is, in one line
//! compute: { sms: 132, sustained: 0.84, peak: { bf16: 989 TFLOP/s }, source: datasheet }
//! memory: { hbm: 4.2 TB/s, size: 141 GB, l2: 50 MB, source: { hbm: measured, others: datasheet } }
//! gemm: { overhead: 7 us, tiles: { 256x128: 0.95 }, source: assumed }   # and a `table`
//! engines: { peer: 1, h2d: 1, d2h: 1, source: datasheet }
//! copies: { peer_copy: 396 GB/s, … }
//! costs: { submit_kernel: 4.5 us, … }
//! library: { blocks: 24, base: 31 us, step: 3.4 us, efficiency: { nvlink: 0.63 }, other: 0.8, … }
//! ```
//!
//! Field names are those of [`super::set`].

use std::path::Path;

use super::fields::{MAPS, optional, slots};
use super::section::{Section, entry_of, map_of};
use super::shipped::{PROFILES, names};
use super::{DType, Device, collectives, gemm, ideal, measured as gemms, plausible, source};
use crate::input::yaml::{self, Node};
use crate::input::{Diagnostics, Fields, decode, did_you_mean, read_file};
use crate::units::FlopsPerSecond;

/// Largest profile [bytes].
const LARGEST: u64 = 16 << 20;

/// Why there is no profile; the text is complete, with the place in the file and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No shipped profile of that name.
    #[error("`{name}` is not a GPU profile: {remedy}")]
    Unknown { name: String, remedy: String },
    /// The file cannot be read.
    #[error("cannot read the GPU profile `{path}`: {reason}")]
    Unreadable { path: String, reason: String },
    /// The file has mistakes.
    #[error("{0}")]
    Invalid(String),
}

/// The profile of that name, or from the file at that path (`./my-gpu.yaml`).
///
/// # Errors
/// [`DeviceError`]: an unknown name, an unreadable file or mistakes in it.
pub fn load(name_or_path: &str) -> Result<Device, DeviceError> {
    if name_or_path == "ideal" {
        return Ok(ideal());
    }
    if let Some((name, text)) = PROFILES.iter().find(|(name, _)| *name == name_or_path) {
        return parse(text, &format!("topologies/gpus/{name}.yaml"));
    }
    if !name_or_path.contains(['/', '.']) {
        return Err(DeviceError::Unknown {
            name: name_or_path.to_owned(),
            remedy: did_you_mean(name_or_path, names().iter().copied()),
        });
    }
    let bytes =
        read_file(Path::new(name_or_path), LARGEST).map_err(|error| DeviceError::Unreadable {
            path: name_or_path.to_owned(),
            reason: error.to_string(),
        })?;
    let text = decode(name_or_path, &bytes).map_err(DeviceError::Invalid)?;
    parse(text, name_or_path)
}

/// A profile from its text; `file` names it in messages.
///
/// # Errors
/// [`DeviceError::Invalid`]: all mistakes found, rendered.
pub fn parse(text: &str, file: &str) -> Result<Device, DeviceError> {
    let mut found = Diagnostics::default();
    let device = match yaml::parse(text) {
        Ok(node) => read(&node, &mut found),
        Err(mistake) => {
            found.push(mistake);
            None
        }
    };
    match device {
        Some(device) if found.is_empty() => Ok(device),
        _ => Err(DeviceError::Invalid(found.render(file, text))),
    }
}

/// A profile from its place in a larger file; `None` or mistakes pushed when it is wrong.
pub fn read(node: &Node, found: &mut Diagnostics) -> Option<Device> {
    let mut top = Fields::of(node, "a GPU profile", found)?;
    let mut device = ideal();
    let name = top.need("name", "my-gpu", found);
    let about = top.need("about", "what it is, in one line", found);
    for (key, node, text) in [
        ("name", name, &mut device.name),
        ("about", about, &mut device.about),
    ] {
        if let Some(word) = node.and_then(|node| node.word(key, found)) {
            word.clone_into(text);
        }
    }
    let mut sections = Vec::new();
    for (name, example) in SECTIONS {
        let node = top.need(name, example, found);
        if let Some(node) = node
            && let Some(section) = Section::of(name, node, found)
        {
            sections.push(section);
        }
    }
    top.finish(found);
    let mut times = Vec::new();
    device.peak.clear();
    for section in &sections {
        match section.name {
            "compute" => peaks(section, &mut device, found),
            "gemm" => {
                times = gemms::read(section, &mut device, found);
                stated(section, &mut device);
            }
            "library" => {
                efficiencies(section, &mut device, found);
                stated(section, &mut device);
            }
            "costs" | "copies" => stated(section, &mut device),
            _ => {}
        }
    }
    let library = sections.iter().find(|section| section.name == "library");
    let measured = library.and_then(|section| collectives::read(section, found));
    let mut known: Vec<String> = Vec::new();
    for (name, mut slot) in slots(&mut device) {
        known.push(name.clone());
        let Some((section, key)) = name.split_once('.') else {
            continue;
        };
        let Some(section) = sections.iter().find(|one| one.name == section) else {
            continue;
        };
        let value = match key.split_once('.') {
            Some((map, entry)) => section.get(map).and_then(|map| entry_of(map, entry)),
            None => section.need(key, slot.example(), found),
        };
        let Some(value) = value else { continue };
        let Some(text) = value.word(key, found) else {
            continue;
        };
        if let Err(error) = slot.write(text) {
            let (label, help) = error.split_once(": ").unwrap_or((&error, ""));
            let message = format!("`{key}` cannot be `{text}`");
            found.push(value.wrong(message, label).help(help));
        }
    }
    let known: Vec<&str> = known
        .iter()
        .map(String::as_str)
        .chain(MAPS)
        .chain([
            "gemm.tiles",
            "gemm.table",
            "gemm.algorithms",
            "library.table",
        ])
        .chain(optional())
        .collect();
    for section in &sections {
        section.finish(&known, found);
        source::check(section, found);
    }
    if found.is_empty() {
        plausible::check(&device, &sections, &times, found);
    }
    if found.is_empty() {
        gemm::correct(&mut device);
        if let Some(measured) = measured {
            collectives::correct(&mut device, measured);
        }
    }
    Some(device)
}

/// Sections of a profile with an example for who forgot one.
const SECTIONS: [(&str, &str); 7] = [
    (
        "compute",
        "{ sms: 132, sustained: 0.84, peak: { bf16: 989 TFLOP/s }, source: datasheet }",
    ),
    (
        "memory",
        "{ hbm: 4.2 TB/s, size: 141 GB, l2: 50 MB, source: datasheet }",
    ),
    (
        "gemm",
        "{ overhead: 7 us, tiles: { 256x128: 0.95 }, source: assumed }",
    ),
    ("engines", "{ peer: 1, h2d: 1, d2h: 1, source: datasheet }"),
    ("copies", "{ peer_copy: 396 GB/s, …, source: measured }"),
    ("costs", "{ submit_kernel: 3 us, …, source: assumed }"),
    (
        "library",
        "{ blocks: 24, base: 8 us, step: 3 us, efficiency: {}, other: 0.8, source: assumed }",
    ),
];

/// Names the element types of `compute.peak`; their values are read with all other fields.
fn peaks(section: &Section<'_>, device: &mut Device, found: &mut Diagnostics) {
    let names = DType::ALL.map(DType::name);
    for (key, _) in map_of(section, "peak", "{ bf16: 989 TFLOP/s }", found) {
        if let Some(at) = key.choice("peak", &names, found) {
            device.peak.push((DType::ALL[at], FlopsPerSecond::INFINITE));
        }
    }
    if device.peak.is_empty() && found.is_empty() {
        let mistake = section
            .node
            .wrong("`peak` names no element type", "expected at least one");
        found.push(mistake.help("write e.g. `peak: { bf16: 989 TFLOP/s }`"));
    }
}

/// Makes room for the numbers that the section states beyond those it must; their values are read with
/// all other fields.
fn stated(section: &Section<'_>, device: &mut Device) {
    for name in optional() {
        if let Some((of, key)) = name.split_once('.')
            && of == section.name
            && section.get(key).is_some()
        {
            device.state(name);
        }
    }
}

/// Names the link kinds of `library.efficiency`.
fn efficiencies(section: &Section<'_>, device: &mut Device, found: &mut Diagnostics) {
    for (key, _) in map_of(section, "efficiency", "{ nvlink: 0.8 }", found) {
        if let Some(kind) = key.word("efficiency", found) {
            device.library.efficiency.push((kind.to_owned(), 1.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("../../topologies/gpus/h200.yaml");

    /// The message for the H200 profile with `from` replaced by `to`.
    fn say(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        match parse(&GOOD.replacen(from, to, 1), "h200.yaml") {
            Ok(_) => panic!("accepted {to}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn reads_every_section() {
        let gpu = parse(GOOD, "h200.yaml").unwrap();
        assert_eq!(
            (gpu.sms, gpu.tiles.len(), gpu.gemm_table.len()),
            (132, 8, 40)
        );
        assert_eq!(gpu.peak.len(), 4);
        assert_eq!(gpu.costs.copy_start.get(), 3.7e-6);
        assert_eq!(gpu.library.efficiency.len(), 2);
        assert_eq!(gpu.engines.peer, 2);
        let point = gpu
            .gemm_table
            .iter()
            .find(|p| (p.m, p.n, p.k) == (512, 6144, 12288));
        assert!((point.unwrap().time.get() - 117e-6).abs() < 1e-12); // 133 us − 16 us of launch
    }

    #[test]
    fn a_number_without_a_source_is_refused() {
        let error = say("    lane: fitted with copy_start\n", "");
        assert!(error.contains("`lane` has no source"), "{error}");
        assert!(error.contains("h200.yaml:68:3"), "{error}");
        assert!(error.contains("add `lane: …` or `others: …`"), "{error}");
        let error = say("    others: datasheet\n", "");
        assert!(error.contains("`size` has no source"), "{error}");
        assert!(error.contains("`l2` has no source"), "{error}");
        let error = say("sms: datasheet", "sms: somebody told me");
        assert!(
            error.contains("expected to start with one of `datasheet`"),
            "{error}"
        );
        let error = say("    lane: fitted", "    lanes: fitted");
        assert!(error.contains("did you mean `lane`?"), "{error}");
    }

    #[test]
    fn mistakes_have_place_and_remedy() {
        for (from, to, at, remedy) in [
            ("hbm: 4.2 TB/s", "hbm: 4.2", "4.2", "4.2 GB/s"),
            (
                "hbm: 4.2 TB/s",
                "hmb: 4.2 TB/s",
                "hmb",
                "did you mean `hbm`?",
            ),
            ("sms: 132", "sms: 0", "0", "at least 1"),
            ("sustained: 0.84", "sustained: 1.84", "1.84", "at most 1"),
            ("bf16: 989", "bf17: 989", "bf17", "did you mean `bf16`?"),
            ("256x128: 0.95", "256: 0.95", "256", "256x128"),
            ("256x128: 0.95", "256x128: 95", "95", "at most 1"),
            (
                "128: [35 us, 55 us, 68 us, 46 us, 38 us]",
                "128: [35 us]",
                "128: [35 us]",
                "one time per column",
            ),
            (
                "[35 us, 55 us",
                "[15 us, 55 us",
                "15 us",
                "more than `launch`",
            ),
            ("dtype: bf16", "dtype: int8", "int8", "`fp16`"),
            ("memory:", "memroy:", "memroy", "did you mean `memory`?"),
            ("lane: 0.9 us", "lane: {}", "{}", "single value"),
        ] {
            let error = say(from, to);
            let text = GOOD.replacen(from, to, 1);
            let start = GOOD.find(from).unwrap();
            let start = start + text[start..].find(at).unwrap();
            let line = text[..start].matches('\n').count() + 1;
            let column = start - text[..start].rfind('\n').unwrap();
            let place = format!("h200.yaml:{line}:{column}");
            assert!(
                error.contains(&place),
                "{from} → {to} not at {place}: {error}"
            );
            assert!(error.contains(remedy), "{from} → {to}: {error}");
        }
        let error = parse("[]", "x.yaml").unwrap_err().to_string();
        assert!(error.contains("expected a map"), "{error}");
    }

    #[test]
    fn the_documented_profile_is_accepted() {
        let page = include_str!("../../docs/gpus.md");
        let text = page.split("```yaml\n").nth(1).unwrap();
        let text = text.split("```").next().unwrap();
        let gpu = parse(text, "docs/gpus.md").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((gpu.gemm_table.len(), gpu.tiles.len()), (3, 2));
        for kind in source::KINDS {
            assert!(page.contains(&format!("| `{kind}` |")), "{kind}");
        }
    }

    #[test]
    fn unknown_names_and_files() {
        let say = |name: &str| load(name).unwrap_err().to_string();
        assert_eq!(
            say("h2000"),
            "`h2000` is not a GPU profile: did you mean `h200`?"
        );
        assert!(say("./none.yaml").starts_with("cannot read the GPU profile `./none.yaml`"));
    }

    proptest::proptest! {
        /// Whatever stands in place of a stretch of a good file: an answer, and a usable device.
        #[test]
        fn never_panics(at in 0..GOOD.len(), long in 0..40usize, with in "[-0-9a-z:{},.\\[\\] xX\n#&*]{0,12}") {
            let floor = |mut at: usize| {
                while !GOOD.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let (from, to) = (floor(at), floor((at + long).min(GOOD.len())));
            let text = format!("{}{with}{}", &GOOD[..from], &GOOD[to..]);
            if let Ok(gpu) = parse(&text, "h200.yaml") {
                for (dtype, _) in &gpu.peak {
                    let time = gemm::gemm(&gpu, *dtype, 4096, 8192, 8192, gpu.sms).unwrap();
                    proptest::prop_assert!(time.seconds > 0.0 && time.seconds.is_finite());
                }
            }
        }
    }
}
