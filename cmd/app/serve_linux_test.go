package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/models/artifact"
)

// listening is the line that a server prints when it answers.
type listening struct {
	HTTP       string `json:"http"`
	GRPC       string `json:"grpc"`
	TLS        bool   `json:"tls"`
	Token      bool   `json:"token"`
	AdminToken bool   `json:"admin_token"`
	Engine     string `json:"engine"`
	PID        int    `json:"pid"`
	Models     []struct {
		Name    string   `json:"name"`
		Version string   `json:"version"`
		Aliases []string `json:"aliases"`
		State   string   `json:"state"`
		Reason  string   `json:"reason"`
	} `json:"models"`
}

// running is a server process.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	first listening
	errs  *lines
}

// lines are what a process wrote, readable while it writes.
type lines struct {
	mu   chan struct{}
	text bytes.Buffer
	more chan struct{}
}

func newLines() *lines { return &lines{mu: make(chan struct{}, 1), more: make(chan struct{}, 1)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu <- struct{}{}
	l.text.Write(p)
	<-l.mu
	select {
	case l.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu <- struct{}{}
	defer func() { <-l.mu }()
	return l.text.String()
}

// startServe runs onnxrl serve on free ports until it answers.
func startServe(t *testing.T, args ...string) *running {
	t.Helper()
	return startServer(t, program(t, serverLine(args...)...))
}

// serverLine is a command line of a server on free ports.
func serverLine(more ...string) []string {
	return append([]string{"serve", "--json", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"}, more...)
}

// launch starts a server and keeps its log, and ends it with the test.
func launch(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{t: t, cmd: cmd, errs: newLines()}
	cmd.Stderr = r.errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// One that is still there after a failed test.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return r
}

// startServer runs a server until it answers.
func startServer(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r := launch(t, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v\n%s", err, r.errs)
	}
	r.first = decode[listening](t, line)
	return r
}

// says waits until the server's log has the text.
func (r *running) says(text string) {
	r.t.Helper()
	patience := time.After(time.Minute)
	for !strings.Contains(r.errs.String(), text) {
		select {
		case <-r.errs.more:
		case <-patience:
			r.t.Fatalf("the server does not say %q:\n%s", text, r.errs)
		}
	}
}

func (r *running) signal(s os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// stop asks the server to end and returns its exit status.
func (r *running) stop() int {
	r.t.Helper()
	r.signal(syscall.SIGTERM)
	_ = r.cmd.Wait()
	return r.cmd.ProcessState.ExitCode()
}

func (r *running) url(path string) string { return "http://" + r.first.HTTP + path }

// call sends a request; an empty body is a GET.
func call(url, body string) (status int, answer string, err error) {
	var resp *http.Response
	if body == "" {
		resp, err = http.Get(url)
	} else {
		resp, err = http.Post(url, "application/json", strings.NewReader(body))
	}
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// want expects a status and returns the answer.
func (r *running) want(status int, path, body string) string {
	r.t.Helper()
	got, answer, err := call(r.url(path), body)
	if err != nil || got != status {
		r.t.Fatalf("%s: status %d, expected %d: %s %v\n%s", path, got, status, answer, err, r.errs)
	}
	return answer
}

const scaledRequest = `{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]}`

func scaledAnswer(factor float32) string { return fmt.Sprintf(`"data":[%g,%g]`, factor, 2*factor) }

// Train, serve the run's store, infer, publish another version: answers change and no request
// fails, whatever the moment.
func TestServeFollowsTheStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	trainRuns(t, trainYAML(t), "--out", dir, "--set", "train.total_env_steps=200")
	store := filepath.Join(dir, "artifacts")
	r := startServe(t, "--store", store, "--watch", "--watch-interval", "5ms")
	if len(r.first.Models) != 1 || r.first.Models[0].State != "READY" || r.first.GRPC == "" || r.first.Engine == "" {
		t.Fatalf("started with %+v\n%s", r.first, r.errs)
	}
	name := r.first.Models[0].Name
	// The request is made from what the page has of the model: the recorded sample.
	var page struct {
		Inputs []struct{ Name, Datatype string }
		Sample map[string]struct {
			Shape []int
			Data  json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(r.want(200, "/page/model?name="+name, "")), &page); err != nil || len(page.Inputs) == 0 || len(page.Sample) != len(page.Inputs) {
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
		status, text, err := call(r.url(infer), string(body))
		if err == nil && status != 200 {
			err = fmt.Errorf("status %d: %s", status, text)
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &a)
		}
		return a, err
	}
	first, err := ask()
	if err != nil || first.Version != r.first.Models[0].Version || len(first.Outputs) == 0 {
		t.Fatalf("%+v, %v", first, err)
	}

	// Another run's model becomes the next version, and then the first one again, and so on.
	other := filepath.Join(t.TempDir(), "other")
	trainRuns(t, trainYAML(t, "seed: 1", "seed: 2"), "--out", other, "--set", "train.total_env_steps=200")
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
				t.Fatalf("swap %d: %v\n%s", i, err, r.errs)
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
	r.says(shortVersion(bad.Digest) + ": unavailable")
	if a, err := ask(); err != nil || a.Version != first.Version {
		t.Errorf("after a bad version: %+v, %v", a, err)
	}
	// The log is a moment ahead of the table.
	for deadline := time.Now().Add(time.Minute); ; {
		data := r.want(200, "/page/data", "")
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
	for _, f := range []artifact.NewFile{{Title: publish.BarsFile, MediaType: publish.BarsType}, {Title: publish.DecisionsFile, MediaType: publish.DecisionsType}} {
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
	r.says(shortVersion(bad.Digest) + ": unavailable: verify: golden bars of " + name)
	if a, err := ask(); err != nil || a.Version != first.Version {
		t.Errorf("after bars that do not fit: %+v, %v", a, err)
	}
	decisions[len(decisions)-1] ^= 1
	draft.Manifest.Description = "with the decisions as they were"
	right, err := s.Publish(t.Context(), draft)
	if err != nil {
		t.Fatal(err)
	}
	r.says(shortVersion(right.Digest) + ": ready")
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, r.errs)
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
// way when the server is told to stop.
func TestServeFiles(t *testing.T) {
	served := 0
	for _, engine := range testEngines() {
		path := scaledFile(t, 2)
		config := write(t, "serve.yaml", fmt.Sprintf("models:\n  - {name: one, path: %q}\n", path))
		r := startServe(t, config, "--engine", engine)
		if r.first.Engine != engine || len(r.first.Models) != 1 || r.first.PID != r.cmd.Process.Pid {
			t.Errorf("started with %+v", r.first)
		}
		if a := r.want(200, "/v2/models/one/infer", scaledRequest); !strings.Contains(a, scaledAnswer(2)) {
			t.Errorf("answer %s", a)
		}
		for _, path := range []string{"/", "/page/page.js", "/page/data", "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/one", "/v2/models/one/versions/1/config", "/v2/models/stats"} {
			r.want(200, path, "")
		}
		if m := r.want(200, "/metrics", ""); !strings.Contains(m, `nv_inference_request_success{model="one",version="1"} 1`) {
			t.Errorf("metrics\n%s", m)
		}
		r.want(404, "/v2/models/two/infer", scaledRequest)

		// Another model in the file, and another content of the first.
		if err := os.Rename(scaledFile(t, 3), path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(config, fmt.Appendf(nil, "models:\n  - {name: one, path: %q}\n  - {name: two, path: %q, max_batch: 4}\n", path, scaledFile(t, 5)), 0o644); err != nil {
			t.Fatal(err)
		}
		r.signal(syscall.SIGHUP)
		r.says("reloaded")
		if a := r.want(200, "/v2/models/one/infer", scaledRequest); !strings.Contains(a, scaledAnswer(3)) {
			t.Errorf("answer %s", a)
		}
		if a := r.want(200, "/v2/models/two/infer", scaledRequest); !strings.Contains(a, scaledAnswer(5)) {
			t.Errorf("answer %s", a)
		}
		// A file with an error leaves everything as it was.
		if err := os.WriteFile(config, []byte("modles: []\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r.signal(syscall.SIGHUP)
		r.says("the configuration stays as it was")
		r.want(200, "/v2/models/two/infer", scaledRequest)

		// The body of this request comes only after the signal; that the server asks for it says
		// that the request has begun.
		conn, err := net.Dial("tcp", r.first.HTTP)
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
		r.signal(syscall.SIGTERM)
		r.says("stopping")
		io.WriteString(conn, scaledRequest)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("the request that was under way: %v\n%s", err, r.errs)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(text), scaledAnswer(3)) {
			t.Errorf("the request that was under way: status %d, %s, %v", resp.StatusCode, text, err)
		}
		conn.Close()
		if err := r.cmd.Wait(); err != nil || !strings.HasSuffix(r.errs.String(), "onnxrl: stopped\n") {
			t.Errorf("%v\n%s", err, r.errs)
		}
		served++
	}
	if served != len(testEngines()) {
		t.Errorf("%d engines", served)
	}
}
