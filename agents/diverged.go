package agents

// DivergedError says that training has come to numbers that are none: with these hyper-parameters
// it does not go on from here.
type DivergedError struct{ Text string }

func (e *DivergedError) Error() string { return e.Text }
