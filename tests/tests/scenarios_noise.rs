//! Networks that lose, double, delay and reorder at random, over many seeds.

use std::time::Duration;

use simnet::LinkModel;
use tandem_tests::scene::{DELAY, Scene, Setup, ms};
use tandem_tests::ua::Script;

/// Who ends the call.
#[derive(Clone, Copy, Debug)]
enum Ends {
    Caller,
    Callee,
    Cancel,
}

/// One call over such links; whether it was answered. That nothing is left is for `finish`.
fn call(link: LinkModel, seed: u64, ends: Ends) -> bool {
    let mut scene = Scene::new(Setup {
        link,
        ..Setup::lab(seed)
    });
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = match ends {
            // When every response before the CANCEL is lost, none may be sent (RFC 3261 section 9.1);
            // then it is the phone itself that stops ringing.
            Ends::Cancel => Script::default()
                .then(2, 100)
                .then(10, 180)
                .then(120_000, 480),
            _ => Script::default()
                .then(2, 100)
                .then(10, 180)
                .then_sdp(500, 200),
        };
    });
    scene.call("bridge");
    let (at, host) = match ends {
        Ends::Caller => (40_000, scene.caller),
        Ends::Callee => (40_000, scene.callee),
        Ends::Cancel => (5_000, scene.caller),
    };
    scene.at(at, host, |ua, now| ua.hang_up(now, 0));
    // Should the callee not have heard of the call, the caller ends it.
    scene.at(50_000, scene.caller, |ua, now| ua.hang_up(now, 0));
    scene.finish();
    scene.alice().result("INVITE") == Some(200)
}

const ENDS: [Ends; 3] = [Ends::Caller, Ends::Callee, Ends::Cancel];

/// Seeds for each way to end a call.
const SEEDS: u64 = 40;
/// How many of their calls can be answered: all but the cancelled ones.
const ANSWERABLE: usize = 80;

/// Every way to end a call, with every seed; how many were answered.
fn storm(link: LinkModel) -> usize {
    ENDS.iter()
        .flat_map(|ends| (0..SEEDS).map(move |seed| (seed, *ends)))
        .filter(|(seed, ends)| call(link, *seed, *ends))
        .count()
}

fn lossy(percent: u32) -> usize {
    storm(LinkModel::with_delay(DELAY).lossy(f64::from(percent) / 100.0))
}

#[test]
fn loss_of_5_percent() {
    assert_eq!(lossy(5), ANSWERABLE);
}

#[test]
fn loss_of_10_percent() {
    assert_eq!(lossy(10), ANSWERABLE);
}

#[test]
fn loss_of_15_percent() {
    assert_eq!(lossy(15), ANSWERABLE);
}

#[test]
fn loss_of_20_percent() {
    assert_eq!(lossy(20), ANSWERABLE);
}

#[test]
fn loss_of_30_percent() {
    // Seven INVITEs, then eleven answers, on each leg: hardly a call fails even now.
    assert!(lossy(30) >= ANSWERABLE - 4);
}

#[test]
fn reordering() {
    let link = LinkModel::with_delay(DELAY)
        .jittery(ms(5))
        .reordering(0.3, ms(60));
    assert_eq!(storm(link), ANSWERABLE);
}

#[test]
fn long_jitter() {
    let link = LinkModel::with_delay(ms(200)).jittery(ms(800));
    assert_eq!(storm(link), ANSWERABLE);
}

#[test]
fn everything_comes_twice() {
    assert_eq!(
        storm(
            LinkModel::with_delay(DELAY)
                .jittery(ms(30))
                .duplicating(1.0)
        ),
        ANSWERABLE
    );
}

#[test]
fn all_at_once() {
    let link = LinkModel::with_delay(ms(40))
        .jittery(ms(60))
        .lossy(0.15)
        .duplicating(0.15)
        .reordering(0.15, ms(700));
    assert!(storm(link) >= ANSWERABLE - 2);
}

#[test]
fn a_noisy_run_repeats_to_the_byte() {
    let run = |seed| {
        let link = LinkModel::with_delay(DELAY)
            .lossy(0.2)
            .duplicating(0.2)
            .jittery(ms(50));
        let mut scene = Scene::new(Setup {
            link,
            ..Setup::lab(seed)
        });
        scene.call("bridge");
        scene.at(20_000, scene.caller, |ua, now| ua.hang_up(now, 0));
        scene.finish();
        scene.world.trace().clone()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

/// Holds and resumes over bad links: whatever is lost, the call comes to its end.
#[test]
fn holds_over_bad_links() {
    for seed in 0..10 {
        let link = LinkModel::with_delay(DELAY)
            .lossy(0.15)
            .reordering(0.1, ms(100));
        let mut scene = Scene::new(Setup {
            link,
            ..Setup::lab(seed)
        });
        let (caller, callee) = (scene.caller, scene.callee);
        scene.call("bridge");
        for (at, host, direction) in [
            (10_000, caller, Some("sendonly")),
            (30_000, callee, Some("inactive")),
            (50_000, caller, None),
        ] {
            scene.at(at, host, move |ua, now| {
                let up = |d: &tandem_tests::ua::Dialog| {
                    d.state == tandem_tests::ua::DialogState::Confirmed && d.open_offer.is_none()
                };
                if ua.dialogs().first().is_some_and(up) {
                    ua.dialog_mut(0).media.direction = direction;
                    ua.reinvite(now, 0);
                }
            });
        }
        scene.at(90_000, caller, |ua, now| ua.hang_up(now, 0));
        scene.finish();
    }
}

/// A hundred calls over bad links at once, hung up as they come.
#[test]
fn a_hundred_calls_over_bad_links() {
    let link = LinkModel::with_delay(DELAY)
        .lossy(0.1)
        .duplicating(0.05)
        .jittery(ms(20));
    let mut scene = Scene::new(Setup {
        link,
        ..Setup::lab(11)
    });
    for n in 0..100_u64 {
        scene.at(n * 50, scene.caller, |ua, now| {
            ua.call(now, "bridge");
        });
        let index = usize::try_from(n).unwrap();
        let host = if n % 3 == 0 {
            scene.callee
        } else {
            scene.caller
        };
        scene.at(20_000 + n * 30, host, move |ua, now| ua.hang_up(now, index));
        scene.at(60_000, scene.caller, move |ua, now| ua.hang_up(now, index));
    }
    scene.finish();
    assert_eq!(scene.tandem().cdrs().len(), 100);
    let answered = scene
        .tandem()
        .cdrs()
        .iter()
        .filter(|cdr| cdr.answer.is_some())
        .count();
    assert!(answered >= 99, "{answered} of 100 were answered");
    assert!(scene.world.elapsed() < Duration::from_secs(200));
}
