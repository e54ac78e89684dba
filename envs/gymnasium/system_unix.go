//go:build unix

package gymnasium

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// mapShared maps the first n bytes of a file, for reading and writing in several processes.
func mapShared(f *os.File, n int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapShared(b []byte) error { return unix.Munmap(b) }

// tryRead reads what is there; again means that it is nothing yet.
func tryRead(fd uintptr, b []byte) (n int, again bool, err error) {
	n, err = unix.Read(int(fd), b)
	again = err == unix.EAGAIN || err == unix.EINTR
	return max(n, 0), again, err
}

// apart makes cmd the leader of a group of its own: an interrupt from the terminal, on which a run
// saves where it is, must not reach it, and what it starts can be ended with it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the process and everything that it started.
func killGroup(p *os.Process) error {
	if err := unix.Kill(-p.Pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// askWhere makes the process write to its standard error what it is doing.
func askWhere(p *os.Process) error { return p.Signal(unix.SIGUSR1) }
