package app

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

const scaledRequest = `{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]}`

func scaledAnswer(factor float32) string { return fmt.Sprintf(`"data":[%g,%g]`, factor, 2*factor) }

// Train, serve the run's store, infer, publish another version: answers change and no request
// fails, whatever the moment.
func TestServeFollowsTheStore(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	apptest.TrainRuns(t, apptest.TrainYAML(t), "--out", dir, "--set", "train.total_env_steps=200")
	store := filepath.Join(dir, "artifacts")
	r := apptest.StartServe(t, "--store", store, "--watch", "--watch-interval", "5ms")
	if len(r.First.Models) != 1 || r.First.Models[0].State != "READY" || r.First.GRPC == "" || r.First.Engine == "" {
		t.Fatalf("started with %+v\n%s", r.First, r.Log)
	}
	name := r.First.Models[0].Name
	// The request is made from what the page has of the model: the recorded sample.
	var page struct {
		Inputs []struct{ Name, Datatype string }
		Sample map[string]struct {
			Shape []int
			Data  json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(r.Want(200, "/page/model?name="+name, "")), &page); err != nil || len(page.Inputs) == 0 || len(page.Sample) != len(page.Inputs) {
		t.Fatalf("the page describes %+v, %v", page, err)
	}
	var inputs []map[string]any
	for _, in := range page.Inputs {
		inputs = append(inputs, map[string]any{"name": in.Name, "datatype": in.Datatype, "shape": page.Sample[in.Name].Shape, "data": page.Sample[in.Name].Data})
	}
	body, err := json.Marshal(map[string]any{"inputs": inputs})
	if err != nil {
		t.Fatal(err)
	}
	infer := "/v2/models/" + name + "/infer"
	type answer struct {
		Version string `json:"model_version"`
		Outputs []struct {
			Name string
			Data []float64
		}
	}
	ask := func() (a answer, err error) {
		status, text, err := apptest.Call(r.URL(infer), string(body))
		if err == nil && status != 200 {
			err = fmt.Errorf("status %d: %s", status, text)
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &a)
		}
		return a, err
	}
	first, err := ask()
	if err != nil || first.Version != r.First.Models[0].Version || len(first.Outputs) == 0 {
		t.Fatalf("%+v, %v", first, err)
	}

	// Another run's model becomes the next version, and then the first one again, and so on.
	other := filepath.Join(t.TempDir(), "other")
	apptest.TrainRuns(t, apptest.TrainYAML(t, "seed: 1", "seed: 2"), "--out", other, "--set", "train.total_env_steps=200")
	s, err := artifact.Open(store, artifact.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v, err := s.Publish(t.Context(), artifact.Draft{Manifest: artifact.Manifest{Name: name, Kind: "agent"}, Model: filepath.Join(other, "best.onnx")})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	var stop atomic.Bool
	asked := map[string]int{}
	go func() {
		for !stop.Load() {
			a, err := ask()
			if err == nil && a.Version != first.Version && a.Version != v.Digest {
				err = fmt.Errorf("an answer of version %q", a.Version)
			}
			if err != nil {
				done <- err
				return
			}
			asked[a.Version]++
		}
		done <- nil
	}()
	for i := range 6 {
		want := []string{v.Digest, first.Version}[i%2]
		if _, err := s.Alias(t.Context(), name+"@"+want, artifact.Latest); err != nil {
			t.Fatal(err)
		}
		for {
			a, err := ask()
			if err != nil {
				t.Fatalf("swap %d: %v\n%s", i, err, r.Log)
			}
			if a.Version == want {
				break
			}
		}
	}
	stop.Store(true)
	if err := <-done; err != nil || asked[v.Digest] == 0 || asked[first.Version] == 0 {
		t.Errorf("%v, asked %v", err, asked)
	}
	// A version whose golden values are wrong changes nothing, and the page says why.
	g, err := mustGolden(t, s, first.Version)
	if err != nil {
		t.Fatal(err)
	}
	bad, err := s.Publish(t.Context(), artifact.Draft{Manifest: artifact.Manifest{Name: name, Kind: "agent"}, Model: filepath.Join(other, "best.onnx"), Golden: g})
	if err != nil {
		t.Fatal(err)
	}
	r.Says(shortVersion(bad.Digest) + ": unavailable")
	if a, err := ask(); err != nil || a.Version != first.Version {
		t.Errorf("after a bad version: %+v, %v", a, err)
	}
	// The log is a moment ahead of the table.
	for deadline := time.Now().Add(time.Minute); ; {
		data := r.Want(200, "/page/data", "")
		if strings.Contains(data, "UNAVAILABLE") && strings.Contains(data, "golden") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the page says\n%s", data)
		}
	}
	// So does one whose golden bars lead to other decisions than are recorded, though its golden
	// values are right.
	good, err := s.Resolve(first.Version)
	if err != nil {
		t.Fatal(err)
	}
	draft := artifact.Draft{Manifest: artifact.Manifest{Name: name, Kind: "agent", Features: good.Manifest.Features}, Model: filepath.Join(dir, "best.onnx")}
	for _, f := range []artifact.NewFile{{Title: trader.BarsFile, MediaType: trader.BarsType}, {Title: trader.DecisionsFile, MediaType: trader.DecisionsType}} {
		file, err := good.Open(f.Title)
		if err != nil {
			t.Fatal(err)
		}
		if f.Data, err = io.ReadAll(file); err != nil {
			t.Fatal(err)
		}
		file.Close()
		draft.Files = append(draft.Files, f)
	}
	decisions := draft.Files[1].Data
	decisions[len(decisions)-1] ^= 1
	if bad, err = s.Publish(t.Context(), draft); err != nil {
		t.Fatal(err)
	}
	r.Says(shortVersion(bad.Digest) + ": unavailable: verify: golden bars of " + name)
	if a, err := ask(); err != nil || a.Version != first.Version {
		t.Errorf("after bars that do not fit: %+v, %v", a, err)
	}
	decisions[len(decisions)-1] ^= 1
	draft.Manifest.Description = "with the decisions as they were"
	right, err := s.Publish(t.Context(), draft)
	if err != nil {
		t.Fatal(err)
	}
	r.Says(shortVersion(right.Digest) + ": ready")
	if code := r.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, r.Log)
	}
}

