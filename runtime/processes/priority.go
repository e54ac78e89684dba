package processes

import "fmt"

// Least is the niceness of the least priority.
const Least = 19

// Lower gives all threads of the process, and those that they will make, at least this niceness,
// from 1 to Least. What has a lower priority already keeps it. After an error some threads may have
// been lowered. It is meant for the start of a program.
func Lower(nice int) error {
	if nice < 1 || nice > Least {
		return fmt.Errorf("priority: niceness %d: expected 1 to %d", nice, Least)
	}
	if err := lower(nice); err != nil {
		return fmt.Errorf("priority: lower to niceness %d: %w", nice, err)
	}
	return nil
}
