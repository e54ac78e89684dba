//go:build unix

package app

import (
	"os/exec"
	"syscall"
)

// ownGroup makes cmd the leader of a group of its own: an interrupt from the terminal is for this
// program, which ends cmd by itself.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
