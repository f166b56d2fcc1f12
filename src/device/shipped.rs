//! The profiles in the binary, so that `duet` runs from anywhere. To add one: put the file into
//! `topologies/gpus/` and its name here.

/// Name and text of profile files.
macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        &[$((
            $name,
            include_str!(concat!("../../topologies/gpus/", $name, ".yaml")),
        )),*]
    };
}

/// Every profile file, by name.
pub(super) const PROFILES: &[(&str, &str)] = profiles![
    "a100-pcie-80g",
    "a100-sxm-80g",
    "a800",
    "b200",
    "gb200",
    "h100-sxm",
    "h20",
    "h200",
    "h200-datasheet",
    "h800",
    "l20",
    "l40s",
    "mi300x",
    "rtx-4090",
    "rtx-a6000",
    "v100-sxm2",
    "v100-sxm3",
];

/// Names that [`super::load`] knows without a file: `ideal` and the shipped profiles.
pub fn names() -> Vec<&'static str> {
    std::iter::once("ideal")
        .chain(PROFILES.iter().map(|(name, _)| *name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::load;

    #[test]
    fn the_list_is_the_directory() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/gpus");
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort_by_key(|file| file.trim_end_matches(".yaml").to_owned());
        let listed: Vec<String> = PROFILES
            .iter()
            .map(|(name, _)| format!("{name}.yaml"))
            .collect();
        assert_eq!(
            files, listed,
            "list and directory differ (both sorted by name)"
        );
    }

    #[test]
    fn every_profile_loads_under_its_file_name() {
        for (name, _) in PROFILES {
            let gpu = load(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(gpu.name, *name);
            assert!(!gpu.about.is_empty());
        }
    }
}
