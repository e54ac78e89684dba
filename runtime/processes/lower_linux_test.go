package processes

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// envChild makes the test binary lower itself: the tests' own process keeps its priority.
const envChild = "PRIORITY_TEST_CHILD"

func TestMain(m *testing.M) {
	if nice := os.Getenv(envChild); nice != "" {
		child(nice)
	}
	os.Exit(m.Run())
}

// child lowers itself while threads are made, and prints the niceness of every thread it then has,
// and that of its session before and after.
func child(nice string) {
	before := ownSession()
	n, err := strconv.Atoi(nice)
	if err != nil {
		panic(err)
	}
	var up, done sync.WaitGroup
	end := make(chan struct{})
	// A goroutine that is locked to its thread has it for itself.
	hold := func() {
		up.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			up.Done()
			<-end
		})
	}
	for range 30 {
		hold()
	}
	if err := Lower(n); err != nil {
		panic(err)
	}
	for range 10 {
		hold()
	}
	up.Wait()
	names, err := filepath.Glob("/proc/self/task/*/stat")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		// The name of the program may hold anything; niceness is the 19th field, the 17th after it.
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		// The scheduling class is the 41st field.
		os.Stdout.WriteString(fields[16] + " class " + fields[38] + "\n")
	}
	os.Stdout.WriteString("session " + before + " " + ownSession() + "\n")
	close(end)
	done.Wait()
	os.Exit(0)
}

// ungrouped is what ownSession returns where sessions have no group: the kernel has none (no file),
// or did not make one for this session (an empty file).
const ungrouped = "ungrouped"

// ownSession returns the niceness of the session's group.
func ownSession() string {
	text, err := os.ReadFile(autogroup)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	if _, nice, ok := strings.Cut(strings.TrimSpace(string(text)), " nice "); ok {
		return nice
	}
	return ungrouped
}

// command is a child that lowers itself.
func command(t *testing.T, nice int, leads bool) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+strconv.Itoa(nice))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: leads}
	return cmd
}

// lowered runs a child and returns the niceness of its threads, their scheduling classes, and the
// niceness of its session before and after.
func lowered(t *testing.T, nice int, leads bool) (threads, classes map[string]int, before, after string) {
	t.Helper()
	out, err := command(t, nice, leads).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	threads, classes = map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "session "); ok {
			before, after, _ = strings.Cut(rest, " ")
			continue
		}
		niceness, class, _ := strings.Cut(line, " class ")
		threads[niceness]++
		classes[class]++
	}
	return threads, classes, before, after
}

func own(t *testing.T) int {
	t.Helper()
	is, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	return 20 - is
}

// refused reports whether the system lets no thread lower its priority, as filters of system calls
// do, and checks that Lower says so then.
func refused(t *testing.T, nice int) bool {
	t.Helper()
	is := own(t)
	if is >= nice {
		return false
	}
	answer := make(chan error)
	go func() {
		// The thread ends with its goroutine.
		runtime.LockOSThread()
		answer <- unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), is+1)
	}()
	err := <-answer
	if err == nil {
		return false
	}
	if out, ended := command(t, nice, false).CombinedOutput(); ended == nil || !strings.Contains(string(out), "priority: lower to niceness "+strconv.Itoa(nice)) || !strings.Contains(string(out), err.Error()) {
		t.Errorf("the system refuses (%v), but not Lower: %v\n%s", err, ended, out)
	}
	t.Logf("niceness %d: the system refuses it: %v", nice, err)
	return true
}

// mayIdle reports whether the system lets threads into the class SCHED_IDLE; some containers do
// not.
func mayIdle(t *testing.T) bool {
	t.Helper()
	may := make(chan bool)
	go func() {
		// The thread ends with its goroutine.
		runtime.LockOSThread()
		may <- idle(unix.Gettid())
	}()
	return <-may
}

// Every thread is lowered, also those that are made meanwhile and afterwards; a priority that is
// lower already stays.
func TestLowerReachesEveryThread(t *testing.T) {
	before := own(t)
	for _, nice := range []int{1, 10, Least} {
		if refused(t, nice) {
			continue
		}
		for range 2 {
			threads, classes, _, _ := lowered(t, nice, false)
			want := strconv.Itoa(max(nice, before))
			if threads[want] < 40 || len(threads) != 1 {
				t.Fatalf("niceness %d: number of threads by niceness: %v, expected at least 40 of %s", nice, threads, want)
			}
			if idle := strconv.Itoa(unix.SCHED_IDLE); len(classes) != 1 || nice == Least && mayIdle(t) && classes[idle] == 0 {
				t.Fatalf("niceness %d: number of threads by scheduling class: %v", nice, classes)
			}
		}
	}
}

// The session is lowered where it is the process's own, and no other.
func TestLowerLeavesTheSessionOfOthers(t *testing.T) {
	if refused(t, 12) {
		return
	}
	if _, _, before, after := lowered(t, 12, false); before == "" || after != before {
		t.Errorf("niceness of the session: %q, was %q", after, before)
	}
	_, _, before, after := lowered(t, 12, true)
	want := "12"
	if before == ungrouped {
		want = ungrouped
	}
	if after != want {
		t.Errorf("niceness of the process's own session: %q, was %q, expected %s", after, before, want)
	}
}
