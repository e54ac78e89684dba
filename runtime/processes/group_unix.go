//go:build unix

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
	cmd.SysProcAttr.Setpgid = true
}

// Kill ends the leader of a group and everything that it has started. One that has ended already is
// no error.
func Kill(p *os.Process) error {
	if err := syscall.Kill(-p.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
