package serve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func ready(s *Server, model string) (names []string, def string) {
	for _, st := range s.Index(true) {
		if st.Name == model {
			names = append(names, st.Version)
			if st.Default {
				def = st.Version
			}
		}
	}
	return names, def
}

func TestPolicies(t *testing.T) {
	models := []*onnx.Model{scale(1), scale(2), scale(3), nil, scale(5)}
	cases := []struct {
		policy VersionPolicy
		n      int // versions that are listed
		want   string
		def    string
		bad    bool
	}{
		{VersionPolicy{}, 3, "3", "3", false},
		{VersionPolicy{Latest: 2}, 3, "2 3", "3", false},
		{VersionPolicy{Latest: 9}, 3, "1 2 3", "3", false},
		{VersionPolicy{All: true}, 3, "1 2 3", "3", false},
		{VersionPolicy{Specific: []string{"1", "3"}}, 3, "1 3", "3", false},
		{VersionPolicy{Specific: []string{"good"}}, 3, "2", "2", false},
		{VersionPolicy{Specific: []string{"good", "3"}}, 3, "2 3", "2", false},
		{VersionPolicy{Specific: []string{"7", "1"}}, 3, "1", "1", true},
		{VersionPolicy{}, 4, "3", "3", true}, // the newest does not load: the one before it does
		{VersionPolicy{All: true}, 5, "1 2 3 5", "5", true},
	}
	for i, c := range cases {
		l := one("m", Config{Policy: c.policy}, models[:c.n]...)
		l.Aliases = map[string]string{"good": "2"}
		s, err := New(Options{Compiler: portable.New()}, &shelf{list: []Listing{l}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Poll(t.Context()); (err != nil) != c.bad {
			t.Errorf("case %d: %v", i, err)
		}
		if names, def := ready(s, "m"); strings.Join(names, " ") != c.want || def != c.def {
			t.Errorf("case %d: %v and %s by default, expected %s and %s", i, names, def, c.want, c.def)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestABadVersionLeavesTheOldOneServing(t *testing.T) {
	var log []ModelStatus
	l := Listing{Name: "m", Config: Config{}, Versions: []Candidate{candidate("1", scale(2), golden(2))}, Aliases: map[string]string{"prod": "1"}}
	s, src, p := start(t, Options{Log: func(st ModelStatus) { log = append(log, st) }}, l)
	serves := func(version string, k float32, say string) {
		t.Helper()
		for _, name := range []string{"", "prod"} {
			req := ask("m", 1, 1)
			req.Version = name
			var resp Response
			if err := s.Infer(t.Context(), req, &resp); err != nil || resp.Version != version || resp.y() != k {
				t.Errorf("%q: version %s, %v", name, resp.Version, err)
			}
		}
		index := s.Index(false)
		var told []string
		for _, st := range index {
			told = append(told, st.Reason)
		}
		if !strings.Contains(strings.Join(told, "; "), say) {
			t.Errorf("the index %+v does not say %q", index, say)
		}
		if len(log) == 0 || !s.Ready() {
			t.Error("not logged or not ready")
		}
	}
	poll := func(bad bool, l Listing) {
		t.Helper()
		src.put(l)
		if err := s.Poll(t.Context()); (err != nil) != bad {
			t.Errorf("poll: %v", err)
		}
	}
	serves("1", 2, "")
	wrong := Listing{Name: "m", Versions: []Candidate{l.Versions[0], candidate("2", scale(3), golden(2))}, Aliases: map[string]string{"prod": "2"}}
	poll(true, wrong)
	serves("1", 2, "golden outputs differ")
	if err := s.ModelReady("m", "2"); CodeOf(err) != NotReady || !strings.Contains(err.Error(), "golden") {
		t.Error(err)
	}
	runs := p.runs.Load()
	poll(true, wrong) // not tried again before it changes
	if p.runs.Load() != runs {
		t.Error("a version that failed was tried again though nothing has changed")
	}
	poll(true, Listing{Name: "m", Versions: []Candidate{candidate("1", nil, nil)}, Aliases: map[string]string{"prod": "1"}})
	serves("1", 2, "reload failed")
	poll(true, Listing{Name: "m", Config: Config{Instances: -1}, Versions: l.Versions})
	serves("1", 2, "instances is -1")
	poll(true, Listing{Name: "m", Err: errors.New("cannot read the folder")})
	serves("1", 2, "cannot read the folder")
	poll(true, Listing{Name: "m", Config: Config{State: []StatePort{{Input: "q", Output: "y"}}}, Stamp: "with state", Versions: l.Versions, Aliases: l.Aliases})
	serves("1", 2, `no input "q"`)
	right := Listing{Name: "m", Versions: []Candidate{l.Versions[0], candidate("2", scale(3), golden(3))}, Aliases: map[string]string{"prod": "2"}}
	poll(false, right)
	serves("2", 3, "")
	poll(false, Listing{Name: "other", Versions: right.Versions})
	src.mu.Lock()
	src.list = src.list[1:]
	src.mu.Unlock()
	if err := s.Poll(t.Context()); err != nil {
		t.Error(err)
	}
	wantCode(t, s.Infer(t.Context(), ask("m", 1, 1), &Response{}), NotFound)
	if err := s.Infer(t.Context(), ask("other", 1, 1), &Response{}); err != nil {
		t.Error(err)
	}
}

func TestExplicitLoading(t *testing.T) {
	fixed, _, _ := start(t, Options{}, one("m", Config{}, scale(2)))
	wantCode(t, fixed.Load(t.Context(), "m", LoadOptions{}), Unsupported)
	wantCode(t, fixed.Unload(t.Context(), "m"), Unsupported)

	s, src, p := start(t, Options{Mode: Explicit}, one("m", Config{}, scale(2)), one("bad", Config{}, nil))
	if !s.Ready() {
		t.Error("a server that was told to serve nothing is ready")
	}
	wantCode(t, s.Infer(t.Context(), ask("m", 1, 1), &Response{}), NotReady)
	wantCode(t, s.Load(t.Context(), "none", LoadOptions{}), NotFound)
	if err := s.Load(t.Context(), "bad", LoadOptions{}); err == nil || !strings.Contains(err.Error(), "damaged") || !s.Ready() {
		t.Error(err)
	}
	if err := s.Load(t.Context(), "m", LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Infer(t.Context(), ask("m", 1, 1), &Response{}); err != nil {
		t.Error(err)
	}
	if err := s.Load(t.Context(), "m", LoadOptions{Config: []byte(`{"name": "m", "max_batch_size": 3, "instanceGroup": [{"count": 2}]}`)}); err != nil {
		t.Error(err)
	}
	if c, err := s.Config("m", ""); err != nil || c.MaxBatch != 3 || c.Instances != 2 {
		t.Errorf("%+v %v", c, err)
	}
	src.put(one("m", Config{}, scale(2), scale(4)))
	if err := s.Poll(t.Context()); err != nil { // what Load was given stays
		t.Error(err)
	}
	if m, err := s.Metadata("m", ""); err != nil || m.Version != "1" || m.MaxBatch != 3 || len(m.Inputs) != 1 || len(m.Outputs) != 2 {
		t.Errorf("%+v %v", m, err)
	}
	bytes, err := onnx.Marshal(scale(7))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []LoadOptions{
		{Files: map[string][]byte{"file:1/model.onnx": bytes}},
		{Config: []byte(`{}`), Files: map[string][]byte{"file:../model.onnx": bytes}},
		{Config: []byte(`{}`), Files: map[string][]byte{"1/x/model.onnx": bytes}},
		{Config: []byte(`{}`), Files: map[string][]byte{"01/model.onnx": bytes}},
		{Config: []byte(`[`)},
		{Config: []byte(`{"name": "other"}`)},
		{Config: []byte(`{"backend": "tensorrt"}`)},
	} {
		wantCode(t, s.Load(t.Context(), "m", o), InvalidArgument)
	}
	if err := s.Load(t.Context(), "m", LoadOptions{Config: []byte(`{}`), Files: map[string][]byte{"file:6/model.onnx": []byte("rubbish")}}); err == nil {
		t.Error("rubbish was loaded")
	}
	if err := s.Load(t.Context(), "m", LoadOptions{Config: []byte(`{}`), Files: map[string][]byte{"file:5/model.onnx": bytes, "file:6/model.onnx": []byte("rubbish")}}); err == nil {
		t.Error("rubbish was loaded")
	}
	if names, _ := ready(s, "m"); !slices.Equal(names, []string{"5"}) {
		t.Errorf("%v", names)
	}
	if err := s.Unload(t.Context(), "m"); err != nil {
		t.Error(err)
	}
	wantCode(t, s.Infer(t.Context(), ask("m", 1, 1), &Response{}), NotReady)
	wantCode(t, s.Unload(t.Context(), "none"), NotFound)
	until(t, "sessions close", func() bool { return p.sessions.Load() == 0 })
	if index := s.Index(false); len(index) == 0 || len(s.Index(true)) != 0 {
		t.Errorf("%+v", index)
	}
}

func save(t testing.TB, path string, m *onnx.Model) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestRepository(t *testing.T) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "m/1/model.onnx"), scale(1))
	save(t, filepath.Join(dir, "m/10/model.onnx"), scale(10))
	save(t, filepath.Join(dir, "m/9/model.onnx/model.onnx"), scale(9))
	save(t, filepath.Join(dir, "m/02/model.onnx"), scale(3))
	for folder, k := range sorted.All(map[string]float32{"named/1/net.onnx": 5, "named/2/net.onnx/net.onnx": 6, "named/3/net.onnx/model.onnx": 7}) {
		save(t, filepath.Join(dir, folder), scale(k))
	}
	save(t, filepath.Join(dir, "named/3/model.onnx"), scale(8)) // not the one that is meant
	if err := os.WriteFile(filepath.Join(dir, "named/config.pbtxt"), []byte(`default_model_filename: "net.onnx" version_policy { all { } }`), 0o666); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(dir, "m/next/model.onnx"), scale(4))
	save(t, filepath.Join(dir, ".hidden/1/model.onnx"), scale(4))
	config := `
		# served by two
		name: "m"
		platform: 'onnxruntime_onnx'
		max_batch_size: 16
		input [ { name: "x", data_type: TYPE_FP32, dims: [ 2 ] } ]
		instance_group { count: 2 kind: KIND_CPU }
		version_policy: { latest { num_versions: 2 } }
		dynamic_batching < preferred_batch_size: [ 4, 8 ]; max_queue_delay_microseconds: 100 default_queue_policy { max_queue_size: 7 default_timeout_microseconds: 5000000 } >
		parameters { key: "intra_op_thread_count" value { string_value: "1" } }
		parameters { key: "onnxrl.non_finite" value: { string_value: "rej" "ect" } }`
	if err := os.WriteFile(filepath.Join(dir, "m/config.pbtxt"), []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "README"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Compiler: portable.New()}, NewRepository(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if err := s.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names, def := ready(s, "m"); strings.Join(names, " ") != "9 10" || def != "10" {
		t.Errorf("%v %s", names, def)
	}
	for version, k := range sorted.All(map[string]float32{"1": 5, "2": 6, "3": 7}) {
		var resp Response
		req := ask("named", 1, 1)
		req.Version = version
		if err := s.Infer(t.Context(), req, &resp); err != nil || resp.Outputs[0].Value.Float32s()[0] != k {
			t.Errorf("version %s of another file's name: %v, %v", version, resp.Outputs, err)
		}
	}
	c, err := s.Config("m", "")
	want := Config{MaxBatch: 16, Instances: 2, Threads: 1, MaxQueue: 7, QueueTimeout: 5 * time.Second, NonFinite: RejectNonFinite, Policy: VersionPolicy{Latest: 2}, Sequences: Sequences{Max: DefaultMaxSequences, Idle: DefaultIdle}}
	if err != nil || c.Batching.MaxDelay != 100*time.Microsecond || !slices.Equal(c.Batching.Preferred, []int{4, 8}) {
		t.Errorf("%+v %v", c, err)
	}
	if c.MaxBatch != want.MaxBatch || c.Instances != want.Instances || c.MaxQueue != want.MaxQueue || c.QueueTimeout != want.QueueTimeout || c.NonFinite != want.NonFinite || c.Sequences != want.Sequences {
		t.Errorf("%+v", c)
	}
	// A version appears; another one is damaged; the watch sees both.
	save(t, filepath.Join(dir, "m/11/model.onnx"), scale(11))
	if err := os.WriteFile(filepath.Join(dir, "m/10/model.onnx"), []byte("rubbish"), 0o666); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(dir, "n/1/model.onnx"), scale(1))
	save(t, filepath.Join(dir, "empty/x"), scale(1))
	ticks := make(chan time.Time, 1)
	reports := make(chan error, 10)
	ticks <- time.Time{}
	close(ticks)
	s.Watch(t.Context(), ticks, func(err error) { reports <- err })
	if err := errors.Join(<-reports, <-reports); !strings.Contains(err.Error(), `model "m" version 10`) || !strings.Contains(err.Error(), `model "empty"`) || len(reports) > 0 {
		t.Error(err)
	}
	if names, def := ready(s, "m"); strings.Join(names, " ") != "10 11" || def != "11" {
		t.Errorf("%v %s", names, def)
	}
	if names, _ := ready(s, "n"); len(names) != 1 {
		t.Error("the new model does not serve")
	}
	if s.Ready() {
		t.Error("ready though a model has no version")
	}
	if _, err := NewRepository(filepath.Join(dir, "none")).Scan(t.Context()); err == nil {
		t.Error("no folder, no error")
	}
}

func TestArtifacts(t *testing.T) {
	store, err := artifact.Open(t.TempDir(), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(name string, k float32, aliases ...string) artifact.Version {
		t.Helper()
		b, err := onnx.Marshal(scale(k))
		if err != nil {
			t.Fatal(err)
		}
		v, err := store.Publish(t.Context(), artifact.Draft{Manifest: artifact.Manifest{Name: name, Kind: "model"}, ModelBytes: b, Golden: golden(k), Aliases: aliases})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	one, two := publish("m", 1, "prod"), publish("m", 2)
	publish("other", 5)
	s, err := New(Options{Compiler: portable.New()}, NewArtifacts(store, map[string]Config{"m": {Policy: VersionPolicy{Specific: []string{"prod", "latest"}}}}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	serves := func(version string, v artifact.Version, k float32) {
		t.Helper()
		if err := s.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		req := ask("m", 1, 1)
		req.Version = version
		var resp Response
		if err := s.Infer(t.Context(), req, &resp); err != nil || resp.Version != v.Digest || resp.y() != k {
			t.Errorf("%q: %v %v", version, resp, err)
		}
	}
	serves("", one, 1)
	serves("prod", one, 1)
	serves("latest", two, 2)
	serves(two.Digest, two, 2)
	serves(two.Digest[7:13], two, 2)
	if _, err := store.Alias(t.Context(), "m:latest", "prod"); err != nil {
		t.Fatal(err)
	}
	serves("", two, 2)
	three := publish("m", 3, "prod")
	serves("", three, 3)
	if _, err := store.Alias(t.Context(), one.Digest, "prod"); err != nil { // back
		t.Fatal(err)
	}
	serves("", one, 1)
	serves("latest", three, 3)
	md, err := s.Metadata("m", "prod")
	if err != nil || md.Manifest == nil || md.Manifest.Name != "m" || !slices.Equal(md.Aliases, []string{"prod"}) || len(md.Versions) != 2 {
		t.Errorf("%+v %v", md, err)
	}
	if g, err := s.Golden("m", ""); err != nil || g.Inputs["x"] == nil {
		t.Error(err)
	}
	wantCode(t, s.ModelReady("m", two.Digest), NotFound)
	wantCode(t, s.ModelReady("other", ""), NotFound)
	// A damaged blob leaves what serves.
	four := publish("m", 4, "prod")
	if err := os.WriteFile(four.ModelFile(), []byte("rubbish"), 0o666); err != nil {
		if err := os.Chmod(four.ModelFile(), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(four.ModelFile(), []byte("rubbish"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Poll(t.Context()); err == nil || !errors.Is(err, artifact.ErrDamaged) {
		t.Errorf("damage: %v", err)
	}
	var resp Response
	if err := s.Infer(t.Context(), ask("m", 1, 1), &resp); err != nil || resp.Version != one.Digest {
		t.Errorf("%v %v", resp.Version, err)
	}
}

// TestAliasesOfAStore: without a policy every alias is served and followed, and who names no
// version gets the latest.
func TestAliasesOfAStore(t *testing.T) {
	store, err := artifact.Open(t.TempDir(), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(k float32, aliases ...string) artifact.Version {
		t.Helper()
		b, err := onnx.Marshal(scale(k))
		if err != nil {
			t.Fatal(err)
		}
		v, err := store.Publish(t.Context(), artifact.Draft{Manifest: artifact.Manifest{Name: "m", Kind: "model"}, ModelBytes: b, Golden: golden(k), Aliases: aliases})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	one, two := publish(1, "prod"), publish(2)
	if _, err := store.Publish(t.Context(), artifact.Draft{Manifest: artifact.Manifest{Name: "rows", Kind: "replay"}, Data: true, Files: []artifact.NewFile{{Title: "a", Data: []byte("a")}}}); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Compiler: portable.New()}, NewArtifacts(store, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	asked := 0
	serves := func(want map[string]artifact.Version) {
		t.Helper()
		if err := s.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		for version, v := range sorted.All(want) {
			req := ask("m", 1, 1)
			req.Version = version
			var resp Response
			if err := s.Infer(t.Context(), req, &resp); err != nil || resp.Version != v.Digest {
				t.Errorf("%q: %v %v, expected %s", version, resp.Version, err, v.Digest)
			}
			asked++
		}
	}
	serves(map[string]artifact.Version{"": two, "latest": two, "prod": one})
	// Data are no model.
	wantCode(t, s.ModelReady("rows", ""), NotFound)
	three := publish(3)
	if _, err := store.Alias(t.Context(), two.Digest, "best"); err != nil {
		t.Fatal(err)
	}
	serves(map[string]artifact.Version{"": three, "latest": three, "prod": one, "best": two})
	if _, err := store.Alias(t.Context(), three.Digest, "prod"); err != nil {
		t.Fatal(err)
	}
	serves(map[string]artifact.Version{"": three, "prod": three, "best": two})
	// A version that no alias names any more is no longer held.
	wantCode(t, s.ModelReady("m", one.Digest), NotFound)
	// Without latest, as after pulling a tag: the newest version that has an alias; without any,
	// the newest.
	remove := func(aliases ...string) {
		t.Helper()
		for _, alias := range aliases {
			if err := store.RemoveAlias(t.Context(), "m", alias); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove(artifact.Latest)
	serves(map[string]artifact.Version{"": three, "prod": three, "best": two})
	if _, err := store.Alias(t.Context(), one.Digest, "prod"); err != nil {
		t.Fatal(err)
	}
	serves(map[string]artifact.Version{"": two, "prod": one, "best": two})
	remove("prod", "best")
	serves(map[string]artifact.Version{"": three})
	if asked != 17 {
		t.Errorf("%d requests", asked)
	}
}

// A model that was found and cannot be served leaves the server ready as long as another model
// serves; one that was asked for by name does not.
func TestReadyWithoutWhatWasFound(t *testing.T) {
	broken := func(name string, found bool) Listing {
		return Listing{Name: name, Err: errors.New("it is damaged"), Found: found}
	}
	n := 0
	for _, c := range []struct {
		list  []Listing
		ready bool
	}{
		{[]Listing{one("a", Config{}, scale(1)), broken("b", true)}, true}, {[]Listing{one("a", Config{}, scale(1)), broken("b", false)}, false},
		{[]Listing{broken("b", true)}, false}, {nil, true},
	} {
		s, err := New(Options{Compiler: portable.New()}, &shelf{list: c.list})
		if err != nil {
			t.Fatal(err)
		}
		if s.Ready() {
			t.Error("ready before anything was tried")
		}
		err = s.Poll(t.Context())
		if s.Ready() != c.ready || (err != nil) != (len(c.list) > 0 && c.list[len(c.list)-1].Err != nil) {
			t.Errorf("%d models: ready %t, %v", len(c.list), s.Ready(), err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 4 {
		t.Error(n)
	}
}
