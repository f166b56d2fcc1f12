//! Results case by case: what each strategy took, and what kind of strategy it is.

use std::sync::Arc;

use crate::experiment::results::{Results, Row};
use crate::operator::{Kind, Operator};
use crate::predict::{Pick, Terms};
use crate::sim::LaunchMode;
use crate::strategy::{self, Choice};

/// Times this close are sums of the same parts.
const ROUNDING: f64 = 1e-12;

/// What kind of overlap a strategy is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// One after the other.
    Sequential,
    /// Cut into smaller GEMMs by the library: d smaller operators, or a GEMM for every partial sum
    /// that arrives.
    Decomposition,
    /// One kernel whose tiles wait for, or send, their share.
    Fusion,
    /// Bare collectives and whatever else.
    Other,
}

impl Family {
    /// Its name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Decomposition => "decomposition",
            Self::Fusion => "fusion",
            Self::Other => "other",
        }
    }

    /// The family of a strategy by its name.
    pub fn of(strategy: &str) -> Self {
        match strategy {
            "sequential" => Self::Sequential,
            "interdecom" | "ring-accumulate" => Self::Decomposition,
            name if name.starts_with("fusion-") => Self::Fusion,
            _ => Self::Other,
        }
    }
}

/// One strategy of a case.
#[derive(Clone, Debug)]
pub struct Run {
    /// As written on the command line.
    pub strategy: Arc<str>,
    pub choice: Choice,
    pub family: Family,
    /// d of a decomposition by library calls; 1 for sequential.
    pub pieces: Option<u32>,
    /// Makespan \[s\].
    pub seconds: f64,
}

impl Run {
    /// Whether its parameters are the usual ones: sequential, a decomposition by the library, or a
    /// fusion with its default parameters.
    pub fn is_usual(&self) -> bool {
        self.pieces.is_some() || (self.family == Family::Fusion && *self.strategy == *self.class())
    }

    /// The strategy without its parameters: `interdecom`.
    pub fn class(&self) -> &'static str {
        self.choice.strategy().name()
    }
}

/// One operator on one machine under all strategies that apply.
#[derive(Clone, Debug)]
pub struct Case {
    pub grid: Arc<str>,
    /// Number within the experiment, from 1.
    pub number: u32,
    pub topology: Arc<str>,
    /// What was changed on the topology: path and value.
    pub sets: Vec<(Arc<str>, Arc<str>)>,
    pub operator: Operator,
    pub launch: LaunchMode,
    /// Name and value of each axis that the grid has.
    pub axes: Vec<(Arc<str>, u64)>,
    /// Fastest unsplit GEMM of one rank \[s\].
    pub unsplit_gemm: f64,
    pub lower_bound: Option<f64>,
    /// In the order of rows; at least one.
    pub runs: Vec<Run>,
}

impl Case {
    /// The strategies (parameters aside) that no other beats by more than a share of `level`.
    pub fn level(&self, level: f64) -> Vec<&'static str> {
        let limit = self.best().seconds * (1.0 + level + ROUNDING);
        let mut classes: Vec<&'static str> = Vec::new();
        for run in self.runs.iter().filter(|run| run.seconds <= limit) {
            if !classes.contains(&run.class()) {
                classes.push(run.class());
            }
        }
        classes
    }

    /// The terms of a closed form under the case's launch.
    pub fn terms(&self, terms: &Terms) -> Terms {
        terms.launched_as_graph(self.launch == LaunchMode::Graph)
    }

    /// The fastest; the first of equals.
    pub fn best(&self) -> &Run {
        fastest(&self.runs, |_| true).unwrap_or(&self.runs[0])
    }

    /// The fastest of those that the selector can choose.
    pub fn best_offered(&self) -> Option<&Run> {
        let kind = self.operator.kind;
        fastest(&self.runs, |run| Pick::offers(kind, &run.choice))
    }

    /// The fastest of a family.
    pub fn best_of(&self, family: Family) -> Option<&Run> {
        fastest(&self.runs, |run| run.family == family)
    }

    /// The fastest with one strategy, whatever its parameters.
    pub fn best_in(&self, class: &str) -> Option<&Run> {
        fastest(&self.runs, |run| run.class() == class)
    }

    /// Time of the undivided, unoverlapped operator \[s\].
    pub fn sequential(&self) -> Option<f64> {
        self.best_of(Family::Sequential).map(|run| run.seconds)
    }

    /// The run of a strategy as written on the command line.
    pub fn run(&self, strategy: &str) -> Option<&Run> {
        self.runs.iter().find(|run| &*run.strategy == strategy)
    }

    /// Decompositions by library calls, sequential as d = 1; ascending by d.
    pub fn decompositions(&self) -> Vec<(u32, f64)> {
        let pieces = |run: &Run| run.pieces.map(|d| (d, run.seconds));
        let mut all: Vec<_> = self.runs.iter().filter_map(pieces).collect();
        all.sort_by_key(|(d, _)| *d);
        all.dedup_by_key(|(d, _)| *d);
        all
    }

    /// The value of an axis.
    pub fn axis(&self, name: &str) -> Option<u64> {
        let mut axes = self.axes.iter();
        axes.find(|(axis, _)| &**axis == name)
            .map(|(_, value)| *value)
    }

    /// λ = T_comp / T_comm: the unsplit GEMM over what sequential adds to it.
    pub fn lambda(&self) -> Option<f64> {
        let communication = self.sequential()? - self.unsplit_gemm;
        (communication > 0.0).then(|| self.unsplit_gemm / communication)
    }

    /// In one line: `ag-gemm m=8192 n=49152 k=12288 tp=8 bf16 on a6000-pairs-8`.
    pub fn title(&self) -> String {
        let mut text = format!("{} on {}", self.operator, self.topology);
        for (path, value) in &self.sets {
            text.push_str(&format!(" with {path}={value}"));
        }
        text
    }
}

