package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/server"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// scaledModel is y = factor · x of x float32[batch,2].
func scaledModel(t *testing.T, factor float32) *onnx.Model {
	t.Helper()
	pair := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(2)}}
	b := onnx.NewBuilder("scaled", 17)
	b.Output(b.Rename(b.Op("Mul", []onnx.Value{b.Input("x", pair), b.Initializer("factor", tensor.Of([]float32{factor}, 1))}), "y"), pair)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// scaledFile is y = factor · x of x float32[batch,2].
func scaledFile(t *testing.T, factor float32) string {
	t.Helper()
	return apptest.Save(t, scaledModel(t, factor))
}

func TestServeRefuses(t *testing.T) {
	model := apptest.Save(t, scaledModel(t, 1))
	yaml := func(text string) string { return apptest.Write(t, "serve.yaml", text) }
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	damaged := apptest.Write(t, "damaged.onnx", "no model")
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "nothing to serve"},
		{[]string{"--model", "=x"}, "expected NAME=FILE.onnx"},
		{[]string{"--model", model, "--http", "", "--grpc", ""}, "neither an address"},
		{[]string{"--model", model, "--http", "8000"}, "expected host:port"},
		{[]string{"--model", model, "--http", "127.0.0.1:http"}, "no port from 0 to 65535"},
		{[]string{"--model", model, "--http", busy.Addr().String(), "--grpc", ""}, "address already in use"},
		{[]string{"--model", model, "--tls-cert", "x"}, "cert and key belong together"},
		{[]string{"--model", model, "--tls-cert", model, "--tls-key", model}, "tls: cert"},
		{[]string{"--model", model, "--token-file", filepath.Join(t.TempDir(), "none")}, "read the token"},
		{[]string{"--model", model, "--token-file", apptest.Write(t, "token", " \n")}, "there is no token in it"},
		{[]string{"--model", model, "--admin-token-file", filepath.Join(t.TempDir(), "none")}, "read the token"},
		{[]string{"--model", model, "--token-file", apptest.Write(t, "use", "same"), "--admin-token-file", apptest.Write(t, "admin", "same\n")}, "hold the same one"},
		{[]string{"--model", model, "--mode", "explicit", "--http", "0.0.0.0:0"}, "admin_token_file: missing"},
		{[]string{"--model", model, "--mode", "explicit", "--http", "127.0.0.1:0", "--grpc", ":0"}, "admin_token_file: missing"},
		{[]string{"--model", model, "--mode", "explicit", "--http", "127.0.0.1:0", "--grpc", "[::]:0", "--token-file", apptest.Write(t, "token", "use")}, "admin_token_file: missing"},
		{[]string{"--model", model, "--mode", "poll"}, "explicit"},
		{[]string{"--model", model, "--mode", "explicit", "--watch"}, "expected mode fixed"},
		{[]string{"--model", model, "--max-batch", "-1"}, "expected at least 0"},
		{[]string{"--model", model, "--max-body", "0"}, "max_body"},
		{[]string{"--model", "a=" + model, "--model", "a=" + model}, "is there twice"},
		{[]string{"--model", model, "--ab", "model"}, "expected MODEL=VERSION:WEIGHT"},
		{[]string{"--model", model, "--ab", "model=1:x"}, "no number"},
		{[]string{"--model", model, "--shadow", "model="}, "expected MODEL=VERSION"},
		{[]string{"--model", model, "--shadow", "model=1:7"}, "expected 0 to 1"},
		{[]string{"--model", model, "--set", "http"}, "http"},
		{[]string{"--repository", model}, "is no directory"},
		{[]string{"--store", t.TempDir()}, "no artefact store"},
		{[]string{"--model", "x=" + filepath.Join(t.TempDir(), "none.onnx"), "--http", "127.0.0.1:0", "--grpc", ""}, "no such file"},
		{[]string{"--model", "x=nope", "--http", "127.0.0.1:0", "--grpc", ""}, "model \"x\": there is no file nope, and as an artefact: open artefact store runs/artifacts: no artefact store"},
		{[]string{"--model", "x=" + strings.TrimSuffix(model, ".onnx"), "--http", "127.0.0.1:0", "--grpc", ""}, "did you mean " + model + "?"},
		{[]string{"--model", "x=" + filepath.Dir(model), "--http", "127.0.0.1:0", "--grpc", ""}, "is a directory, expected a file NAME.onnx"},
		{[]string{"--model", "x=" + apptest.Write(t, "m.pb", ""), "--http", "127.0.0.1:0", "--grpc", ""}, "is a file, and those of models end in .onnx"},
		{[]string{"--model", damaged, "--http", "127.0.0.1:0", "--grpc", ""}, "damaged"},
		{[]string{filepath.Join(t.TempDir(), "none.yaml")}, "none.yaml"},
	} {
		r := apptest.Run(t, append([]string{"serve", "--engine", portable.Name, "-q"}, c.args...)...)
		if r.Code != 1 || !strings.Contains(r.Err, c.says) || r.Out != "" {
			t.Errorf("%q: exit status %d, expected an error that says %q:\n%s%s", c.args, r.Code, c.says, r.Out, r.Err)
		}
	}
	// All faults of a file are reported at once, with their places.
	r := apptest.Run(t, "serve", yaml("htpp: x\nwatch_interval: 0s\nmodels: []\n"))
	if r.Code != 1 || !strings.Contains(r.Err, `serve.yaml:1`) || !strings.Contains(r.Err, "htpp") {
		t.Errorf("exit status %d\n%s", r.Code, r.Err)
	}
	r = apptest.Run(t, "serve", yaml("models:\n  - {name: a, path: x.onnx, non_finite: never}\n  - {name: b, path: x.onnx, ref: y}\n  - {nmae: c}\n"))
	for _, says := range []string{"serve.yaml:2", "non_finite", "serve.yaml:3", "expected one of them", "serve.yaml:4", "nmae"} {
		if r.Code != 1 || !strings.Contains(r.Err, says) {
			t.Errorf("exit status %d, expected %q in\n%s", r.Code, says, r.Err)
		}
	}
}

