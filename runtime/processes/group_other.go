//go:build !unix && !windows

package processes

import (
	"errors"
	"os"
	"os/exec"
)

// Apart does nothing: the system has no groups of processes.
func Apart(*exec.Cmd) {}

// Kill ends a process, without what it has started. One that has ended already is no error.
func Kill(p *os.Process) error {
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