fn fastest(runs: &[Run], wanted: impl Fn(&Run) -> bool) -> Option<&Run> {
    let runs = runs.iter().filter(|run| wanted(run));
    runs.reduce(
        |best, run| match run.seconds < best.seconds * (1.0 - ROUNDING) {
            true => run,
            false => best,
        },
    )
}

/// Cases of one operator on one machine; what is averaged and drawn together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    pub kind: Kind,
    pub tp: u32,
    pub topology: Arc<str>,
}

impl Group {
    /// The group of a case.
    pub fn of(case: &Case) -> Self {
        Self {
            kind: case.operator.kind,
            tp: case.operator.tp,
            topology: Arc::clone(&case.topology),
        }
    }

    /// `AG+GEMM, TP 8`.
    pub fn title(&self) -> String {
        format!("{}, TP {}", operator_title(self.kind), self.tp)
    }
}

/// An operator as papers write it: `AG+GEMM`.
pub const fn operator_title(kind: Kind) -> &'static str {
    match kind {
        Kind::AgGemm => "AG+GEMM",
        Kind::GemmRs => "GEMM+RS",
        Kind::GemmAr => "GEMM+AR",
        Kind::AllGather => "all-gather",
        Kind::ReduceScatter => "reduce-scatter",
        Kind::AllReduce => "all-reduce",
        Kind::AllToAll => "all-to-all",
        Kind::PointToPoint => "point-to-point",
    }
}

/// The groups of cases, sorted.
pub fn groups<'c>(cases: impl IntoIterator<Item = &'c Case>) -> Vec<Group> {
    let mut all: Vec<Group> = cases.into_iter().map(Group::of).collect();
    all.sort();
    all.dedup();
    all
}

/// Reads the rows case by case; cases to which no strategy applies are left out.
pub(super) fn cases(results: &Results) -> Vec<Case> {
    results
        .cases()
        .filter_map(|rows| case(results, rows))
        .collect()
}

fn case(results: &Results, rows: &[Row]) -> Option<Case> {
    let first = rows.first()?;
    let runs: Vec<Run> = rows.iter().filter_map(run).collect();
    let sets = results.sets.iter().zip(&first.sets);
    let axes = results.axes.iter().zip(&first.axes);
    (!runs.is_empty()).then(|| Case {
        grid: Arc::clone(&first.grid),
        number: first.case,
        topology: Arc::clone(&first.topology),
        sets: sets
            .filter_map(|(path, value)| Some((path.as_str().into(), value.clone()?)))
            .collect(),
        operator: first.operator,
        launch: first.launch,
        axes: axes
            .filter_map(|(name, value)| Some((name.as_str().into(), (*value)?)))
            .collect(),
        unsplit_gemm: first.unsplit_gemm,
        lower_bound: first.lower_bound,
        runs,
    })
}

fn run(row: &Row) -> Option<Run> {
    let seconds = row.makespan().filter(|seconds| *seconds > 0.0)?;
    let choice = strategy::parse(&row.strategy).ok()?;
    let class = choice.strategy().name();
    let family = Family::of(class);
    let pieces = match family {
        Family::Sequential => Some(1),
        Family::Decomposition if choice.params().is("comm", "library") => {
            Some(choice.params().count("d"))
        }
        _ => None,
    };
    Some(Run {
        strategy: Arc::clone(&row.strategy),
        choice,
        family,
        pieces,
        seconds,
    })
}