// serveArgs reads a command line of serve.
func serveArgs(t *testing.T, file string, args ...string) *serveFlags {
	t.Helper()
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f := newServeFlags(set, configs.Open)
	f.file = file
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// loaded is what the flags and a file give.
func loaded(t *testing.T, f *serveFlags) *serveConfig {
	t.Helper()
	c, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every flag sets its key, and nothing else has to be changed where a setting is added.
func TestServeSettings(t *testing.T) {
	texts := map[string]string{"mode": "explicit", "trace-endpoint": "http://collector:4318", "max-body": "3MiB", "trace-ratio": "0.5", "decisions-full": "wait", "http": "127.0.0.1:1", "grpc": "127.0.0.1:2", "tls-client-ca": "ca"}
	for _, s := range serveArgs(t, "").settings {
		text := texts[s.flag]
		if text == "" {
			switch s.field.(type) {
			case *bool, *allowNonFinite:
				text = "true"
			case *time.Duration:
				text = "3s"
			default:
				text = "3"
			}
		}
		if s.flag == "health" {
			text = "127.0.0.1:3"
		}
		args := []string{"--model", "m=m.onnx", "--" + s.flag + "=" + text}
		switch s.flag {
		case "explore", "decisions-every", "decisions-full":
			args = append(args, "--decisions", "log")
		case "health-metrics":
			args = append(args, "--health", "127.0.0.1:3")
		case "load-model":
			args = append(args, "--mode", "explicit")
		case "tls-cert", "tls-key", "tls-client-ca":
			args = append(args, "--set", "tls={cert: a, key: b}")
		}
		f := serveArgs(t, "", args...)
		c := loaded(t, f)
		i := slices.IndexFunc(f.settings, func(o serveSetting) bool { return o.flag == s.flag })
		if got, given := c.settings()[i].field, f.settings[i].field; !reflect.DeepEqual(got, given) || reflect.DeepEqual(got, s.field) {
			t.Errorf("--%s=%s sets %s to %v, expected %v", s.flag, text, s.key, reflect.ValueOf(got).Elem(), reflect.ValueOf(given).Elem())
		}
	}
}

// Flags edit the file, and models take the defaults that they do not set themselves.
func TestServeConfig(t *testing.T) {
	file := apptest.Write(t, "serve.yaml", `http: 127.0.0.1:9000
max_body: 1MiB
defaults: {max_batch: 8, non_finite: inputs, batching: {max_delay: 2ms}, versions: {latest: 2}}
models:
  - {name: a, path: a.onnx}
  - {name: b, ref: "qtmrl:best", max_batch: 4, non_finite: both, batching: {preferred: [2, 4]}}
  - {name: c, ref: "runs/x//qtmrl@sha256:0123456789", routes: [{version: prod, weight: 3}], shadows: [{version: next, share: 0.5}], sequences: {max: 9, idle: 1m}}
`)
	c := loaded(t, serveArgs(t, file, "--grpc", "", "--max-queue", "7", "--model", "d=x/d.onnx", "--model", "y/e.onnx", "--model", "qtmrl", "--ab", "a=1:9,2:1", "--shadow", "b=sha256:0123456789", "--shadow", "b=best:0.25", "--set", "watch=true"))
	if c.HTTP != "127.0.0.1:9000" || c.GRPC != "" || c.MaxBody != 1<<20 || !c.Watch || c.Drain != 30*time.Second {
		t.Errorf("got %+v", c)
	}
	var names []string
	for _, m := range c.models {
		names = append(names, m.Name)
	}
	if want := []string{"a", "b", "c", "d", "e", "qtmrl"}; !slices.Equal(names, want) {
		t.Fatalf("models %q, expected %q", names, want)
	}
	a := c.models[0].config()
	want := serve.Config{
		MaxBatch: 8, MaxQueue: 7, NonFinite: serve.RejectNonFiniteInputs, Batching: serve.Batching{MaxDelay: 2 * time.Millisecond}, Policy: serve.VersionPolicy{Latest: 2}, Drift: serve.Drift{Limit: 0.25, Window: 2000},
		Routes: []serve.Route{{Version: "1", Weight: 9}, {Version: "2", Weight: 1}},
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("a is\n%+v, expected\n%+v", a, want)
	}
	b := c.models[1].config()
	if b.MaxBatch != 4 || b.NonFinite != serve.RejectNonFinite || !slices.Equal(b.Batching.Preferred, []int{2, 4}) || b.Batching.MaxDelay != 2*time.Millisecond ||
		!slices.Equal(b.Shadows, []serve.Shadow{{Version: "sha256:0123456789", Share: 1}, {Version: "best", Share: 0.25}}) {
		t.Errorf("b is %+v", b)
	}
	if s := c.models[2].config(); s.Sequences.Max != 9 || s.Sequences.Idle != time.Minute || s.Routes[0].Weight != 3 || s.Shadows[0].Share != 0.5 {
		t.Errorf("c is %+v", s)
	}
	if d, e, q := c.models[3], c.models[4], c.models[5]; d.Path != "x/d.onnx" || e.Path != "y/e.onnx" || q.Ref != "qtmrl" || q.MaxQueue != 7 {
		t.Errorf("got %+v, %+v and %+v", d, e, q)
	}
}

// The catalogue lists files, folders and a store, says what is wrong with single models, and
// notices changes.
func TestServeCatalogue(t *testing.T) {
	dir := t.TempDir()
	store, err := artifact.Open(filepath.Join(dir, "store"), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	publish := func(name string, factor float32, aliases ...string) string {
		t.Helper()
		v, err := store.Publish(t.Context(), artifact.Draft{Manifest: artifact.Manifest{Name: name, Kind: "model"}, Model: apptest.Save(t, scaledModel(t, factor)), Aliases: aliases})
		if err != nil {
			t.Fatal(err)
		}
		return v.Digest
	}
	first := publish("stored", 1, "best")
	second := publish("stored", 2)
	folder := filepath.Join(dir, "folders", "folder")
	if err := os.MkdirAll(filepath.Join(folder, "3"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(apptest.Save(t, scaledModel(t, 3)), filepath.Join(folder, "3", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	file := apptest.Save(t, scaledModel(t, 4))
	flags := []string{
		"--store", store.Dir(), "--repository", filepath.Join(dir, "folders"), "--max-batch", "16",
		"--model", "file=" + file, "--model", "pinned=stored:best", "--model", "exact=" + first, "--model", "gone=stored:none", "--model", "nobody=nobody", "--model", "missing=missing.onnx",
		"--ab", "stored=best:1,latest:1", "--shadow", "pinned=latest",
	}
	c := loaded(t, serveArgs(t, "", flags...))
	k, err := newCatalogue(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := k.close(); err != nil {
			t.Error(err)
		}
	}()
	scan := func() map[string]serve.Listing {
		t.Helper()
		list, err := k.Scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]serve.Listing{}
		for _, l := range list {
			byName[l.Name] = l
		}
		return byName
	}
	got := scan()
	for name, want := range sorted.All(map[string]struct {
		versions []string
		policy   []string
		err      string
	}{
		"stored":  {[]string{first, second}, []string{"latest", "best"}, ""},
		"folder":  {[]string{"3"}, nil, ""},
		"file":    {[]string{"1"}, nil, ""},
		"pinned":  {[]string{first, second}, []string{"best", "latest"}, ""},
		"exact":   {[]string{first, second}, []string{first}, ""},
		"gone":    {nil, nil, "none"},
		"nobody":  {nil, nil, "nobody"},
		"missing": {nil, nil, "missing.onnx"},
	}) {
		l := got[name]
		var versions []string
		for _, v := range l.Versions {
			versions = append(versions, v.Name)
		}
		if want.err != "" {
			if l.Err == nil || !strings.Contains(l.Err.Error(), want.err) {
				t.Errorf("%s: error %v, expected one that says %q", name, l.Err, want.err)
			}
			continue
		}
		if l.Err != nil || !slices.Equal(versions, want.versions) || !slices.Equal(l.Config.Policy.Specific, want.policy) || l.Config.MaxBatch != 16 {
			t.Errorf("%s: versions %q, %+v, %v", name, versions, l.Config, l.Err)
		}
	}
	if len(got) != 8 {
		t.Errorf("%d models", len(got))
	}
	// The served models have the factors of the sources.
	s, err := serve.New(serve.Options{Compiler: portable.New()}, k)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	if err := s.Poll(t.Context()); err == nil {
		t.Error("three models that cannot be served are no error")
	}
	infer := func(model, version string) float32 {
		t.Helper()
		var resp serve.Response
		req := serve.Request{Model: model, Version: version, Inputs: []serve.Tensor{{Name: "x", Value: tensor.Of([]float32{1, 1}, 1, 2)}}}
		if err := s.Infer(t.Context(), &req, &resp); err != nil {
			t.Fatalf("%s %s: %v", model, version, err)
		}
		return resp.Outputs[0].Value.Float32s()[0]
	}
	checks := 0
	for _, c := range []struct {
		model, version string
		factor         float32
	}{{"stored", "best", 1}, {"stored", "latest", 2}, {"folder", "3", 3}, {"folder", "", 3}, {"file", "", 4}, {"pinned", "best", 1}, {"exact", "", 1}} {
		if f := infer(c.model, c.version); f != c.factor {
			t.Errorf("%s %s gives %v, expected %v", c.model, c.version, f, c.factor)
		}
		checks++
	}
	if checks != 7 {
		t.Errorf("%d checks", checks)
	}
	// A file with another content is another version of the same name.
	before := got["file"].Versions[0].Stamp
	if err := os.Rename(apptest.Save(t, scaledModel(t, 44)), file); err != nil {
		t.Fatal(err)
	}
	if scan()["file"].Versions[0].Stamp == before {
		t.Error("another content has the same stamp")
	}
	// Settings that change are noticed, and so is a name that is there twice.
	flags = append(flags, "--max-batch", "2")
	stamp := scan()["stored"].Stamp
	if err := k.reload(serveArgs(t, "", flags...)); err != nil {
		t.Fatal(err)
	}
	if scan()["stored"].Stamp == stamp {
		t.Error("other settings have the same stamp")
	}
	flags = append(flags, "--model", "folder="+file)
	if err := k.reload(serveArgs(t, "", flags...)); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Scan(t.Context()); err == nil || !strings.Contains(err.Error(), `"folder" is there twice`) {
		t.Errorf("got %v", err)
	}
	if err := k.reload(serveArgs(t, "", append(flags, "--repository", "")...)); err == nil {
		t.Error("another repository is accepted while running")
	}
}

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return apptest.Write(t, "cert.pem", string(text)), apptest.Write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))), pool
}

// With a token, only the files of the page and the health endpoints are open; with TLS, the
// certificate is read again.
func TestServeNetwork(t *testing.T) {
	s, err := serve.New(serve.Options{Compiler: portable.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	cert, key, pool := certificate(t)
	c := serveDefaults()
	c.HTTP, c.GRPC, c.TokenFile, c.TLS = "127.0.0.1:0", "127.0.0.1:0", apptest.Write(t, "token", "secret\n"), server.TLS{Cert: cert, Key: key}
	n, err := c.listen(slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	logs := &strings.Builder{}
	c.answer(n, s, "portable", slog.New(slog.DiscardHandler), slog.New(slog.NewTextHandler(logs, nil)), nil)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	get := func(path, token string) int {
		t.Helper()
		req, err := http.NewRequest("GET", "https://"+n.HTTP()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode
	}
	for path, open := range sorted.All(map[string]bool{"/": true, "/page/page.js": true, "/v2/health/live": true, "/page/data": false, "/page/model?name=x": false, "/v2": false, "/metrics": false, "/v2/models/stats": false}) {
		if got := get(path, ""); (got == 401) == open {
			t.Errorf("%s without a token: status %d", path, got)
		}
		if got := get(path, "other"); (got == 401) == open {
			t.Errorf("%s with another token: status %d", path, got)
		}
		if got := get(path, "secret"); got == 401 {
			t.Errorf("%s with the token: status %d", path, got)
		}
	}
	// New connections get a new certificate; a broken one leaves the old.
	if err := os.WriteFile(cert, []byte("broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := n.Reload(c.files()); err == nil {
		t.Error("a broken certificate is accepted")
	}
	client.CloseIdleConnections()
	get("/", "")
	cert2, key2, pool2 := certificate(t)
	if err := os.Rename(cert2, cert); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(key2, key); err != nil {
		t.Fatal(err)
	}
	if err := n.Reload(c.files()); err != nil {
		t.Fatal(err)
	}
	client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool2}}}
	get("/", "")
	client.CloseIdleConnections()
	if err := n.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	n.Close()
	if text := logs.String(); strings.Count(text, "\n") != 26 || !strings.Contains(text, "method=GET path=/v2 status=401") || strings.Contains(text, "secret") {
		t.Errorf("access log of %d lines:\n%s", strings.Count(text, "\n"), text)
	}
}

func TestServeExposed(t *testing.T) {
	for _, c := range []struct {
		address, token, cert string
		warnings             int
		says                 string
	}{
		{"127.0.0.1:8000", "", "", 0, ""}, {"[::1]:8000", "", "", 0, ""}, {"localhost:8000", "", "", 0, ""}, {"", "", "", 0, ""},
		{"0.0.0.0:8000", "", "", 1, "token"}, {":8000", "t", "", 1, "TLS"}, {"192.0.2.1:8000", "", "c", 1, "token"}, {"example.org:8000", "t", "c", 0, ""},
	} {
		config := serveConfig{HTTP: c.address, TokenFile: c.token, TLS: server.TLS{Cert: c.cert}}
		got := config.exposed()
		if len(got) != c.warnings || c.says != "" && !strings.Contains(got[0], c.says) {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if got := (&serveConfig{HTTP: ":1", GRPC: ":2"}).exposed(); len(got) != 2 || !strings.Contains(fmt.Sprint(got), "gRPC listens on :2") {
		t.Errorf("got %q", got)
	}
}

// TestPageSample writes recorded inputs as the page reads them, with the numbers that JSON does not
// have as words.
func TestPageSample(t *testing.T) {
	nan, inf := float32(math.NaN()), math.Inf(1)
	m := serve.Metadata{MaxBatch: 8, Inputs: []serve.Port{{Name: "x"}, {Name: "y"}, {Name: "mask"}, {Name: "n"}, {Name: "s", Implicit: true}}}
	g := &artifact.Golden{Inputs: map[string]*tensor.Tensor{
		"x": tensor.Of([]float32{1.5, nan, 3, 4}, 2, 2), "y": tensor.Of([]float64{inf, -inf, 0, 0}, 2, 2), "mask": tensor.Of([]bool{true, false}, 2, 1), "n": tensor.Of([]int64{7, 8}, 2), "s": tensor.New(tensor.Float32, 2, 1),
	}}
	text, err := json.Marshal(pageSample(m, g))
	const want = `{"mask":{"shape":[1,1],"data":[true]},"n":{"shape":[1],"data":[7]},"x":{"shape":[1,2],"data":[1.5,"NaN"]},"y":{"shape":[1,2],"data":["Infinity","-Infinity"]}}`
	if err != nil || string(text) != want {
		t.Errorf("%s %v", text, err)
	}
	g.Inputs["n"] = tensor.New(tensor.String, 2)
	if pageSample(m, g) != nil || pageSample(m, nil) != nil || pageSample(serve.Metadata{}, g) != nil {
		t.Error("a sample of strings, of nothing, or without a batch")
	}
}
