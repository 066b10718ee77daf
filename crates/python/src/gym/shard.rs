//! The environments of one thread.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use weir_lab::episode::{Episodes, NUMBERS};

/// The next actions of environments.
pub(super) enum Order {
    /// Those with a seed begin an episode.
    Begin(Vec<Option<u64>>),
    /// All take a step, with these actions.
    Step(Vec<f32>),
}

/// Their results, in their order.
#[derive(Default)]
pub(super) struct Answer {
    pub observations: Vec<f32>,
    pub rewards: Vec<f64>,
    pub over: Vec<bool>,
    pub numbers: Vec<f64>,
    /// The first failure.
    pub error: Option<String>,
}

/// Some of the environments.
pub(super) struct Shard {
    episodes: Vec<Episodes>,
    width: usize,
}

impl Shard {
    pub(super) fn new(episodes: Vec<Episodes>, width: usize) -> Self {
        Self { episodes, width }
    }
    pub(super) fn len(&self) -> usize {
        self.episodes.len()
    }

    pub(super) fn follow(&mut self, order: Order) -> Answer {
        let mut answer = Answer { observations: vec![0.0; self.len() * self.width], ..Answer::default() };
        let each = self.episodes.iter_mut().zip(answer.observations.chunks_exact_mut(self.width));
        match order {
            Order::Begin(seeds) => {
                for ((episodes, observation), seed) in each.zip(seeds) {
                    let Some(seed) = seed else { continue };
                    episodes.seed(seed);
                    if let Err(e) = episodes.begin(observation) {
                        answer.error.get_or_insert(e.to_string());
                    }
                }
            }
            Order::Step(actions) => {
                for ((episodes, observation), action) in each.zip(actions) {
                    match episodes.step(f64::from(action), observation) {
                        Ok(stepped) => {
                            answer.rewards.push(stepped.reward);
                            answer.over.push(stepped.is_over);
                            answer.numbers.extend(stepped.numbers);
                        }
                        Err(e) => {
                            answer.error.get_or_insert(e.to_string());
                            answer.rewards.push(0.0);
                            answer.over.push(true);
                            answer.numbers.extend([f64::NAN; NUMBERS.len()]);
                        }
                    }
                }
            }
        }
        answer
    }
}

/// A thread with a shard. It ends when this is dropped.
pub(super) struct Worker {
    pub len: usize,
    orders: Option<Sender<Order>>,
    answers: std::sync::Mutex<Receiver<Answer>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(super) fn start(mut shard: Shard) -> std::io::Result<Self> {
        let len = shard.len();
        let ((orders, taken), (given, answers)) = (channel::<Order>(), channel());
        let work = move || {
            while let Ok(order) = taken.recv() {
                if given.send(shard.follow(order)).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("weir-gym".into()).spawn(work)?;
        Ok(Self { len, orders: Some(orders), answers: std::sync::Mutex::new(answers), thread: Some(thread) })
    }
    /// A thread that has ended shows in [`Self::receive`].
    pub(super) fn send(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ended = orders.send(order);
        }
    }
    pub(super) fn receive(&self) -> Result<Answer, &'static str> {
        let answers = self.answers.lock().map_err(|_| "an environment's thread panicked: please report it")?;
        answers.recv().map_err(|_| "an environment's thread panicked: please report it")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
