//! What a time belongs to: a group is an operator with its ranks, path and launch mode; a case is a
//! group under one strategy, or one of the group's references.
//!
//! ```
//! use duet::validate::key::Case;
//! let text = "ag-gemm/8192x4096x8192/bf16/4on2/host:2MiB/stream/interdecom:d=4";
//! let case: Case = text.parse().unwrap();
//! assert_eq!(*case.group.placement, [0, 0, 1, 1]); // ranks in blocks
//! assert!(case.group.is_virtual());
//! assert_eq!(case.to_string(), text);
//! ```

mod subject;

use std::fmt;
use std::str::FromStr;

pub use subject::{Reference, Subject};

use crate::device::DType;
use crate::gpu::campaign::{choice_of, path_name, products_name, read_path};
use crate::gpu::plan::{Path, Products};
use crate::operator::{Kind, Operator, Shape};
use crate::sim::LaunchMode;
use crate::topology::paths::PathChoice;

/// A case without its strategy: rows of one group are measured in the same rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// A fused operator.
    pub operator: Operator,
    /// Rank → GPU number.
    pub placement: Box<[u32]>,
    /// Of transfers between GPUs.
    pub path: Path,
    pub launch: LaunchMode,
    /// Who multiplies.
    pub products: Products,
}

/// Rank → GPU number, `tp` ranks in blocks of equal size (to one) on `gpus` GPUs.
pub fn blocks(tp: u32, gpus: u32) -> Box<[u32]> {
    let on = |rank: u32| (u64::from(rank) * u64::from(gpus) / u64::from(tp.max(1))) as u32;
    (0..tp).map(on).collect()
}

impl Group {
    /// Different GPUs with ranks on them.
    pub fn gpus(&self) -> u32 {
        let mut gpus = self.placement.to_vec();
        gpus.sort_unstable();
        gpus.dedup();
        gpus.len() as u32
    }

    /// The path as the model chooses it.
    pub fn choice(&self) -> PathChoice {
        choice_of(&self.path)
    }

    /// Whether ranks share a GPU: what they exchange within it crosses no link.
    pub fn is_virtual(&self) -> bool {
        self.gpus() < self.operator.tp
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = &self.operator;
        let shape = match operator.shape {
            Shape::Gemm { m, n, k } => format!("{m}x{n}x{k}"),
            Shape::Bytes(bytes) => format!("{}B", bytes.get()),
        };
        write!(f, "{}/{shape}/{}/", operator.kind, operator.dtype.name())?;
        let gpus = self.gpus();
        if self.placement == blocks(operator.tp, gpus) {
            write!(f, "{}on{gpus}", operator.tp)?;
        } else {
            let placement: Vec<String> = self.placement.iter().map(u32::to_string).collect();
            write!(f, "{}at{}", operator.tp, placement.join("-"))?;
        }
        write!(f, "/{}/{}", path_name(&self.path), self.launch.name())?;
        match self.products {
            Products::Library => Ok(()),
            own => write!(f, ":{}", products_name(own)),
        }
    }
}

impl FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str, part: &str| format!("`{part}` is no {what}");
        let parts: Vec<&str> = text.split('/').collect();
        let [kind, shape, dtype, ranks, path, launch] = parts[..] else {
            return Err(format!(
                "`{text}` is no group: write OPERATOR/MxNxK/DTYPE/RANKSonGPUS/PATH/LAUNCH"
            ));
        };
        let kind: Kind = kind.parse().map_err(|_| wrong("operator", kind))?;
        let sizes: Vec<u64> = shape.split('x').flat_map(str::parse).collect();
        let [m, n, k] = sizes[..] else {
            return Err(format!("`{shape}` is no shape: write MxNxK"));
        };
        let dtype = (DType::ALL.into_iter().find(|known| known.name() == dtype))
            .ok_or_else(|| wrong("element type", dtype))?;
        let (tp, placement) = placed(ranks).ok_or_else(|| wrong("placement of ranks", ranks))?;
        let operator = Operator::gemm(kind, m, n, k, tp, dtype).map_err(|e| e.to_string())?;
        let own = format!(":{}", products_name(Products::Own));
        let (launch, products) = match launch.strip_suffix(&own) {
            Some(launch) => (launch, Products::Own),
            None => (launch, Products::Library),
        };
        Ok(Self {
            products,
            operator,
            placement,
            path: read_path(path).map_err(|error| error.to_string())?,
            launch: read_launch(launch).ok_or_else(|| wrong("launch mode", launch))?,
        })
    }
}

