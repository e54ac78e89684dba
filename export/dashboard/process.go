package dashboard

import (
	"runtime/metrics"
	"time"
)

// Process is what the process of a run costs now.
type Process struct {
	PID int `json:"pid"`
	// CPU is how many cores it has kept busy since the measurement before; nil at the first.
	CPU *float64 `json:"cpu"`
	// Memory is its resident bytes, Threads how many threads it has.
	Memory  int64 `json:"memory"`
	Threads int   `json:"threads"`
}

// usage measures processes.
type usage struct {
	last map[int]cpuTime
}

// cpuTime is how much time a process had used when.
type cpuTime struct {
	used time.Duration
	at   time.Time
}

// cpu is how many cores a process that has used so much has kept busy since the last time.
func (u *usage) cpu(pid int, used time.Duration, now time.Time) *float64 {
	before, ok := u.last[pid]
	u.last[pid] = cpuTime{used, now}
	if !ok || !now.After(before.at) {
		return nil
	}
	share := float64(used-before.used) / float64(now.Sub(before.at))
	return &share
}

// heapInUse is the bytes of objects on the heap, those that are garbage included.
func heapInUse() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
