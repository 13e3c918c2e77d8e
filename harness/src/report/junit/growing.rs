//! The JUnit document of a run that goes on: whole after every case, and never green, as the process may be killed, or its
//! disk be full, at any moment. What a case adds is rendered once, when it is judged.

use super::{JunitTarget, aggregate, culprits, junit_for};
use crate::report::{Report, ReportError, unlaunched};
use base::text::{count, show};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, Event};

/// The testsuites so far.
#[derive(Debug, Default)]
pub(crate) struct GrowingJunit {
    target: JunitTarget,
    testsuites: Vec<Vec<u8>>,
    /// Assertions that have no testcase of their own.
    aggregated: usize,
    /// Errors of the counts that the document has as skipped.
    unlaunched: usize,
}

impl GrowingJunit {
    pub(crate) fn new(target: JunitTarget) -> GrowingJunit {
        GrowingJunit { target, ..GrowingJunit::default() }
    }

    /// Adds the last case of a report of the cases so far, and gives the document. `clean` takes secrets out.
    pub(crate) fn add(
        &mut self,
        report: &Report,
        clean: &dyn Fn(&[u8]) -> Vec<u8>,
    ) -> Result<Vec<u8>, ReportError> {
        if let Some(last) = report.cases.last() {
            let of_case = Report { cases: std::slice::from_ref(last), ..*report };
            let rendered = junit_for(&of_case, &self.target)?;
            if let Some([listed]) = aggregate::cases(&of_case).as_deref() {
                self.aggregated += last.verdicts.len() - listed.verdicts.len();
            }
            let left = last.verdicts.iter().filter(|verdict| unlaunched::by_max_fail(verdict));
            self.unlaunched += left.count();
            // The culprits of the run so far come first of all, and once.
            let has_culprits = culprits::testcases(report).count() > 0;
            let own = testsuites(&rendered, usize::from(has_culprits));
            self.testsuites.push(clean(&numbered(own, self.testsuites.len() + 1)));
        }
        let mut writer = Writer::new(Vec::new());
        let start = self.start(report);
        let mut document = (|| {
            writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
            writer.write_event(Event::Start(start))?;
            Ok::<_, quick_xml::Error>(writer.into_inner())
        })()
        .map_err(|why| ReportError(format!("cannot build the JUnit document: {why}")))?;
        let of_none = Report { cases: &[], ..*report };
        document.extend_from_slice(b"\n");
        document.extend(clean(testsuites(&junit_for(&of_none, &self.target)?, 0)));
        for testsuite in &self.testsuites {
            document.extend_from_slice(testsuite);
        }
        document.extend_from_slice(unfinished(report, self.testsuites.len() + 1).as_bytes());
        let mut end = Writer::new(document);
        let ended = end.write_event(Event::End(BytesEnd::new("testsuites")));
        ended.map_err(|why| ReportError(format!("cannot build the JUnit document: {why}")))?;
        let mut document = end.into_inner();
        document.push(b'\n');
        Ok(document)
    }

    /// The counters of the whole so far; the name says that it is not all.
    fn start(&self, report: &Report) -> BytesStart<'static> {
        let (summary, counts) = (report.summary, &report.summary.counts);
        let named = culprits::testcases(report).count() as u32;
        let failures = counts.fail + counts.unexpected_pass + named;
        let errors = ((counts.error + counts.inconclusive) as usize).saturating_sub(self.unlaunched);
        let mut start = BytesStart::new("testsuites");
        for (name, value) in [
            ("name", show(&summary.run_id)),
            ("tests", ((counts.total + named) as usize - self.aggregated + UNFINISHED).to_string()),
            ("failures", failures.to_string()),
            ("errors", (errors + UNFINISHED).to_string()),
        ] {
            start.push_attribute((name, value.as_str()));
        }
        start
    }
}

/// Testcases of what is missing still.
const UNFINISHED: usize = 1;

/// The last testsuite: an error until the run's own document takes the place of this one.
fn unfinished(report: &Report, id: usize) -> String {
    let judged = count(report.summary.counts.total, "assertion");
    // A document is made of times that could be read.
    let timestamp = &report.summary.started;
    format!(
        "  <testsuite id=\"{id}\" name=\"run\" package=\"run\" tests=\"1\" errors=\"1\" failures=\"0\" timestamp=\"{timestamp}\" \
         skipped=\"0\" time=\"0\">\n    <testcase name=\"run has ended\" time=\"0\" classname=\"run\">\n      <error type=\"error\" \
         message=\"the run has not ended: {judged} judged so far; if its process is gone: harness resume\"/>\n    \
         </testcase>\n  </testsuite>\n"
    )
}

