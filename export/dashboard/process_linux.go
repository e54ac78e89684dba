package dashboard

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ticks are the clock ticks of a second in /proc, which Linux fixes for programs.
const ticks = 100

// measure finds the processes that hold the locks of runs' checkpoints, and what they cost. The
// values of paths are folders of runs; what cannot be found out is left out.
func (u *usage) measure(paths map[string]string, now time.Time) map[string]*Process {
	found := map[string]*Process{}
	if len(paths) == 0 {
		return found
	}
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return found
	}
	// Such as "1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF", numbers of devices in hexadecimal.
	holders := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 6 && f[1] == "FLOCK" {
			if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
				holders[f[5]] = pid
			}
		}
	}
	for id, path := range paths {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(path, "checkpoints", ".lock"), &st) != nil {
			continue
		}
		pid, ok := holders[fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)]
		if !ok {
			continue
		}
		if p := u.process(pid, now); p != nil {
			found[id] = p
		}
	}
	for pid, t := range u.last {
		if t.at.Before(now) {
			delete(u.last, pid)
		}
	}
	return found
}

// process is nil for one that is gone.
func (u *usage) process(pid int, now time.Time) *Process {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// The name before may have spaces and parentheses.
	_, rest, ok := bytes.Cut(text, []byte(") "))
	if i := bytes.LastIndex(text, []byte(") ")); ok && i >= 0 {
		rest = text[i+2:]
	}
	f := strings.Fields(string(rest))
	if len(f) < 22 {
		return nil
	}
	n := func(i int) int64 {
		v, _ := strconv.ParseInt(f[i], 10, 64)
		return v
	}
	// Fields of proc_pid_stat(5), of which the first two are cut off: 14 and 15 are the time, 20
	// the threads, 24 the resident pages.
	p := &Process{PID: pid, Threads: int(n(17)), Memory: n(21) * int64(os.Getpagesize())}
	p.CPU = u.cpu(pid, time.Duration(n(11)+n(12))*time.Second/ticks, now)
	return p
}
