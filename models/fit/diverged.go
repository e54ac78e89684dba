package fit

// DivergedError says that a loss is infinite or NaN: with this learning rate the training does not
// go on from here.
type DivergedError struct{ Text string }

func (e *DivergedError) Error() string { return e.Text }