func mustGolden(t *testing.T, s *artifact.Store, digest string) (*artifact.Golden, error) {
	t.Helper()
	v, err := s.Resolve(digest)
	if err != nil {
		return nil, err
	}
	g, err := v.Golden()
	if err == nil && g == nil {
		err = fmt.Errorf("%s has no golden values", digest)
	}
	return g, err
}

// Files, on every engine: what the endpoints say, a reload by SIGHUP, and a request that is under
// way when the server is asked to stop.
func TestServeFiles(t *testing.T) {
	served := 0
	for _, engine := range apptest.Engines() {
		path := scaledFile(t, 2)
		config := apptest.Write(t, "serve.yaml", fmt.Sprintf("models:\n  - {name: one, path: %q}\n", path))
		r := apptest.StartServe(t, config, "--engine", engine)
		if r.First.Engine != engine || len(r.First.Models) != 1 || r.First.PID != r.Cmd.Process.Pid {
			t.Errorf("started with %+v", r.First)
		}
		if a := r.Want(200, "/v2/models/one/infer", scaledRequest); !strings.Contains(a, scaledAnswer(2)) {
			t.Errorf("answer %s", a)
		}
		for _, path := range []string{"/", "/page/page.js", "/page/data", "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/one", "/v2/models/one/versions/1/config", "/v2/models/stats"} {
			r.Want(200, path, "")
		}
		if m := r.Want(200, "/metrics", ""); !strings.Contains(m, `nv_inference_request_success{model="one",version="1"} 1`) {
			t.Errorf("metrics\n%s", m)
		}
		r.Want(404, "/v2/models/two/infer", scaledRequest)

		// Another model in the file, and another content of the first.
		if err := os.Rename(scaledFile(t, 3), path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(config, fmt.Appendf(nil, "models:\n  - {name: one, path: %q}\n  - {name: two, path: %q, max_batch: 4}\n", path, scaledFile(t, 5)), 0o644); err != nil {
			t.Fatal(err)
		}
		r.Signal(syscall.SIGHUP)
		r.Says("reloaded")
		if a := r.Want(200, "/v2/models/one/infer", scaledRequest); !strings.Contains(a, scaledAnswer(3)) {
			t.Errorf("answer %s", a)
		}
		if a := r.Want(200, "/v2/models/two/infer", scaledRequest); !strings.Contains(a, scaledAnswer(5)) {
			t.Errorf("answer %s", a)
		}
		// A file with an error leaves everything as it was.
		if err := os.WriteFile(config, []byte("modles: []\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r.Signal(syscall.SIGHUP)
		r.Says("the configuration stays as it was")
		r.Want(200, "/v2/models/two/infer", scaledRequest)

		// The body of this request comes only after the signal; that the server asks for it says
		// that the request has begun.
		conn, err := net.Dial("tcp", r.First.HTTP)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v2/models/one/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(scaledRequest))
		in := bufio.NewReader(conn)
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
			t.Fatalf("%q, %v", line, err)
		}
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		r.Signal(syscall.SIGTERM)
		r.Says("stopping")
		io.WriteString(conn, scaledRequest)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("the request that was under way: %v\n%s", err, r.Log)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(text), scaledAnswer(3)) {
			t.Errorf("the request that was under way: status %d, %s, %v", resp.StatusCode, text, err)
		}
		conn.Close()
		if err := r.Cmd.Wait(); err != nil || !strings.HasSuffix(r.Log.String(), "onnxrl: stopped\n") {
			t.Errorf("%v\n%s", err, r.Log)
		}
		served++
	}
	if served != len(apptest.Engines()) {
		t.Errorf("%d engines", served)
	}
}
