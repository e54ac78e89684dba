package training

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// children are the processes that a process has started.
func children(t *testing.T, of int) (list []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended.
		}
		// pid (name) state ppid …
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(of) && err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// alive reports whether a process is there that has not ended.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(text, []byte(") Z "))
}

// await waits until something is so, which the test's own limit ends.
func await(so func() bool) {
	for !so() {
		time.Sleep(5 * time.Millisecond)
	}
}

// An actor that is killed is started again, and the run loses nothing but its unroll; a signal ends
// all of them with a checkpoint, from which the run goes on.
func TestActorProcesses(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	config := apptest.Write(t, "actors.yaml", `env: {kind: corridor, cells: 4}
agent: {kind: impala, n_steps: 8, hidden: [4]}
train: {num_envs: 4, total_env_steps: 1000000000, threads: 1, validation: {every_steps: 0}, actors: {count: 2, processes: true}}
publish: {when: never}
`)
	dir := filepath.Join(t.TempDir(), "run")
	cmd := apptest.Program(t, "train", "-q", config, "--out", dir)
	var out, errw bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	logged := func() int64 {
		info, err := os.Stat(filepath.Join(dir, "metrics.jsonl"))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	await(func() bool { return logged() > 0 })
	first := children(t, pid)
	if len(first) != 2 {
		t.Fatalf("%d processes act, expected 2", len(first))
	}
	if err := syscall.Kill(first[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var second []int
	await(func() bool {
		second = children(t, pid)
		return len(second) == 2 && !slices.Contains(second, first[0])
	})
	at := logged()
	await(func() bool { return logged() > at })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != apptest.Interrupted || strings.Count(errw.String(), "an actor is lost and is begun again") != 1 || !strings.Contains(errw.String(), "signal: killed") {
		t.Errorf("%v\n%s%s", err, out.String(), errw.String())
	}
	for _, p := range slices.Concat(first, second) {
		if alive(p) {
			t.Errorf("process %d goes on", p)
		}
	}
	steps, err := run.Reached(dir)
	if err != nil || steps == 0 || steps%32 != 0 {
		t.Fatalf("%d env steps, %v", steps, err)
	}
	at = logged()
	var report bytes.Buffer
	cmd = apptest.Program(t, "train", "-q", "--json", "--resume", dir)
	cmd.Stdout = &report
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(func() bool { return logged() > at })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != apptest.Interrupted {
		t.Fatal(err)
	}
	sum := apptest.Decoded[run.Summary](t, report.String())
	// A signal may come within a learner step, whose env steps are counted already.
	if r := sum.Runs[0]; r.EnvSteps <= steps || r.EnvSteps-r.LearnerSteps*32 > 32 || r.EnvSteps < r.LearnerSteps*32 || r.PolicyLag.Lost != 1 || r.PolicyLag.Max > 1 {
		t.Errorf("%+v, %+v", r, r.PolicyLag)
	}
}
