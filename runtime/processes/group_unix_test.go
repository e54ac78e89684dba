//go:build unix

package processes

import (
	"bufio"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKill: a process is ended with what it has started, and ending it again is no error.
func TestKill(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 600 & echo $!; wait")
	Apart(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(child); err != nil || group != cmd.Process.Pid {
		t.Errorf("the child is in group %d, %v; expected %d", group, err, cmd.Process.Pid)
	}
	if err := Kill(cmd.Process); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// An orphan's end is seen by the system's first process, which may take a moment.
	for began := time.Now(); !errors.Is(syscall.Kill(child, 0), syscall.ESRCH); time.Sleep(10 * time.Millisecond) {
		if state := stateOf(child); state == "Z" {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("the child goes on")
		}
	}
	if err := Kill(cmd.Process); err != nil {
		t.Errorf("again: %v", err)
	}
}

// stateOf is the letter that ps has for a process.
func stateOf(pid int) string {
	text, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if err != nil || len(text) == 0 {
		return ""
	}
	return string(text[:1])
}
