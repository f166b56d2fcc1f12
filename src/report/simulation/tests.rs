//! Renderings of a made-up run.

use super::table::{MOST_ROWS, critical};
use super::*;
use crate::report::fixture;
use crate::report::grid::{Look, finish};

fn with<T>(show: impl FnOnce(&Simulation<'_>) -> T) -> T {
    let (topology, schedule, timeline) =
        (fixture::pair(), fixture::schedule(), fixture::timeline());
    let comparison = fixture::comparison("pair");
    show(&Simulation {
        topology: &topology,
        schedule: &schedule,
        timeline: &timeline,
        outcome: &fixture::outcome("toy", timeline.makespan, 14e-6),
        expected_error: &comparison.expected_error,
        launch: "graph",
        unsplit_gemm: 2.5e-6,
        lower_bound: None,
        critical_path: vec![TaskId(1), TaskId(2)],
    })
}

#[test]
fn shows_where_the_time_goes() {
    let look = Look {
        width: 80,
        color: false,
    };
    let text = with(|simulation| super::table(simulation, true, &look));
    insta::assert_snapshot!(finish(&text, false));
}

#[test]
fn json_has_the_documented_fields() {
    let text = with(|simulation| json(simulation, true)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for field in [
        "strategy",
        "topology",
        "operator",
        "makespan_s",
        "gemm_only_s",
        "comm_only_s",
        "ect_s",
        "overlap_efficiency",
        "bottleneck",
        "expected_error",
    ] {
        assert!(!json[field].is_null(), "{field}");
    }
    assert_eq!(json["tasks"], 4);
    assert_eq!(json["links"][0]["name"], "gpu0->gpu1");
    // 6.24288 of 12 microseconds.
    assert_eq!(json["links"][0]["busy_fraction"], 6.242_88 / 12.0);
    assert_eq!(json["critical_path"][1]["task"], 2);
    assert_eq!(json["critical_path"][1]["bound_by"], "compute");
    assert_eq!(json["timeline"].as_array().unwrap().len(), 4);
    let short = with(json_value);
    assert!(short.get("timeline").is_none());
}

fn json_value(simulation: &Simulation<'_>) -> serde_json::Value {
    serde_json::from_str(&json(simulation, false).unwrap()).unwrap()
}

#[test]
fn csv_has_a_line_per_task() {
    insta::assert_snapshot!(with(csv));
}

#[test]
fn a_long_critical_path_is_shown_by_its_ends() {
    let look = Look {
        width: 80,
        color: false,
    };
    let text = with(|simulation| {
        let long = Simulation {
            critical_path: simulation.critical_path.repeat(10),
            ..*simulation
        };
        critical(&long).draw(&look)
    });
    assert_eq!(text.lines().count(), 2 + MOST_ROWS + 1);
    assert!(text.contains("… 8 more …"));
}