/// The testsuites of a document, without the first `skip` of them.
fn testsuites(document: &[u8], skip: usize) -> &[u8] {
    const BEGIN: &[u8] = b"  <testsuite ";
    const END: &[u8] = b"</testsuites>";
    // Texts of a document hold no `<` but in CDATA sections, and those begin no line in this way.
    let begins = document.windows(BEGIN.len() + 1).enumerate();
    let mut begins = begins.filter(|(_, at)| at[0] == b'\n' && &at[1..] == BEGIN).map(|(at, _)| at + 1);
    let Some(begin) = begins.nth(skip) else { return &[] };
    let end = document.windows(END.len()).rposition(|at| at == END).unwrap_or(document.len());
    document.get(begin..end).unwrap_or_default()
}

/// The testsuite with the number that it has among all.
fn numbered(testsuite: &[u8], number: usize) -> Vec<u8> {
    const ID: &[u8] = b" id=\"";
    let Some(at) = testsuite.windows(ID.len()).position(|at| at == ID).map(|at| at + ID.len()) else {
        return testsuite.to_vec();
    };
    let digits = testsuite[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    [&testsuite[..at], number.to_string().as_bytes(), &testsuite[at + digits..]].concat()
}

#[cfg(test)]
mod tests {
    use super::super::read_back::read;
    use super::*;
    use crate::report::fixture;
    use crate::report::fixture::{Made, Reported as _};

    #[test]
    fn the_document_is_whole_after_every_case_and_counts_what_it_has() {
        let red = fixture::red();
        let mut growing = GrowingJunit::default();
        for so_far in 1..=red.cases.len() {
            let made = Made::from_cases(red.cases[..so_far].to_vec());
            let document = read(&growing.add(&made.report(), &<[u8]>::to_vec).unwrap());
            let names: Vec<&str> =
                document.suites.iter().map(|(suite, _)| suite.attributes["name"].as_str()).collect();
            let expected = ["culprits", "nccl-p5.nics", "nccl-p5.all-reduce", "nccl-p5.rest"];
            assert_eq!(names, [&expected[..=so_far], &["run"][..]].concat());
            let ids: Vec<String> =
                document.suites.iter().map(|(suite, _)| suite.attributes["id"].clone()).collect();
            assert_eq!(ids, (0..=so_far + 1).map(|id| id.to_string()).collect::<Vec<_>>());
            let tests: usize = document.suites.iter().map(|(_, cases)| cases.len()).sum();
            assert_eq!(document.whole.attributes["tests"], tests.to_string());
        }
    }

    #[test]
    fn a_run_that_was_killed_leaves_no_green_document() {
        let mut case = fixture::case("c");
        case.verdicts = vec![fixture::verdict("c", "rate", "n", "p", model::artefact::Status::Pass)];
        let made = Made::from_cases(vec![case]);
        let document = read(&GrowingJunit::default().add(&made.report(), &<[u8]>::to_vec).unwrap());
        assert_eq!(document.whole.attributes["errors"], "1");
        let (suite, cases) = document.suites.last().unwrap();
        assert_eq!((suite.attributes["name"].as_str(), suite.attributes["errors"].as_str()), ("run", "1"));
        let (kind, error) = cases[0].result.as_ref().unwrap();
        assert_eq!(kind, "error");
        assert!(error["message"].starts_with("the run has not ended: 1 assertion judged"), "{error:?}");
    }

    #[test]
    fn what_max_fail_left_is_no_error_of_the_document_so_far() {
        let made = fixture::stopped_by_max_fail();
        let mut growing = GrowingJunit::default();
        let document = read(&growing.add(&made.report(), &<[u8]>::to_vec).unwrap());
        let counted = ["failures", "errors"].map(|key| document.whole.attributes[key].as_str());
        assert_eq!(counted, ["2", "2"], "one of them that the run has not ended");
    }

    #[test]
    fn text_that_looks_like_a_testsuite_does_not_break_it() {
        let mut case = fixture::case("c");
        let mut verdict = fixture::verdict("c", "rate", "n", "p", model::artefact::Status::Fail);
        verdict.message = "a\n  <testsuite id=\"9\">\n</testsuites>".into();
        case.verdicts = vec![verdict];
        let made = Made::from_cases(vec![case]);
        let document = read(&GrowingJunit::default().add(&made.report(), &<[u8]>::to_vec).unwrap());
        assert_eq!((document.suites.len(), document.suites[0].1.len()), (2, 1));
    }
}
