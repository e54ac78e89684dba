package processes

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Apart makes cmd, which has not been started, the leader of a group of its own: an interrupt from
// the terminal, on which its parent saves where it is, does not reach it.
func Apart(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= syscall.CREATE_NEW_PROCESS_GROUP
}

// Kill ends a process, without what it has started. One that has ended already is no error.
func Kill(p *os.Process) error {
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
