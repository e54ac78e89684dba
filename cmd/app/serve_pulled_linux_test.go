package app

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// A version that was pulled from a registry, by tag or by digest, is served from its store at
// once; a name that cannot be served stops neither the others nor the start, unless it was asked
// for.
func TestServeWhatWasPulled(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	host := newRegistry(t, "", "")
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	push := func(name string, factor float32) versionDoc {
		t.Helper()
		v := apptest.Decoded[versionDoc](t, apptest.Succeed(t, "models", "publish", scaledFile(t, factor), "--name", name, "--store", from, "--json", "-q"))
		apptest.Succeed(t, "models", "push", name, host+"/"+name+":v1", "--store", from, "-q")
		return v
	}
	push("tagged", 2)
	digest := push("digested", 3)
	push("team/nested", 4)
	apptest.Succeed(t, "models", "pull", host+"/tagged:v1", "--store", to, "-q")
	apptest.Succeed(t, "models", "pull", host+"/digested@"+digest.Digest, "--store", to, "-q")
	apptest.Succeed(t, "models", "pull", host+"/team/nested:v1", "--store", to, "-q")
	// One whose model the engine does not take, and one that is damaged on disk.
	s, err := artifact.Open(to, artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	publish := func(name string) artifact.Version {
		t.Helper()
		v, err := s.Publish(t.Context(), artifact.Draft{Manifest: artifact.Manifest{Name: name, Kind: "model"}, Model: scaledFile(t, 5)})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	damaged := publish("damaged")
	path := damaged.ModelFile()
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("no model"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := apptest.StartServe(t, "--engine", portable.Name, "--store", to)
	states := map[string]string{}
	for _, m := range r.First.Models {
		states[m.Name] = m.State
	}
	if len(states) != 4 || states["tagged"] != "READY" || states["digested"] != "READY" || states["team/nested"] != "READY" || states["damaged"] != "UNAVAILABLE" {
		t.Errorf("states %v\n%s", states, r.Log)
	}
	n := 0
	for name, factor := range sorted.All(map[string]float32{"tagged": 2, "digested": 3, "team/nested": 4, "tagged/versions/v1": 2}) {
		path := url.PathEscape(name)
		if model, version, ok := strings.Cut(name, "/versions/"); ok {
			path = model + "/versions/" + version
		}
		if a := r.Want(200, "/v2/models/"+path+"/infer", scaledRequest); !strings.Contains(a, scaledAnswer(factor)) {
			t.Errorf("%s: %s", name, a)
		}
		n++
	}
	if n != 4 {
		t.Error(n)
	}
	r.Want(200, "/v2/health/ready", "")
	r.Want(503, "/v2/models/damaged/ready", "")
	r.Says("warning: damaged")
	if code := r.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, r.Log)
	}
	// Asked for by its name it has to be there.
	for _, args := range [][]string{{"--model", "damaged"}, {"--set", "models=[{name: damaged}]"}} {
		out := apptest.Run(t, append([]string{"serve", "--engine", portable.Name, "--http", "127.0.0.1:0", "--grpc", "", "--store", to}, args...)...)
		if out.Code != 1 || !strings.Contains(out.Err, "damaged") {
			t.Errorf("%q: exit status %d\n%s", args, out.Code, out.Err)
		}
	}
}
