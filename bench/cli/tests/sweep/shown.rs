//! What is printed.

use std::path::Path;

use crate::place::Place;
use crate::program::text;

#[test]
fn what_is_printed_for_programs_and_for_nobody() {
    let place = Place::new(5);
    let (events, output) = place.events(&place.out("json"), &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!((&events[0]["event"], &events[0]["cells"]), (&"start".into(), &2.into()));
    let finish = events.last().unwrap();
    assert_eq!((&finish["event"], &finish["statuses"]["done"]), (&"finish".into(), &2.into()));
    assert!(Path::new(finish["report"].as_str().unwrap()).is_file());
    for event in &events[1..events.len() - 1] {
        for field in ["event", "key", "workload", "encoding", "seed"] {
            assert!(!event[field].is_null(), "{field}: {event}");
        }
    }
    assert!(output.stderr.is_empty(), "{}", text(&output));

    let quiet = place.run(&place.out("quiet"), &["--quiet"]);
    assert_eq!(text(&quiet).lines().count(), 1, "{}", text(&quiet));
    let plain = place.run(&place.out("plain"), &[]);
    assert!(!text(&plain).contains('\u{1b}'), "colours without a terminal");
}
