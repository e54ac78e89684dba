package library

import (
	"sync"
)

// Phase is a stage of an installation.
type Phase string

// The phases, in order. Waiting occurs only while another process or goroutine
// installs.
const (
	PhaseWaiting     Phase = "waiting for another installation"
	PhaseDownloading Phase = "downloading"
	PhaseExtracting  Phase = "extracting and verifying"
	PhaseDone        Phase = "done"
)

// Progress is one report of an installation.
type Progress struct {
	Phase  Phase
	Client string // "npm" or "pip"; empty while waiting
	// Bytes done so far in this phase, and their expected number; a Total of 0 is
	// unknown. Package clients may show nothing until a download ends.
	Bytes, Total int64
}

// reporter serialises calls of a progress callback, which a watcher of the
// download and the installing goroutine share.
type reporter struct {
	mu   sync.Mutex
	call func(Progress)
}

func (r *reporter) report(p Progress) {
	if r.call == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call(p)
}
