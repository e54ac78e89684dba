package app

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// threadNice returns how many threads of a process have which niceness.
func threadNice(t *testing.T, pid int) map[string]int {
	t.Helper()
	names, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			// The thread has ended.
			continue
		}
		// The name of the program may hold anything; niceness is the 19th field, the 17th after it.
		_, rest, _ := strings.Cut(string(text), ") ")
		count[strings.Fields(rest)[16]]++
	}
	return count
}

// A training run keeps the priority that it was started with, and lowers that of all of its threads
// with --nice.
func TestTrainLowersItsPriorityWhenAsked(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	is, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	own := 20 - is
	// Filters of system calls may let no thread do it; then the run goes on as it is, and says so.
	may := make(chan error)
	go func() {
		// The thread ends with its goroutine.
		runtime.LockOSThread()
		may <- unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), min(own+1, 19))
	}()
	refused := <-may
	config := apptest.TrainYAML(t)
	for _, c := range []struct {
		variable string
		args     []string
		want     int
	}{{"", nil, own}, {"", []string{"--nice", "19"}, max(own, 19)}, {"7", nil, max(own, 7)}, {"7", []string{"--nice", "0"}, own}} {
		dir := filepath.Join(t.TempDir(), "run")
		cmd := apptest.Program(t, append([]string{"train", "-q", config, "--out", dir, "--set", "train.total_env_steps=100000000"}, c.args...)...)
		cmd.Env = append(cmd.Env, niceVariable+"="+c.variable)
		var text strings.Builder
		cmd.Stdout, cmd.Stderr = &text, &text
		// By the second checkpoint there are all threads that training needs.
		if err := apptest.StartHeld(t, cmd, 2, filepath.Join(dir, run.CheckpointDir, "ckpt-")); err != nil {
			t.Fatalf("$%s=%q %q: %v\n%s", niceVariable, c.variable, c.args, err, &text)
		}
		got := threadNice(t, cmd.Process.Pid)
		// However it ends.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if refused != nil && c.want > own {
			t.Logf("niceness %d: the system refuses it: %v", c.want, refused)
			c.want = own
			if !strings.Contains(text.String(), "the priority stays as it was") || !strings.Contains(text.String(), refused.Error()) {
				t.Errorf("$%s=%q %q: it is not said that %v:\n%s", niceVariable, c.variable, c.args, refused, &text)
			}
		}
		if want := strconv.Itoa(c.want); got[want] < 3 || len(got) != 1 {
			t.Errorf("$%s=%q %q: threads by niceness: %v, expected only %s\n%s", niceVariable, c.variable, c.args, got, want, &text)
		}
	}
}

func TestNiceRefuses(t *testing.T) {
	apptest.Refuse(t, []string{"train", "qtmrl", "--nice", "20"}, "train: --nice 20: expected 0 to 19")
	apptest.Refuse(t, []string{"bench", "learn", "--list", "--nice", "-1"}, "learn: --nice -1")
	for _, bad := range []string{"low", "20"} {
		cmd := apptest.Program(t, "tune", "cartpole_tune")
		cmd.Env = append(cmd.Env, niceVariable+"="+bad)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "tune: $"+niceVariable) {
			t.Errorf("%q: %v\n%s", bad, err, out)
		}
	}
}
