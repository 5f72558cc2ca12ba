//! Requests side by side, executions that are dropped or break, and what is told of one that is under way.

use std::rc::Rc;
use std::time::Duration;

use pcp_core::v2::*;
use pcp_execution::engine::*;

use crate::device::*;

fn numbered(number: usize) -> ActionRequest {
    request(0, |request| request.operation_id = format!("op-{number}"))
}

#[tokio::test(start_paused = true)]
async fn of_eight_equal_requests_one_acts_and_eight_different_ones_all_do() {
    for same in [true, false] {
        let slow = Act::SpendThen(Duration::from_millis(50), Box::new(Act::Do));
        let device = Rc::new(Device::new().with(|script| {
            script.act = slow;
            script.slow = Duration::from_millis(5);
        }));
        let local = tokio::task::LocalSet::new();
        let tasks: Vec<_> = (0..8)
            .map(|number| {
                let device = Rc::clone(&device);
                let request = numbered(if same { 1 } else { number });
                local.spawn_local(async move { device.execute(request).await.unwrap() })
            })
            .collect();
        local.await;
        let mut ends = 0;
        for task in tasks {
            let report = task.await.unwrap();
            match report.terminal() {
                Some(_) => ends += 1,
                None => {
                    assert_eq!(report.acknowledgements[0].state, AckState::Executing {});
                    assert!(report.acknowledgements[0].replayed);
                }
            }
        }
        let acted = if same { 1 } else { 8 };
        assert_eq!((device.dispatched(), device.claims(), ends), (acted, acted, acted as usize));
    }
}

#[tokio::test(start_paused = true)]
async fn the_status_of_an_operation_under_way_is_told_at_once() {
    let act = Act::SpendThen(Duration::from_secs(3), Box::new(Act::Do));
    let device = Device::new().with(|script| script.act = act);
    assert_eq!(device.engine.status("op-1").await.unwrap(), None);
    let ask = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asked = tokio::time::Instant::now();
        let status = device.engine.status("op-1").await.unwrap().unwrap();
        (status, asked.elapsed())
    };
    let (report, (status, waited)) = tokio::join!(device.execute(set_value()), ask);

    assert_eq!((status.state, waited), (AckState::Executing {}, Duration::ZERO));
    let end = report.unwrap().acknowledgements.pop();
    assert_eq!(device.engine.status("op-1").await.unwrap(), end);
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_is_dropped_in_the_middle_is_unknown_and_never_repeated() {
    let device = Device::new().with(|script| script.act = Act::Hang);
    let dropped = tokio::time::timeout(Duration::from_secs(1), device.execute(set_value())).await;
    assert!(dropped.is_err());

    let status = device.engine.status("op-1").await.unwrap().unwrap();
    let AckState::Terminal { terminal } = &status.state else { panic!("{status:?}") };
    let Terminal::OutcomeUnknown { receipt, .. } = &**terminal else { panic!("{terminal:?}") };
    assert_eq!((receipt.backend.as_str(), receipt.effect), ("unknown", Effect::Unknown));
    assert_eq!(receipt.started_at_ms, NOW_MS);
    let report = device.execute(set_value()).await.unwrap();
    assert_eq!(report.terminal(), Some(&**terminal), "the status was stored");
    assert_eq!(device.dispatched(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_panics_leaves_doubt_and_a_store_that_works() {
    let device = Rc::new(Device::new().with(|script| script.act = Act::Panic));
    let local = tokio::task::LocalSet::new();
    let broken = Rc::clone(&device);
    let task = local.spawn_local(async move { broken.execute(set_value()).await });
    local.await;
    assert!(task.await.unwrap_err().is_panic());

    assert!(matches!(device.end(set_value()).await, Terminal::OutcomeUnknown { .. }));
    assert_eq!(device.dispatched(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_wakes_whoever_waits_for_it() {
    let token = CancellationToken::new();
    let other = token.clone();
    let waiting = async {
        other.cancelled().await;
        other.is_cancelled()
    };
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        token.cancel();
    };
    let (woken, ()) = tokio::join!(waiting, cancel);
    assert!(woken);
    token.cancelled().await;
}
