package gymnasium_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestBadAnswers: what an environment does wrong is an error that says which one, when and what;
// afterwards the vector can be reset and goes on.
func TestBadAnswers(t *testing.T) {
	cases := []struct {
		how  string
		want []string
	}{
		{"nan reward", []string{"environment 0, step 3 of episode 0: the reward is NaN"}},
		{"two rewards", []string{"environment 0, step 3 of episode 0: the reward is array('d', [1.0, 2.0]), expected a number"}},
		{"no reward", []string{"environment 0, step 3 of episode 0: the reward is None, expected a number"}},
		{"nan observation", []string{`environment 0, step 3 of episode 0: observation "observation": element 0 is NaN`}},
		{"nan at the end", []string{`environment 0, step 3 of episode 0: final observation "observation": element 0 is +Inf`}},
		{"shape", []string{"environment 0, step 3 of episode 0: observation has shape (2,), expected (1,)"}},
		{"words", []string{"environment 0, step 3 of episode 0: observation", "cannot be read"}},
		{"old", []string{"environment 0, step 3 of episode 0: step returns 4 values"}},
		{"no observation", []string{"environment 0, step 3 of episode 0: observation is None, expected an array of shape (1,)"}},
		{"a dict", []string{"environment 0, step 3 of episode 0: observation is {'a': 1}, expected an array of shape (1,)"}},
		{"no answer", []string{"environment 0, step 3 of episode 0: ", "None"}},
		{"no end", []string{"environment 0, step 3 of episode 0: terminated is None and truncated False, expected a truth value each"}},
		{"two ends", []string{"environment 0, step 3 of episode 0: terminated is False and truncated array([True, False]), expected a truth value each"}},
		{"nan info", []string{`environment 0, step 3 of episode 0: diagnostic "extra" is NaN`}},
		{"raise", []string{"environment 0, step 3 of episode 0: python raised an exception", "toys.py", "in deeper", "ValueError: the wheel has come off"}},
		{"sys.exit", []string{"environment 0, step 3 of episode 0: python raised an exception", "SystemExit: I give up"}},
	}
	for _, c := range cases[:longtest.Cases(t, len(cases), 4)] {
		t.Run(c.how, func(t *testing.T) {
			cfg := config("Rude-v0", map[string]any{"how": c.how, "times": 1, "marks": t.TempDir()})
			cfg.Info = []string{"extra"}
			v := openVector(t, open(t, cfg), 3, vector.Options{Workers: 1})
			reset(t, v, 1)
			actions := script(v, 6)
			var err error
			steps := 0
			for ; steps < 3 && err == nil; steps++ {
				err = v.Step(actions[steps])
			}
			if err == nil || steps != 3 {
				t.Fatalf("after %d steps: %v", steps, err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not said: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "onnxrl worker") || strings.Contains(err.Error(), "gone") {
				t.Errorf("the worker itself shows: %v", err)
			}
			if err := v.Step(actions[3]); !errors.Is(err, envs.ErrNoEpisode) {
				t.Errorf("another step gives %v", err)
			}
			reset(t, v, 2)
			for k, a := range actions {
				if err := v.Step(a); err != nil {
					t.Fatalf("after another reset, step %d: %v", k, err)
				}
			}
			if v.Restarts() != 0 {
				t.Errorf("%d workers were replaced", v.Restarts())
			}
		})
	}
}

// TestArraysOfOneElement: a reward or diagnostic may be an array of one element, as arithmetic with
// observations leaves it.
func TestArraysOfOneElement(t *testing.T) {
	cfg := config("Rude-v0", map[string]any{"how": "an array"})
	cfg.Info = []string{"extra"}
	v := openVector(t, open(t, cfg), 2, vector.Options{Workers: 1})
	reset(t, v, 1)
	for _, a := range script(v, 3) {
		if err := v.Step(a); err != nil {
			t.Fatal(err)
		}
	}
	if b := v.Batch(); b.Reward[1] != 2.5 || b.Info[1][0] != 0.5 {
		t.Errorf("reward %g, diagnostics %g", b.Reward[1], b.Info[1])
	}
}

// TestBadMasks: a mask that is none is an error that says where and what; an error inside
// action_masks is the environment's own.
func TestBadMasks(t *testing.T) {
	cases := 0
	for how, want := range sorted.All(longtest.Few(t, map[string]string{
		"none":   "mask of discrete(2 from 1): head 0 has no valid action",
		"long":   "the action mask has 3 elements, expected 2",
		"nan":    "the action mask is [nan, 1], expected truth values",
		"words":  "the action mask is ['a', 'b'], expected truth values",
		"one":    "the action mask has 1 elements, expected 2",
		"raises": "KeyError: 'mask'",
	}, 2)) {
		v := openVector(t, open(t, config("Veiled-v0", map[string]any{"how": how})), 2, vector.Options{Workers: 1})
		reset(t, v, 1)
		var err error
		steps := 0
		for _, a := range script(v, 6) {
			if err = v.Step(a); err != nil {
				break
			}
			steps++
		}
		if steps != 2 || err == nil || !strings.Contains(err.Error(), "step Veiled-v0: environment 0, step 3 of episode 0: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, after %d steps: %q is not said: %v", how, steps, want, err)
		}
		cases++
	}
	if cases != longtest.Cases(t, 6, 2) {
		t.Errorf("%d cases", cases)
	}
}

