package training

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// editStored changes the configuration of a run in both places where it is stored.
func editStored(t *testing.T, dir string, edit func(text string) string) {
	t.Helper()
	put := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(run.ConfigFile, []byte(edit(string(apptest.ReadBytes(t, filepath.Join(dir, run.ConfigFile))))))
	var l map[string]json.RawMessage
	if err := run.ReadJSON(filepath.Join(dir, run.LineageFile), &l); err != nil {
		t.Fatal(err)
	}
	var text string
	if err := json.Unmarshal(l["config"], &text); err != nil {
		t.Fatal(err)
	}
	l["config"], _ = json.Marshal(edit(text))
	out, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	put(run.LineageFile, out)
}

// cut removes lines of a document by their beginnings, with what is indented below them.
func cut(t *testing.T, text string, lines ...string) string {
	t.Helper()
	for _, l := range lines {
		indent := len(l) - len(strings.TrimLeft(l, " "))
		re := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(l) + `.*\n(?: {` + string(rune('0'+indent+1)) + `,}.*\n)*`)
		if n := len(re.FindAllString(text, -1)); n != 1 {
			t.Fatalf("%q is there %d times in\n%s", l, n, text)
		}
		text = re.ReplaceAllString(text, "")
	}
	return text
}

// A run whose configuration was stored before some keys existed goes on as if it had today's
// defaults there.
func TestTrainResumesOlder(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	config, ref := apptest.TrainYAML(t), filepath.Join(t.TempDir(), "ref")
	apptest.TrainRuns(t, config, "--out", ref)
	copyOf := func() string {
		dir := filepath.Join(t.TempDir(), "older")
		if err := os.CopyFS(dir, os.DirFS(ref)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	older, grown := copyOf(), "train.total_env_steps=1500"
	// Keys and sections of the agent, the environment, its data, and the rest.
	editStored(t, older, func(text string) string {
		return cut(t, text, "  gae_lambda:", "  vtrace:", "  policy:", "    amsgrad:", "  hidden_gain:", "  use_sde:", "  fee_rate:", "  execution:", "    end:", "      adjust:", "    drop_undefined:", "wrappers:", "    keep_last:", "  stop:", "    confidence:", "  when:", "tune:")
	})
	apptest.TrainRuns(t, "--resume", older, "--set", grown)
	apptest.TrainRuns(t, "--resume", ref, "--set", grown)
	sameTraining(t, "a run of an older program", older, ref)
	text := string(apptest.ReadBytes(t, filepath.Join(older, run.ConfigFile)))
	for _, key := range []string{"gae_lambda: 1.0", "fee_rate: 0.0005", "drop_undefined: true", "keep_last: 3"} {
		if !strings.Contains(text, key) {
			t.Errorf("the configuration of a run that went on has no %q", key)
		}
	}
	// A key that the encoder lacks may be given as what it is by default.
	apptest.TrainRuns(t, "--resume", older, "--set", "agent.encoder.padding=valid")
	apptest.Refuse(t, []string{"train", "--resume", older, "--set", "agent.encoder.padding=causal"}, "agent.encoder.padding: valid -> causal")
	// Another value than the default of a key that was not stored is a change, and so is one of a
	// key that was.
	editStored(t, older, func(text string) string { return cut(t, text, "  gae_lambda:", "  fee_rate:", "wrappers:") })
	apptest.Refuse(t, []string{"train", "--resume", older, "--set", "agent.gae_lambda=0.9", "--set", "env.fee_rate=0.1", "--set", "agent.gamma=0.5", "--set", "wrappers.normalize.obs=true"},
		"agent.gae_lambda: 1.0 -> 0.9", "env.fee_rate: 0.0005 -> 0.1", "agent.gamma: 0.96 -> 0.5", "wrappers.normalize.obs: false -> true")
	// Keys that are gone, and values that are not accepted any more.
	told := func(dir string, words ...string) {
		t.Helper()
		r := apptest.Run(t, "train", "-q", "--resume", dir)
		for _, w := range words {
			if r.Code != 1 || !strings.Contains(r.Err, w) {
				t.Errorf("exit status %d, expected %q\n%s", r.Code, w, r.Err)
			}
		}
	}
	gone := copyOf()
	editStored(t, gone, func(text string) string {
		text = strings.Replace(text, "  gamma: 0.96\n", "  gamma: 0.96\n  temperature: 0.3\n", 1)
		return strings.Replace(text, "  num_envs: 4\n", "  num_envs: 4\n  queue: {length: 7, kind: ring}\n", 1)
	})
	told(gone, "resume "+gone, "train.queue: {length: 7, kind: ring} -> absent", `unknown key "queue"`, run.ConfigFile+":")
	editStored(t, gone, func(text string) string { return cut(t, text, "  queue:") })
	told(gone, "agent.temperature: 0.3 -> absent", `unknown key "temperature"`)
	// The file alone can be edited; what the run was started with is known all the same.
	path := filepath.Join(gone, run.ConfigFile)
	if err := os.WriteFile(path, []byte(cut(t, string(apptest.ReadBytes(t, path)), "  temperature:")), 0o644); err != nil {
		t.Fatal(err)
	}
	told(gone, "agent.temperature: 0.3 -> absent")
	refused := copyOf()
	editStored(t, refused, func(text string) string {
		return strings.Replace(text, "share_windows: auto", "share_windows: maybe", 1)
	})
	told(refused, "agent.share_windows: maybe -> not accepted")
}

// A group of seeds whose configuration is older goes on, too; with environments that cannot be
// opened any more, what has changed is still told.
func TestTrainResumesOlderSeeds(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	config, dir := apptest.TrainYAML(t, "1200", "100"), filepath.Join(t.TempDir(), "seeds")
	apptest.TrainRuns(t, config, "--out", dir, "--seeds", "1,2")
	old := func(text string) string { return cut(t, text, "  fee_rate:", "  gae_lambda:") }
	for _, d := range []string{dir, filepath.Join(dir, "seed-1"), filepath.Join(dir, "seed-2")} {
		editStored(t, d, old)
	}
	sum := apptest.TrainRuns(t, "--resume", dir, "--set", "train.total_env_steps=200")
	if len(sum.Runs) != 2 || sum.Runs[0].EnvSteps != 200 || sum.Runs[1].EnvSteps != 200 {
		t.Errorf("%+v", sum)
	}
	bars, err := valueIn(t, filepath.Join(dir, run.ConfigFile), "env.data.source.path")
	if err != nil {
		t.Fatal(err)
	}
	moved := apptest.Write(t, "moved.csv", string(apptest.ReadBytes(t, bars)))
	if err := os.Remove(bars); err != nil {
		t.Fatal(err)
	}
	editStored(t, dir, old)
	apptest.Refuse(t, []string{"train", "--resume", dir, "--set", "env.data.source.path=" + moved}, "env.data.source.path: "+bars+" -> "+moved)
}
