//! `events`: what happens, as it happens.

mod told;

use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use pcp_core::{Domain, EventTopic, OverflowStrategy};
use pcp_ipc::payloads::{DeliveryMode, SubscribeEvents};
use pcp_ipc::{Client, ReceivedEvent};

use crate::context::{Answer, Context, Follow, Report};
use crate::error::Error;
use told::Told;

/// How long one wait lasts when none is asked for; then another one begins. What the system takes for one wait.
const ONE_WAIT: Duration = Duration::from_secs(3600);
/// Between two questions of a polled subscription: quick for a person, a twentieth of what a caller may ask.
const POLL_PAUSE: Duration = Duration::from_millis(200);

/// Print what happens: applications, capabilities and adapters that come, change and go
///
/// Follows until it is interrupted, --count lines are printed or --timeout is over. An event that found no room in
/// the daemon's queue is never lost unseen: a line says how many were missed. Beginning with now: what is there
/// already is told by list, apps and adapters.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli events
  pcp-cli events --topic app_added,app_removed --app 'org.portal.*'
  pcp-cli events --count 1 --timeout 10 --topic capability_diff     (wait for a change)
  pcp-cli events --json | jq -r 'select(.missed) | .missed'

Each line is one JSON object when standard output is no terminal: sequence, count, and topic, app and data of an
event, or missed. --timeout (or PCP_TIMEOUT) is here how long to follow altogether.

Exit codes: 0 --count lines are printed, or --timeout is over and there was no --count; 2 usage, 3 the daemon went
away or cannot be reached, 7 --timeout is over before --count lines, 8 too many subscriptions, 130 interrupted.")]
pub(crate) struct Events {
    /// Go on until interrupted, which is what happens anyway
    #[arg(long, short)]
    #[allow(dead_code, reason = "people type it, as they do for journalctl and tail")]
    follow: bool,
    /// End after this many lines; one about missed events is a line, too
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Only these kinds of events; several are given one by one or between commas
    #[arg(long = "topic", value_name = "TOPIC", value_delimiter = ',', value_parser = topics())]
    topics: Vec<String>,
    /// Only events about applications whose id matches; * stands for any run of characters
    #[arg(long, value_name = "GLOB")]
    app: Option<String>,
    /// Only events of this domain
    #[arg(long, value_name = "DOMAIN", value_parser = words(Domain::ALL.iter().map(|word| word.as_str())))]
    domain: Option<String>,
    /// How many events may wait in the daemon
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    queue: Option<u32>,
    /// Which events go when more wait than may; the oldest unless said otherwise
    #[arg(long, value_name = "STRATEGY",
          value_parser = words(OverflowStrategy::ALL.iter().map(|word| word.as_str())))]
    overflow: Option<String>,
    /// Ask for events from time to time (version 1 of subscriptions)
    #[arg(long, conflicts_with = "v2")]
    v1: bool,
    /// Be sent events as they happen (version 2, the default)
    #[arg(long)]
    #[allow(dead_code, reason = "it only says what happens anyway, and that it is meant")]
    v2: bool,
}

fn words(words: impl Iterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(words)
}

fn topics() -> PossibleValuesParser {
    words(EventTopic::ALL.iter().map(|topic| topic.as_str()))
}

impl Events {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let begun = Instant::now();
        let mut client = context.globals.connect()?;
        let delivery = if self.v1 { DeliveryMode::Polled } else { DeliveryMode::Pushed };
        let request = SubscribeEvents {
            topics: self.topics.iter().map(|topic| topic.as_str().into()).collect(),
            app: self.app.as_deref().map(Into::into),
            // The parser has let only their words through.
            domain: self.domain.as_deref().and_then(|word| word.parse().ok()),
            overflow: self.overflow.as_deref().and_then(|word| word.parse().ok()),
            queue: self.queue,
            delivery: Some(delivery),
            ..SubscribeEvents::default()
        };
        let subscription = client.subscribe(&request)?;
        context.notice("following; what happens from now on is printed");
        Ok(Answer::stream(Follower {
            client,
            subscription: subscription.subscription_id,
            sequence: subscription.sequence,
            delivery,
            count: self.count,
            told: 0,
            zone: TimeZone::system(),
            time: context.globals.timeout.map(|seconds| (seconds, begun + Duration::from_secs_f64(seconds))),
        }))
    }
}

/// A subscription, and how long it is followed.
struct Follower {
    client: Client,
    subscription: u64,
    /// The number of the last event that was told.
    sequence: u64,
    delivery: DeliveryMode,
    count: Option<u64>,
    told: u64,
    zone: TimeZone,
    /// How many seconds were asked for, and when they are over.
    time: Option<(f64, Instant)>,
}

impl Follow for Follower {
    fn next(&mut self) -> Result<Option<Box<dyn Report>>, Error> {
        if self.count == Some(self.told) {
            return Ok(None);
        }
        loop {
            let left =
                self.time.map_or(ONE_WAIT, |(_, until)| until.saturating_duration_since(Instant::now()));
            let event = match self.delivery {
                DeliveryMode::Pushed if left.is_zero() => None,
                DeliveryMode::Pushed => self.client.next_event(left)?,
                DeliveryMode::Polled => self.poll(left)?,
            };
            if let Some(event) = event {
                let told = Told::of(&event.read()?, Timestamp::now(), &self.zone)?;
                (self.told, self.sequence) = (self.told + 1, told.sequence);
                return Ok(Some(Box::new(told)));
            }
            if let (true, Some((seconds, _))) = (left.is_zero(), self.time) {
                return self.time_is_over(seconds);
            }
        }
    }
}

impl Follower {
    /// What an earlier question brought, or what another one brings after a pause; nothing comes without a question.
    fn poll(&mut self, left: Duration) -> Result<Option<ReceivedEvent>, Error> {
        if let Some(event) = self.client.next_event(Duration::ZERO)? {
            return Ok(Some(event));
        }
        if left.is_zero() {
            return Ok(None);
        }
        std::thread::sleep(POLL_PAUSE.min(left));
        self.client.acknowledge(self.subscription, self.sequence)?;
        Ok(self.client.next_event(Duration::ZERO)?)
    }

    fn time_is_over(&self, seconds: f64) -> Result<Option<Box<dyn Report>>, Error> {
        match self.count {
            Some(count) => Err(Error::TooFew { told: self.told, count, seconds }),
            None => Ok(None),
        }
    }
}
