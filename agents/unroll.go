package agents

// Unroll is what one actor has recorded for the rounds of one rollout, in rows of its own, to be
// learnt from elsewhere.
type Unroll struct {
	// Version is that of the parameters that acted.
	Version int64
	// Rows is the number of environments.
	Rows int
	// Arrays are slices of bool, byte, int64, float32 or float64 by name, of the learner's own
	// choice. All unrolls of one configuration and number of rows have the same ones, as long, but
	// for those that absent rows add.
	Arrays map[string]any
}

// Unroller is implemented by a [Learner] that can learn from what several agents of its
// configuration have recorded with older parameters. Each is in a process or goroutine of its
// own, made with [Setup].Acting for some of the rows.
type Unroller interface {
	Learner
	// Version counts the updates of the parameters, see Decision.Version: each Step adds one.
	Version() int64
	// Adopt takes note that something else has written the parameters, which are of that version.
	Adopt(version int64)
	// Unroll returns the complete rollout of an agent that acts, as copies, and begins the next.
	Unroll() (*Unroll, error)
	// Join copies an unroll to the rows from first on. When that has been done for all rows, in
	// order, the learner is ready. Joining the first row begins another rollout.
	Join(u *Unroll, first int) error
}
