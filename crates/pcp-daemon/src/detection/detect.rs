//! `detect_app()`: which finding of an application counts for what.

use pcp_native::CONFIDENCE_OF_CAPABILITIES;

/// What one source found out about an application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// 0.0 to 1.0.
    pub confidence: f32,
    /// How many capabilities it offers.
    pub capabilities: usize,
}

/// Which findings count, by their place in the order of priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chosen {
    /// The one whose capabilities are registered.
    pub capabilities: Option<usize>,
    /// The one that tells about the application.
    pub metadata: Option<usize>,
}

/// The first finding in the order of priority that is sure enough and offers something gives the capabilities, and
/// tells about the application too; without one the surest finding tells about it.
#[must_use]
pub fn choose(findings: &[Finding]) -> Chosen {
    let offers =
        |finding: &Finding| finding.capabilities > 0 && finding.confidence >= CONFIDENCE_OF_CAPABILITIES;
    let capabilities = findings.iter().position(offers);
    let mut surest: Option<usize> = None;
    for (place, finding) in findings.iter().enumerate() {
        let surer = surest
            .and_then(|best| findings.get(best))
            .is_none_or(|best| finding.confidence > best.confidence);
        if surer {
            surest = Some(place);
        }
    }
    Chosen { capabilities, metadata: capabilities.or(surest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn finding(confidence: f32, capabilities: usize) -> Finding {
        Finding { confidence, capabilities }
    }

    #[test]
    fn half_sure_is_sure_enough_and_the_order_decides_between_those_that_are() {
        let table: [(&[Finding], Option<usize>, Option<usize>); 10] = [
            (&[], None, None),
            (&[finding(0.49, 3)], None, Some(0)),
            (&[finding(0.50, 3)], Some(0), Some(0)),
            (&[finding(0.51, 3)], Some(0), Some(0)),
            (&[finding(0.51, 0)], None, Some(0)),
            (&[finding(0.49, 3), finding(0.50, 1)], Some(1), Some(1)),
            (&[finding(0.50, 1), finding(0.99, 9)], Some(0), Some(0)),
            (&[finding(1.0, 0), finding(0.50, 1)], Some(1), Some(1)),
            (&[finding(0.3, 0), finding(0.49, 2)], None, Some(1)),
            (&[finding(0.4, 0), finding(0.4, 0)], None, Some(0)),
        ];
        for (findings, capabilities, metadata) in table {
            assert_eq!(choose(findings), Chosen { capabilities, metadata }, "{findings:?}");
        }
    }
}
