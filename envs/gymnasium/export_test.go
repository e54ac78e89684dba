package gymnasium

import "time"

// Watch replaces how long the caller of the workers that are yet to be started looks for messages
// before it sleeps.
func (v *Vector) Watch(d time.Duration) {
	for w := range v.jobs {
		v.jobs[w].watch = d
	}
}

// Pids returns the processes of the workers, 0 where there is none.
func (v *Vector) Pids() []int {
	pids := make([]int, len(v.workers))
	for w, p := range v.workers {
		if p != nil {
			pids[w] = p.cmd.Process.Pid
		}
	}
	return pids
}
