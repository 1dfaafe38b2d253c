//! What is wrong with a plan is said with its place, and with what to do.

use dialplan::{Plan, PlanError};
use proptest::prelude::*;

fn load(text: &str) -> Result<Plan, PlanError> {
    Plan::load("plan.toml", text, &[])
}

/// Every row: a plan, and the error's beginning and something that it says to do.
#[test]
fn faults_are_told_with_place_and_remedy() {
    let rule = "[[rule]]\ncalled = '1(.)'\n";
    let rows = [
        ("", "1:1: the plan has no rule", "add a [[rule]]"),
        ("[[rule]\n", "1:8: this is not TOML", "correct it"),
        ("[variables]\na = \n", "2:5: this is not TOML", "correct it"),
        (
            "\n[variabels]\n",
            "2:2: unknown key `variabels`",
            "nearest known one is `variables`",
        ),
        ("rule = 1\n", "1:8: `rule` is 1", "begun by [[rule]]"),
        ("[variables]\na = 1\n", "2:5: `a` is 1", "a text in quotes"),
        (
            "[variables]\ncalled = 'x'\n",
            "2:1: `called` is what every call brings",
            "name the variable",
        ),
        (
            "[variables]\n'a-b' = 'x'\n",
            "2:1: `a-b` is no name",
            "letters, digits and _",
        ),
        (
            "{rule}",
            "1:1: the rule has no `action`",
            "answer, echo, tone",
        ),
        (
            "{rule}action = 'ehco'\n",
            "3:10: unknown action `ehco`",
            "nearest known one is `echo`",
        ),
        (
            "{rule}caled = 'x'\naction = 'echo'\n",
            "3:1: unknown key `caled`",
            "one is `called`",
        ),
        (
            "{rule}  hz = 5\naction = 'echo'\n",
            "3:3: `hz` belongs to the action `tone`",
            "remove it",
        ),
        (
            "{rule}to = 'sip:a@b'\naction = 'echo'\n",
            "3:1: `to` belongs to",
            "`bridge` or `redirect`",
        ),
        (
            "{rule}action = 'echo'\nadd = {}\n",
            "4:1: `add` belongs to the action `bridge`",
            "remove",
        ),
        (
            "{rule}action = 'echo'\nadd = 1\n",
            "4:1: `add` belongs",
            "remove it",
        ),
        (
            "{rule}action = 'echo'\ndelay = true\n",
            "4:9: `delay` is true",
            "\"5s\"",
        ),
        (
            "{rule}action = 'echo'\ndelay = '5 parsec'\n",
            "4:9: `delay` is '5 parsec'",
            "\"5s\"",
        ),
        (
            "{rule}action = 'echo'\ndelay = -1\n",
            "4:9: `delay` is -1",
            "\"5s\"",
        ),
        (
            "{rule}action = 'echo'\ndelay = '99h'\n",
            "4:9: `delay` is '99h'",
            "at most a day",
        ),
        (
            "{rule}action = 'tone'\nhz = 5000\n",
            "4:6: `hz` is 5000",
            "20 to 3800",
        ),
        (
            "{rule}action = 'tone'\nhz = nan\n",
            "4:6: `hz` is nan",
            "a number",
        ),
        (
            "{rule}action = 'tone'\nlevel = 4\n",
            "4:9: `level` is 4",
            "-60 to 3",
        ),
        (
            "{rule}action = 'play'\n",
            "3:10: `play` without a clip",
            "clip = \"music\"",
        ),
        (
            "{rule}action = 'play'\nclip = 'x'\n",
            "4:8: unknown clip `x`",
            "file = \"PATH.wav\"",
        ),
        (
            "{rule}action = 'play'\nclip = 'music'\nfile = 'x'\n",
            "5:8: both",
            "either",
        ),
        (
            "{rule}action = 'record'\nbeep = 'yes'\n",
            "4:8: `beep` is 'yes'",
            "true or false",
        ),
        (
            "{rule}action = 'bridge'\n",
            "3:10: no `to`",
            "sip:USER@HOST",
        ),
        (
            "{rule}action = 'bridge'\nto = []\n",
            "4:6: `to` is an empty list",
            "a text in quotes",
        ),
        (
            "{rule}action = 'bridge'\nto = 'nobody'\n",
            "4:6: `to` is \"nobody\"",
            "registered:USER",
        ),
        (
            "{rule}action = 'bridge'\nto = 'tel:+49'\n",
            "4:6: `to` is \"tel:+49\"",
            "sip:USER@HOST",
        ),
        (
            "{rule}action = 'bridge'\nto = '$1'\n",
            "4:6: `to` is \"1\" (with 1",
            "sip:USER@HOST",
        ),
        (
            "{rule}action = 'bridge'\nto = 'sip:$2@h'\n",
            "4:6: `$2` names a group",
            "put ( )",
        ),
        (
            "{rule}action = 'bridge'\nto = ['sip:a@h', 'sip:${calee}@h']\n",
            "4:18: nothing is named",
            "`${called}`",
        ),
        (
            "{rule}action = 'bridge'\nto = 'sip:a@h'\ncodecs = ['PCMU']\n",
            "5:10: `codecs` is \"PCMU\"",
            "PCMU/8000",
        ),
        (
            "{rule}action = 'bridge'\nto = 'sip:a@h'\nmedia = 'x'\n",
            "5:9: `media` is \"x\"",
            "\"relay\" or",
        ),
        (
            "{rule}action = 'bridge'\nto = 'sip:a@h'\nmedia = 'direct'\ncodecs = 'PCMU/8000'\n",
            "6:10: `codecs` has no",
            "remove",
        ),
        (
            "{rule}action = 'bridge'\nto = 'sip:a@h'\nmedia = 'direct'\nrecord = 'mono'\n",
            "6:10: media that",
            "\"relay\"",
        ),
        (
            "{rule}action = 'bridge'\nto = 'sip:a@h'\nring = '10ms'\n",
            "5:8: `ring` is less",
            "second",
        ),
        (
            "{rule}action = 'bridge'\nto = 'sip:a@h'\nadd = { Via = 'x' }\n",
            "5:9: `Via` is written",
            "remove",
        ),
        (
            "{rule}action = 'bridge'\nto = 'sip:a@h'\nadd = { i = 'x' }\n",
            "5:9: `i` is written",
            "remove",
        ),
        (
            "{rule}action = 'bridge'\nto = 'sip:a@h'\nadd = { 'X Y' = 'x' }\n",
            "5:9: \"X Y\" is no header",
            "X-Name",
        ),
        (
            "{rule}action = 'bridge'\nto = 'sip:a@h'\nadd = { X = \"a\\r\\nVia: b\" }\n",
            "5:13: `X` has a control",
            "one line",
        ),
        (
            "{rule}action = 'reject'\n",
            "3:10: `reject` without `code`",
            "code = 403",
        ),
        (
            "{rule}action = 'reject'\ncode = 200\n",
            "4:8: `code` is \"200\"",
            "400 to 699",
        ),
        (
            "{rule}action = 'reject'\ncode = 'x$1'\n",
            "4:8: `code` is \"x404\" (with 404",
            "400 to 699",
        ),
        (
            "{rule}action = 'reject'\ncode = 486\nrecord = 'mono'\n",
            "5:10: a call that is refused",
            "remove",
        ),
        (
            "{rule}action = 'redirect'\nto = 'sip:a@h'\ncode = 404\n",
            "5:8: `code` is 404",
            "300 to 399",
        ),
        (
            "{rule}action = 'redirect'\nto = 'registered:1'\n",
            "4:6: `to` is \"registered:1\"",
            "tel:+NUMBER",
        ),
        (
            "{rule}action = 'echo'\nrecord = 'both'\n",
            "4:10: `record` is \"both\"",
            "\"mono\"",
        ),
        (
            "{rule}action = 'echo'\nrecord_when = '$1'\n",
            "4:15: `record_when` without",
            "record = \"stereo\"",
        ),
        (
            "{rule}action = 'record'\nrecord_when = '$1'\n",
            "4:15: the action `record` always",
            "remove",
        ),
        (
            "{rule}action = 'echo'\nsource = '10.0.0.0/33'\n",
            "4:10: `10.0.0.0/33` is no network",
            "192.0.2.0/24",
        ),
        (
            "{rule}action = 'echo'\nsource = '${source}'\n",
            "4:10: `${source}` is no network",
            "variable",
        ),
        (
            "{rule}action = 'echo'\nmethod = 'REGISTER'\n",
            "4:10: requests of method",
            "\"INVITE\"",
        ),
        (
            "{rule}action = 'echo'\ncaller = '('\n",
            "4:10: the pattern cannot be read: unclosed group",
            "\\",
        ),
        (
            "{rule}action = 'echo'\nheader = { X = '[' }\n",
            "4:16: the pattern cannot be read",
            "correct it",
        ),
        (
            "{rule}action = 'echo'\nheader = 'x'\n",
            "4:10: `header` is 'x'",
            "a table",
        ),
        (
            "{rule}action = 'echo'\ncaller = '(?<called>.)'\n",
            "4:10: the group `called`",
            "name it otherwise",
        ),
        (
            "{rule}action = 'echo'\nname = 'a'\n[[rule]]\nname = 'a'\naction = 'echo'\n",
            "6:8: the rule of line 1",
            "choose another",
        ),
        (
            "# \u{fc}\u{fc}\n[[rule]]\naction = 'echo' # \u{fc}\nx = 1\n",
            "4:1: unknown key `x`",
            "nearest",
        ),
        (
            "[[rule]]\n\u{22}\u{fc}\u{22} = 1\n",
            "2:1: unknown key `\u{fc}`",
            "nearest",
        ),
        (
            "rule = [{ action = 'echo', call = 'x' }]\n",
            "1:28: unknown key `call`",
            "`called`",
        ),
    ];
    for (text, begins, remedy) in rows {
        let text = text.replace("{rule}", rule);
        let error = load(&text).map(|_| ()).expect_err(&text);
        let shown = error.to_string();
        assert!(
            shown.starts_with(&format!("plan.toml:{begins}")),
            "{text}\n{shown}"
        );
        assert!(shown.contains(remedy), "{text}\n{shown}");
        assert!(!shown.contains('\n'), "{shown}");
        let place = format!(
            "plan.toml:{}:{}: {}",
            error.line(),
            error.column(),
            error.message()
        );
        assert_eq!(place, shown);
    }
}

