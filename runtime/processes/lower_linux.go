package processes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

func lower(nice int) error {
	// A thread that is being made while its maker is lowered may have the old niceness or class and
	// be listed only afterwards, later where its maker waits for a processor: passes without a find
	// are repeated for some milliseconds.
	for clean := 0; clean < 5; clean++ {
		if clean > 0 {
			time.Sleep(time.Millisecond)
		}
		found, err := lowerThreads(nice)
		if err != nil {
			return err
		}
		if found {
			clean = -1
		}
	}
	return lowerSession(nice)
}

// lowerThreads lowers the threads that are listed, and reports whether there were any to lower.
func lowerThreads(nice int) (found bool, err error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false, err
	}
	for _, e := range threads {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			return found, fmt.Errorf("/proc/self/task: %w", err)
		}
		// The system call returns 20 less the niceness, so that no result looks like an error.
		is, err := unix.Getpriority(unix.PRIO_PROCESS, id)
		if err == nil && 20-is < nice {
			found = true
			err = unix.Setpriority(unix.PRIO_PROCESS, id, nice)
		}
		// A thread may end meanwhile.
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return found, fmt.Errorf("thread %d: %w", id, err)
		}
		if nice == Least && idle(id) {
			found = true
		}
	}
	return found, nil
}

// idle makes a thread one that only runs when nothing else does, and reports whether it was another
// before. Niceness alone is about shares: a thread that wakes up may still wait for the next tick
// of the scheduler, some milliseconds, while one of niceness 19 goes on; threads of this class give
// way at once, and processors on which they run count as free. Where the system does not let it be,
// niceness has to do.
func idle(thread int) bool {
	a, err := unix.SchedGetAttr(thread, 0)
	if err != nil || a.Policy != unix.SCHED_NORMAL && a.Policy != unix.SCHED_BATCH {
		return false
	}
	a.Policy = unix.SCHED_IDLE
	return unix.SchedSetAttr(thread, a, 0) == nil
}

// autogroup holds the name of the session's group and its niceness, as in "/autogroup-62 nice 0".
const autogroup = "/proc/self/autogroup"

// lowerSession sets the niceness of the session where it is the process's own.
func lowerSession(nice int) error {
	leader, err := unix.Getsid(0)
	if err != nil || leader != os.Getpid() {
		return err
	}
	text, err := os.ReadFile(autogroup)
	if errors.Is(err, os.ErrNotExist) {
		// A system without groups of sessions.
		return nil
	}
	if err != nil {
		return err
	}
	_, is, ok := bytes.Cut(bytes.TrimSpace(text), []byte(" nice "))
	if !ok {
		// The file is empty: the kernel made no group for this session.
		return nil
	}
	if n, err := strconv.Atoi(string(is)); err != nil || n >= nice {
		return err
	}
	for try := 0; ; try++ {
		err := os.WriteFile(autogroup, strconv.AppendInt(nil, int64(nice), 10), 0)
		// Without privileges the kernel allows one change in a tenth of a second, for the whole
		// system.
		if !errors.Is(err, unix.EAGAIN) || try == 10 {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}
