//! A link's description in the terms of the path model.

use super::model::*;
use weir_path::queue::drop_tail;
use weir_path::{Discipline, LinkConfig, LossPosition, Reordering, Schedule, Step};

impl Link {
    /// What the path model takes.
    pub fn config(&self) -> LinkConfig {
        LinkConfig {
            capacity: self.capacity.config(),
            delay: self.delay,
            limit: match self.capacity {
                Capacity::Unlimited => weir_path::Limit::Unlimited,
                _ => self.queue.config(),
            },
            discipline: Discipline::DropTail(drop_tail::Config {
                ecn_threshold: self.ecn_threshold.map_or(weir_path::Limit::Unlimited, QueueLimit::config),
            }),
            loss: match self.loss {
                None => weir_path::Loss::None,
                Some(Loss::Independent { probability }) => weir_path::Loss::Independent { share: probability },
                Some(Loss::GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad }) => {
                    weir_path::Loss::GilbertElliott(weir_path::GilbertElliott {
                        to_bad: good_to_bad,
                        to_good: bad_to_good,
                        loss_good: loss_in_good,
                        loss_bad: loss_in_bad,
                    })
                }
            },
            loss_position: match self.loss_place {
                LossPlace::Ingress => LossPosition::Entry,
                LossPlace::Egress => LossPosition::Exit,
            },
            jitter: self.jitter.map(|j| weir_path::Jitter {
                shape: match j.shape {
                    JitterShape::Uniform => weir_path::JitterShape::Uniform { max: j.max },
                    // Cut off at none and at `max`, so that half of `max` lies on either side of the mean.
                    JitterShape::Normal { sigma } => weir_path::JitterShape::Normal {
                        deviation: sigma,
                        bound: (j.max / 2).ratio(sigma).unwrap_or(0.0),
                    },
                },
                may_reorder: j.reordering,
            }),
            reordering: self.reorder.map(|r| Reordering { share: r.probability, extra: r.delay }),
            duplication: self.duplicate,
        }
    }
}

impl Capacity {
    /// What the path model takes.
    pub fn config(&self) -> weir_path::Capacity {
        match self {
            Self::Unlimited => weir_path::Capacity::Unlimited,
            Self::Constant(rate) => weir_path::Capacity::Constant(*rate),
            Self::Steps { steps, repeat } => {
                let steps = steps.iter().map(|&(at, rate)| Step { at, rate }).collect();
                let schedule = Schedule::new(steps, *repeat).expect("steps were checked when the file was read");
                weir_path::Capacity::Schedule(schedule)
            }
            Self::Trace(trace) => trace.capacity.clone(),
        }
    }
}

impl QueueLimit {
    /// What the path model takes.
    pub fn config(self) -> weir_path::Limit {
        match self {
            Self::Bytes(size) => weir_path::Limit::Size(size),
            Self::Packets(n) => weir_path::Limit::Packets(n),
            Self::Time(time) => weir_path::Limit::Time(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

    #[test]
    fn every_part_reaches_the_path_model() {
        let ms = TimeDelta::from_millis;
        let steps = vec![(ms(0), DataRate::from_mbps(2)), (ms(20), DataRate::from_mbps(1))];
        let link = Link {
            name: "l".into(),
            capacity: Capacity::Steps { steps, repeat: Some(ms(40)) },
            delay: ms(50),
            queue: QueueLimit::Bytes(DataSize::from_bytes(75_000)),
            ecn_threshold: Some(QueueLimit::Time(ms(5))),
            loss: Some(Loss::Independent { probability: 0.01 }),
            loss_place: LossPlace::Ingress,
            jitter: Some(Jitter { shape: JitterShape::Normal { sigma: ms(5) }, max: ms(30), reordering: false }),
            reorder: Some(Reorder { probability: 0.1, delay: ms(7) }),
            duplicate: 0.2,
            assist: None,
        };
        let c = link.config();
        assert!(c.check().is_ok());
        assert_eq!(c.capacity.rate_at(Timestamp::from_millis(61)), DataRate::from_mbps(1));
        assert_eq!(c.limit, weir_path::Limit::Size(DataSize::from_bytes(75_000)));
        let ecn_threshold = weir_path::Limit::Time(ms(5));
        assert_eq!(c.discipline, Discipline::DropTail(drop_tail::Config { ecn_threshold }));
        assert_eq!(c.loss, weir_path::Loss::Independent { share: 0.01 });
        assert_eq!((c.loss_position, c.duplication), (LossPosition::Entry, 0.2));
        let shape = c.jitter.map(|j| j.shape);
        assert_eq!(shape, Some(weir_path::JitterShape::Normal { deviation: ms(5), bound: 3.0 }));
        assert_eq!(c.reordering, Some(Reordering { share: 0.1, extra: ms(7) }));
    }
}