#[test]
fn a_variable_to_set_must_be_there() {
    let text = "[variables]\ncallee = 'sip:a@b'\n[[rule]]\naction = 'bridge'\nto = '${callee}'\n";
    let set =
        |name: &str, value: &str| Plan::load("p", text, &[(name.to_owned(), value.to_owned())]);
    let error = set("calee", "sip:c@d").expect_err("unknown").to_string();
    assert!(
        error.contains("no variable is named `calee`; the nearest one to set is `callee`"),
        "{error}"
    );
    let error = set("callee", "nobody").expect_err("no URI").to_string();
    assert_eq!(
        error,
        "p:5:6: `to` is \"nobody\"; write \"sip:USER@HOST\" or \"registered:USER\""
    );
    let plan = set("callee", "sip:c@d").expect("valid");
    assert_eq!(plan.variables()["callee"], "sip:c@d");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A plan cut short or changed in one place is read or refused, and the error is one line.
    #[test]
    fn damaged_plans_are_read_or_refused(at in any::<prop::sample::Index>(), put in ".{0,3}") {
        let text = include_str!("../../../dialplan/examples/office.toml");
        let at = at.index(text.len());
        let damaged = format!("{}{put}{}", &text[..at], text.get(at + 1..).unwrap_or_default());
        for text in [&damaged[..], &text[..at]] {
            if let Err(error) = load(text) {
                prop_assert!(!error.to_string().trim_end().contains('\n'), "{}", error);
                prop_assert!(error.line() <= text.lines().count() + 1);
            }
        }
    }
}
