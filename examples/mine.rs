use duet::device::DType;
use duet::operator::*;
use duet::topology::build::Builder;
use duet::units::Bytes;
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n: u32 = a[2].parse().unwrap();
    let mut b = Builder::new("star");
    let gpus = b.gpus(n as usize);
    let s = b.switch("s");
    for g in gpus {
        b.link(g, s, "link", 50e9, 250e-9);
    }
    let t = b.build();
    let (kind, st) = if a[1] == "ring" {
        (Kind::AllGather, "ring")
    } else {
        (Kind::AllToAll, "direct")
    };
    let op = Operator {
        kind,
        shape: Shape::Bytes(Bytes::new((n as u64) << 20)),
        tp: n,
        dtype: DType::Bf16,
    };
    let p: Vec<u32> = (0..n).collect();
    let t0 = Instant::now();
    let sch = duet::strategy::parse(st)
        .unwrap()
        .build(&op, &t, &p)
        .unwrap();
    let t1 = Instant::now();
    let tl = duet::sim::simulate(&sch, &t, &Default::default()).unwrap();
    let t2 = Instant::now();
    println!(
        "{} tasks build {:?} sim {:?} makespan {}",
        sch.tasks.len(),
        t1 - t0,
        t2 - t1,
        tl.makespan
    );
}
