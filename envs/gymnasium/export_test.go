package gymnasium

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
