package run_test

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestListsAreNamed: where a document asks for something that the program does not list, the error names
// the key and the list.
func TestListsAreNamed(t *testing.T) {
	few := kinds.All()
	few.Datasets, few.Replays, few.Actors = nil, nil, nil
	engine := portable.New()
	defer engine.Close()
	for _, c := range []struct{ what, document, want string }{
		{"a data set", "agent: {kind: dqn}\ndataset: {path: none}", "dataset.path: this program has no reader of data sets: the list Datasets of its experiment.Kinds is empty"},
		{"a replay", "agent: {kind: dqn}\nreplay: {url: 'grpc://127.0.0.1:1'}", "replay.kind: this program has no replay of the kind flight: the list Replays of its experiment.Kinds is empty"},
		{"actors", "agent: {kind: ppo}\ntrain: {actors: {count: 1, urls: ['grpc+tls://127.0.0.1:1']}}", "train.actors.urls: this program has no actors at grpc+tls://: the list Actors of its experiment.Kinds is empty"},
	} {
		doc, err := configs.Parse("few.yaml", []byte("env: {kind: corridor, cells: 5}\n"+c.document))
		if err != nil {
			t.Fatal(err)
		}
		cfg := experiment.Defaults()
		if err := doc.Decode(&cfg); err != nil {
			t.Fatal(err)
		}
		p, err := run.New(t.Context(), few, run.Job{Name: "few", Config: text(t, cfg), Dir: t.TempDir() + "/run", NoPublish: true}, run.Options{Engine: engine})
		if err == nil {
			_, err = p.Train(t.Context())
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %s", c.what, err, c.want)
		}
	}
}
