/// Where on a link random losses occur, or changes of the ECN field are made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LossPosition {
    /// Behind it, as at the receiving device: a lost packet has been queued and transmitted like any other.
    #[default]
    Exit,
    /// Before the queue: a lost packet uses no capacity.
    Entry,
}