// TestResetOfOldGym: an observation without info is named.
func TestResetOfOldGym(t *testing.T) {
	v := openVector(t, open(t, config("Alone-v0", nil)), 2, vector.Options{Workers: 1})
	err := v.Reset(rootKey)
	for _, want := range []string{"reset Alone-v0: environment 0, step 0 of episode 0: reset returns", "expected a pair of observation and info"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
}

// TestErrorBesideOthers: where one worker reports an error, the answers of the others are not taken
// for those of the next step.
func TestErrorBesideOthers(t *testing.T) {
	v := openVector(t, open(t, config("Rude-v0", map[string]any{"how": "raise", "times": 1, "marks": t.TempDir()})), 3, vector.Options{Workers: 3})
	reset(t, v, 1)
	actions := script(v, 6)
	for k := range 3 {
		if err := v.Step(actions[k]); (err != nil) != (k == 2) {
			t.Fatalf("step %d: %v", k, err)
		}
	}
	want, _ := play(t, v, 2, 6)
	if got, _ := play(t, v, 2, 6); strings.Join(got, "") != strings.Join(want, "") {
		t.Error("after an error the vector is not what it was")
	}
}

// TestOutput: what environments print, in Python or beside it, does not disturb, and is shown where
// that is wanted.
func TestOutput(t *testing.T) {
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	for _, print := range []bool{false, true} {
		shown, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		os.Stderr = shown
		c := config("Rude-v0", map[string]any{"how": "loud"})
		c.Print = print
		f := open(t, c)
		v := openVector(t, f, 2, vector.Options{Workers: 1})
		reset(t, v, 1)
		for _, a := range script(v, 10) {
			if err := v.Step(a); err != nil {
				t.Fatal(err)
			}
		}
		// When the processes have ended, all that they wrote has been copied.
		if err := errors.Join(v.Close(), f.Close()); err != nil {
			t.Error(err)
		}
		os.Stderr = stderr
		text, err := os.ReadFile(shown.Name())
		if err := errors.Join(err, shown.Close()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"hello from Python", "hello from a shell", "xxxx", "straight to the descriptor"} {
			if strings.Contains(string(text), want) != print {
				t.Errorf("print: %t, but what is shown has %d bytes with regard to %q", print, len(text), want)
			}
		}
	}
}

// TestWorkersAreReplaced: when a worker ends or hangs, its episodes are truncated where they were
// last seen, those of others go on, and the log says what happened.
func TestWorkersAreReplaced(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	for how, want := range sorted.All(map[string][]string{
		"exit": {"exit status 7", "last words of 3"}, "kill": {"signal: killed"}, "hang": {"did not answer in time", "hang_here"},
	}) {
		t.Run(how, func(t *testing.T) {
			var log bytes.Buffer
			cfg := config("Rude-v0", map[string]any{"how": how, "times": 1, "marks": t.TempDir()})
			if how == "hang" {
				// Enough for the steps of the others on a busy machine.
				cfg.Timeout = 8 * time.Second
			}
			v := openVector(t, open(t, cfg), 4, vector.Options{Workers: 2, Log: slog.New(slog.NewTextHandler(&log, nil))})
			reset(t, v, 1)
			b := v.Batch()
			for k, a := range script(v, 8) {
				before := append([]float32{}, b.Obs[0].Float32s()...)
				if err := v.Step(a); err != nil {
					t.Fatalf("step %d: %v", k, err)
				}
				if k != 2 {
					if len(b.Ended) != 0 {
						t.Errorf("step %d: %+v ended", k, b.Ended)
					}
					continue
				}
				// The environments of one worker, whichever came to it first.
				if len(b.Ended) != 2 || b.Ended[0].Env%2 != 0 || b.Ended[1].Env != b.Ended[0].Env+1 {
					t.Fatalf("the episodes of one worker should have ended: %+v", b.Ended)
				}
				for i := range 4 {
					lost := i == b.Ended[0].Env || i == b.Ended[1].Env
					if lost != (b.Type[i] == envs.Last) || b.Discount[i] != 1 || lost != (b.Reward[i] == 0) {
						t.Errorf("environment %d: type %v, reward %g, discount %g", i, b.Type[i], b.Reward[i], b.Discount[i])
					}
					if x := b.Obs[0].Float32s()[i]; lost != (x < 1) {
						t.Errorf("environment %d: the next observation is %g", i, x)
					}
					if lost && b.Final[0].Float32s()[i] != before[i] {
						t.Errorf("environment %d: the final observation is %g, expected %g", i, b.Final[0].Float32s()[i], before[i])
					}
				}
				for _, e := range b.Ended {
					if !e.Truncated || e.Length != 3 || e.Return != 2 || e.Number != 0 {
						t.Errorf("%+v", e)
					}
				}
			}
			if v.Restarts() != 1 {
				t.Errorf("%d workers were replaced, expected 1", v.Restarts())
			}
			for _, w := range append(want, "level=WARN", "truncated", "restarts=1", "max_restarts=3") {
				if !strings.Contains(log.String(), w) {
					t.Errorf("the log does not say %q: %s", w, log.String())
				}
			}
		})
	}
}

// TestSingleEnvironmentIsReplaced: one in a process of its own, behind a wrapper, ends its episode
// as truncated and goes on after Reset.
func TestSingleEnvironmentIsReplaced(t *testing.T) {
	var log bytes.Buffer
	f := open(t, config("Rude-v0", map[string]any{"how": "kill", "times": 1, "marks": t.TempDir()}))
	wrapped, err := wrap.Apply(f, wrap.Config{TimeLimit: 5, FrameStack: wrap.Frames{Initial: wrap.InitialFirst}, Normalize: wrap.Defaults().Normalize})
	if err != nil {
		t.Fatal(err)
	}
	list, err := envs.Make(wrapped, envs.Train, 2)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vector.New(list, vector.Options{Workers: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	reset(t, v, 1)
	var ended []vector.Episode
	for k, a := range script(v, 10) {
		if err := v.Step(a); err != nil {
			t.Fatalf("step %d: %v", k, err)
		}
		ended = append(ended, v.Batch().Ended...)
	}
	lengths := map[int][]int{}
	for _, e := range ended {
		lengths[e.Env] = append(lengths[e.Env], e.Length)
		if !e.Truncated {
			t.Errorf("%+v", e)
		}
	}
	if !slices.Equal(lengths[0], []int{3, 5}) || !slices.Equal(lengths[1], []int{5, 5}) || strings.Count(log.String(), "is replaced") != 1 {
		t.Errorf("episodes of %v steps; the log says %s", lengths, log.String())
	}
}

// TestTooManyRestarts: the run ends with what the last worker had to say.
func TestTooManyRestarts(t *testing.T) {
	for _, at := range []string{"step", "reset"}[:longtest.Cases(t, 2, 1)] {
		cfg := config("Rude-v0", map[string]any{"how": "exit", "at": at})
		cfg.MaxRestarts = 2
		v := openVector(t, open(t, cfg), 2, vector.Options{Workers: 1})
		err := v.Reset(rng.New(1))
		steps := 0
		for ; err == nil && steps < 100; steps++ {
			err = v.Step(script(v, 1)[0])
		}
		var ended *gymnasium.WorkerError
		if !errors.As(err, &ended) || !strings.Contains(err.Error(), "after 2 restarts (max_restarts)") || !strings.Contains(err.Error(), "last words") || v.Restarts() != 2 {
			t.Errorf("%s: after %d steps and %d restarts: %v", at, steps, v.Restarts(), err)
		}
		if at == "step" && steps != 9 {
			t.Errorf("%d steps, expected three times three", steps)
		}
	}
}

// TestKilledFromOutside ends workers between steps and between Resets, and the process that waits
// for work.
func TestKilledFromOutside(t *testing.T) {
	for _, watch := range []time.Duration{0, time.Minute}[:longtest.Cases(t, 2, 1)] {
		killedFromOutside(t, watch)
	}
}

func killedFromOutside(t *testing.T, watch time.Duration) {
	c := config("Walk-v0", nil)
	c.MaxRestarts = 4
	f := open(t, c)
	v := openVector(t, f, 2, vector.Options{Workers: 2})
	v.Watch(watch)
	reset(t, v, 1)
	kill := func(pid int) {
		p, err := os.FindProcess(pid)
		if err == nil {
			err = p.Signal(syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a := script(v, 1)[0]
	for k := range 2 {
		first := v.Pids()
		kill(first[1])
		if err := v.Step(a); err != nil {
			t.Fatal(err)
		}
		if pids := v.Pids(); pids[0] != first[0] || pids[1] == first[1] || v.Restarts() != k+1 {
			t.Errorf("processes %v became %v after %d restarts", first, pids, v.Restarts())
		}
	}
	kill(v.Pids()[0])
	reset(t, v, 2)
	if v.Restarts() != 3 {
		t.Errorf("%d restarts, expected 3", v.Restarts())
	}
	// A checkpoint is made without the environments then, and the run goes on.
	kill(v.Pids()[0])
	if _, err := v.SaveState(); !errors.Is(err, envs.ErrCannotSave) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("saving without a worker: %v", err)
	}
	if err := v.Step(a); err != nil || v.Restarts() != 4 || len(v.Batch().Ended) != 1 {
		t.Errorf("the step after that: %d restarts, %+v, %v", v.Restarts(), v.Batch().Ended, err)
	}
	if _, err := v.SaveState(); err != nil {
		t.Error(err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(v.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	if err := v.Reset(rootKey); !errors.Is(err, envs.ErrClosed) {
		t.Errorf("Reset after Close gives %v", err)
	}
}

// TestWrongActions: no environment moves.
func TestWrongActions(t *testing.T) {
	v := openVector(t, open(t, config("Walk-v0", nil)), 2, vector.Options{})
	if err := v.Step(v.Batch().Actions); !errors.Is(err, envs.ErrNoEpisode) {
		t.Errorf("a step before Reset gives %v", err)
	}
	want, _ := play(t, v, 1, 5)
	reset(t, v, 1)
	got := []string{photo(v.Batch())}
	for _, a := range script(v, 5) {
		var wrong *envs.ActionError
		if err := v.Step(tensor.Of([]int64{0, 2}, 2)); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "environment 1") {
			t.Errorf("a wrong action gives %v", err)
		}
		if err := v.Step(tensor.Of([]int64{0}, 1)); err == nil {
			t.Error("too few actions are accepted")
		}
		if err := v.Step(a); err != nil {
			t.Fatal(err)
		}
		got = append(got, photo(v.Batch()))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Error("wrong actions change episodes")
	}
}

// TestLongRuns steps for longer than any call to the worker may take: none of the time that was
// given to starting it and to saving may run out later.
func TestLongRuns(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	c := config("Walk-v0", nil)
	c.Timeout, c.MaxRestarts = 4*time.Second, 0
	v := openVector(t, open(t, c), 2, vector.Options{Workers: 1})
	reset(t, v, 1)
	if _, err := v.SaveState(); err != nil {
		t.Fatal(err)
	}
	actions := script(v, 64)
	steps := 0
	for end := time.Now().Add(c.Timeout + time.Second); time.Now().Before(end); steps++ {
		if err := v.Step(actions[steps&63]); err != nil {
			t.Fatalf("step %d: %v", steps, err)
		}
		time.Sleep(time.Millisecond)
	}
	if steps == 0 || v.Restarts() != 0 {
		t.Errorf("%d steps, %d restarts", steps, v.Restarts())
	}
}
