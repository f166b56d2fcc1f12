//! Any bytes as a schedule file: an answer, never a panic; what is read is written and read again
//! as the same; what the verifier accepts computes the product.

#![no_main]

use duet::input::decode;
use duet::schedule::verify::{GpuSms, Limits, Verified, verify};
use duet::schedule::{InterpretError, interpret, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = decode("f.json", bytes) else {
        return;
    };
    let schedule = match json::read(text, "f.json") {
        Ok(schedule) => schedule,
        Err(error) => {
            assert!(error.to_string().contains("f.json:"));
            return;
        }
    };
    let again = json::read(&json::write(&schedule), "again.json").expect("what was written");
    assert!(again == schedule);
    let sms = |_| GpuSms {
        total: 132,
        collective: 16,
    };
    let limits = Limits {
        budget: 1_000_000,
        sms: Some(&sms),
    };
    if let Ok(Verified::Yes { .. }) = verify(&schedule, &limits) {
        match interpret(&schedule, 1, 7) {
            Ok(()) | Err(InterpretError::TooLarge { .. }) => {}
            Err(error) => panic!("accepted but wrong: {error}"),
        }
    }
});