/// `4on2`, or `4at0-1-0-1`.
fn placed(text: &str) -> Option<(u32, Box<[u32]>)> {
    // The number of ranks is a claim of a file; more than any operator may have is refused here.
    let most = |tp: &u32| (1..=u32::from(u16::MAX)).contains(tp);
    if let Some((tp, gpus)) = text.split_once("on") {
        let tp: u32 = tp.parse().ok().filter(most)?;
        let gpus: u32 = gpus.parse().ok().filter(|gpus| (1..=tp).contains(gpus))?;
        return Some((tp, blocks(tp, gpus)));
    }
    let (tp, list) = text.split_once("at")?;
    let list: Result<Box<[u32]>, _> = list.split('-').map(str::parse).collect();
    let (tp, list) = (tp.parse().ok().filter(most)?, list.ok()?);
    (list.len() == tp as usize).then_some((tp, list))
}

/// The launch mode of a name.
pub fn read_launch(text: &str) -> Option<LaunchMode> {
    (LaunchMode::ALL.into_iter()).find(|launch| launch.name() == text)
}

/// A group under one strategy, or a reference of the group.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub group: Group,
    pub subject: Subject,
}

impl Case {
    /// The strategy as on the command line; `None` for a reference.
    pub fn strategy(&self) -> Option<&str> {
        match &self.subject {
            Subject::Strategy(name) => Some(name),
            Subject::Reference(_) => None,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.subject)
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (group, subject) = text
            .rsplit_once('/')
            .ok_or_else(|| format!("`{text}` is no case: write a group, `/` and a strategy"))?;
        let (group, subject): (Group, Subject) = (group.parse()?, subject.parse()?);
        match subject {
            Subject::Reference(reference) if !reference.is_of(group.products) => Err(format!(
                "`{subject}` is of groups that Duet's own kernels multiply, and `{group}` is none: their launch mode ends in `:{}`",
                products_name(Products::Own)
            )),
            _ => Ok(Self { group, subject }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_lie_in_blocks() {
        assert_eq!(*blocks(4, 2), [0, 0, 1, 1]);
        assert_eq!(*blocks(2, 2), [0, 1]);
        assert_eq!(*blocks(8, 1), [0; 8]);
        assert!(blocks(0, 1).is_empty());
    }

    #[test]
    fn keys_are_read_back() {
        for text in [
            "ag-gemm/8192x4096x8192/bf16/2on2/p2p/stream/interdecom:d=4,comm=direct",
            "gemm-rs/128x64x32/fp16/4at0-1-0-1/hybrid:0.1:2MiB/graph/sequential",
            "gemm-ar/128x64x32/bf16/8on1/p2p/graph/reference:sequential-copies",
            "gemm-rs/128x64x32/bf16/2on2/p2p/stream:duet/reference:gemm-own",
        ] {
            let case: Case = text.parse().unwrap();
            assert_eq!(case.to_string(), text);
        }
        // A placement in blocks has one name only.
        let case: Case = "ag-gemm/64x64x64/bf16/2at0-1/p2p/stream/sequential"
            .parse()
            .unwrap();
        assert_eq!(
            case.to_string(),
            "ag-gemm/64x64x64/bf16/2on2/p2p/stream/sequential"
        );
    }

    #[test]
    fn mistakes_are_named() {
        let says = |text: &str| text.parse::<Case>().unwrap_err();
        let group = "ag-gemm/64x64x64/bf16/2on2/p2p/stream";
        assert!(says("nothing").contains("is no case"));
        assert!(says("a/b").contains("is no group"));
        assert!(says(&format!("{group}/reference:gem")).contains("did you mean `reference:gemm`"));
        assert!(says(&format!("{group}/interdecm")).contains("interdecom"));
        assert_eq!(
            says(&format!("{group}/reference:gemm-own")),
            format!(
                "`reference:gemm-own` is of groups that Duet's own kernels multiply, and `{group}` is none: their launch mode ends in `:duet`"
            )
        );
        for (part, with, what) in [
            ("ag-gemm", "ag-gem", "is no operator"),
            ("64x64x64", "64x64", "is no shape"),
            ("64x64x64", "63x64x64", "63"),
            ("bf16", "bf17", "is no element type"),
            ("2on2", "2on3", "is no placement of ranks"),
            ("2on2", "4294967295on2", "is no placement of ranks"),
            ("2on2", "2at0", "is no placement of ranks"),
            ("p2p", "p2q", "is no path"),
            ("stream", "steam", "is no launch mode"),
        ] {
            let text = group.replacen(part, with, 1) + "/sequential";
            assert!(says(&text).contains(what), "{text}: {}", says(&text));
        }
    }
}
