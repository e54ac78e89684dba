package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/artifact"
)

// newRegistry is a registry on a loopback port that asks for a user and password where user is not
// empty. It returns the address.
func newRegistry(t *testing.T, user, password string) string {
	t.Helper()
	under := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); user != "" && (u != user || p != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		under.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// withInput runs the program with a text on standard input and Docker's configuration in a folder.
func withInput(t *testing.T, input, docker string, args ...string) (string, error) {
	t.Helper()
	cmd := apptest.Program(t, args...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(cmd.Env, "DOCKER_CONFIG="+docker)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// Versions with their ancestors go through a registry into another store, are compared, lose an
// alias and are collected.
func TestModelsThroughARegistry(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	host := newRegistry(t, "", "")
	dir := t.TempDir()
	store, other := filepath.Join(dir, "store"), filepath.Join(dir, "other")
	base := apptest.Decoded[versionDoc](t, apptest.Succeed(t, "models", "publish", digitsModel, "--name", "digits/cnn", "--golden", "--bind", "batch=2", "--metric", "valid/accuracy=0.5", "--store", store, "--json"))
	child := apptest.Decoded[versionDoc](t, apptest.Succeed(t, "models", "publish", digitsModel, "--name", "digits/cnn", "--parent", "digits/cnn", "--metric", "valid/accuracy=0.75", "--alias", "prod", "--store", store, "--json"))

	repo := host + "/team/digits"
	out := apptest.Succeed(t, "models", "push", "digits/cnn:prod", repo, "--lineage", "--store", store)
	apptest.Says(t, out, "digits/cnn@", " is "+repo+":prod@"+child.Digest, "with 1 ancestor")
	doc := apptest.Decoded[transferDoc](t, apptest.Succeed(t, "models", "push", "digits/cnn", repo+":v1", "--store", store, "--json", "-q"))
	if doc.Registry != host || doc.Repository != "team/digits" || doc.Tag != "v1" || doc.Versions != 1 || doc.Files != 0 || doc.Bytes != 0 || doc.Skipped != 3 || doc.Version.Digest != child.Digest {
		t.Errorf("pushed %+v", doc)
	}
	apptest.Says(t, apptest.Succeed(t, "models", "push", "digits/cnn@"+base.Digest, repo, "--store", store), "is "+repo+"@"+base.Digest)

	doc = apptest.Decoded[transferDoc](t, apptest.Succeed(t, "models", "pull", repo+":v1", "--as", "digits/cnn:live", "--lineage", "--store", other, "--json"))
	if doc.Versions != 2 || doc.Bytes == 0 || doc.Version.Digest != child.Digest || !slices.Equal(doc.Version.Aliases, []string{"live"}) || doc.Version.Published == nil {
		t.Errorf("pulled %+v", doc)
	}
	apptest.Says(t, apptest.Succeed(t, "models", "pull", repo+":prod", "--store", other), "digits/cnn@", "is digits/cnn:prod", "1 file there already")
	apptest.Says(t, apptest.Succeed(t, "models", "pull", repo+"@"+base.Digest, "--store", other), "without an alias")
	verified := apptest.Decoded[struct{ Versions []verifiedDoc }](t, apptest.Succeed(t, "models", "verify", "--store", other, "--json")).Versions
	if len(verified) != 2 || verified[0].Golden+verified[1].Golden == 0 {
		t.Errorf("verified %+v", verified)
	}

	// Two versions of one model: the graph and its parameters are the same.
	r := apptest.Run(t, "models", "diff", "digits/cnn@"+base.Digest, other+"//digits/cnn:prod", "--store", store)
	if r.Code != 1 || r.Err != "" {
		t.Errorf("exit status %d, %s", r.Code, r.Err)
	}
	apptest.Says(t, r.Out, artifact.Short(base.Digest), artifact.Short(child.Digest), "parents", "valid/accuracy", "0.75", "golden")
	if d := apptest.Decoded[differenceDoc](t, apptest.Run(t, "models", "diff", base.Digest, child.Digest, "--store", store, "--json").Out); len(d.Metric) != 1 || len(d.Parameters) != 0 || d.Equal == 0 || d.A != base.Ref {
		t.Errorf("diff %+v", d)
	}
	if got := apptest.Succeed(t, "models", "diff", "digits/cnn", other+"//digits/cnn:prod", "--store", store); got != "no difference\n" {
		t.Errorf("diff printed\n%s", got)
	}

	// A run that began elsewhere: its parent is in another store.
	third := filepath.Join(dir, "third")
	grandchild := apptest.Decoded[versionDoc](t, apptest.Succeed(t, "models", "publish", digitsModel, "--name", "later", "--parent", other+"//digits/cnn:live", "--store", third, "--json"))
	line := apptest.Decoded[struct{ Lineage []ancestorDoc }](t, apptest.Succeed(t, "models", "lineage", "later", "--store", third, "--store", filepath.Join(dir, "o*"), "--json")).Lineage
	if len(line) != 3 || line[0].Digest != grandchild.Digest || line[1].Store != other || line[2].Version == nil || line[2].Depth != 2 {
		t.Errorf("lineage %+v", line)
	}
	apptest.Says(t, apptest.Succeed(t, "models", "lineage", third+"//later", "--store", other), "store", other, third)
	apptest.Says(t, apptest.Succeed(t, "models", "lineage", "later", "--store", third), "not in this store")
	apptest.Says(t, apptest.Succeed(t, "models", "lineage", "digits/cnn:live", "--store", third, "--store", other), artifact.Short(base.Digest))

	// A version that another store was made from stays when its alias goes, and goes when nothing needs it.
	for _, alias := range []string{"live", "prod"} {
		apptest.Says(t, apptest.Succeed(t, "models", "alias", "--delete", "digits/cnn", alias, "--store", other), "digits/cnn:"+alias+" is removed (it was "+artifact.Short(child.Digest))
	}
	gc := func(args ...string) collectedDoc {
		t.Helper()
		return apptest.Decoded[collectedDoc](t, apptest.Succeed(t, append([]string{"models", "gc", "--json", "--store", other}, args...)...))
	}
	if c := gc(); len(c.Removed) != 0 || c.Kept != 2 || c.Recent != 2 {
		t.Errorf("an hour's grace: %+v", c)
	}
	if c := gc("--grace", "0s", "--needed-by", filepath.Join(dir, "th*")); len(c.Removed) != 0 || c.Kept != 2 || c.Recent != 0 {
		t.Errorf("needed by another store: %+v", c)
	}
	if c := gc("--grace", "0s", "--keep-last", "1"); len(c.Removed) != 0 || c.Kept != 2 {
		t.Errorf("the last one and its parent: %+v", c)
	}
	if c := gc("--grace", "0s", "--dry-run"); len(c.Removed) != 2 || !c.DryRun || c.Files == 0 || c.Bytes == 0 {
		t.Errorf("dry run: %+v", c)
	}
	out = apptest.Succeed(t, "models", "gc", "--grace", "0s", "--store", other)
	apptest.Says(t, out, artifact.Short(base.Digest), artifact.Short(child.Digest), "removed 2 versions and ", "0 versions kept")
	if got := apptest.Succeed(t, "models", "ls", "--store", other); got != "no versions\n" {
		t.Errorf("left\n%s", got)
	}
	apptest.Says(t, apptest.Succeed(t, "models", "gc", "--store", store), "removed 0 versions and 0 files", "2 versions kept")
}

// Credentials come from standard input or from Docker's configuration.
func TestModelsLogIn(t *testing.T) {
	t.Parallel()
	host := newRegistry(t, "ann", "secret")
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	apptest.Succeed(t, "models", "publish", digitsModel, "--store", store)
	none, docker := filepath.Join(dir, "none"), filepath.Join(dir, "docker")
	if err := os.MkdirAll(docker, 0o777); err != nil {
		t.Fatal(err)
	}
	// ann:secret
	if err := os.WriteFile(filepath.Join(docker, "config.json"), []byte(`{"auths":{"`+host+`":{"auth":"YW5uOnNlY3JldA=="}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	push := []string{"models", "push", "cnn", host + "/x:v1", "--store", store, "-q"}
	cases := []struct {
		input, docker string
		more          []string
		says          string
		ok            bool
	}{
		{"", none, nil, "log in with docker login " + host, false},
		{"", docker, nil, "is " + host + "/x:v1@", true},
		{"secret\n", none, []string{"--username", "ann", "--password-stdin"}, "is " + host + "/x:v1@", true},
		{"wrong", none, []string{"--username", "ann", "--password-stdin"}, "does not take this user and password", false},
		{"", none, []string{"--username", "ann"}, "give --password-stdin", false},
		{"secret", none, []string{"--password-stdin"}, "belongs to --username", false},
	}
	for _, c := range cases {
		text, err := withInput(t, c.input, c.docker, append(slices.Clone(push), c.more...)...)
		if (err == nil) != c.ok || !strings.Contains(text, c.says) || strings.Count(text, "\n") != 1 {
			t.Errorf("%q with %v: %v\n%s", c.input, c.more, err, text)
		}
	}
	if len(cases) != 6 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestModelsRegistryBadInput(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	host := newRegistry(t, "", "")
	dir := t.TempDir()
	store, missing := filepath.Join(dir, "store"), filepath.Join(dir, "none")
	apptest.Succeed(t, "models", "publish", digitsModel, "--store", store)
	apptest.Succeed(t, "models", "push", "cnn", host+"/x:v1", "--store", store)
	closed := httptest.NewServer(http.NotFoundHandler())
	dead := strings.TrimPrefix(closed.URL, "http://")
	closed.Close()
	cases := []struct {
		args []string
		says []string
	}{
		{[]string{"push", "cnn", "x", "--store", store}, []string{`registry reference "x"`, "expected REGISTRY/REPOSITORY"}},
		{[]string{"push", "cnn", "http://" + host + "/x", "--store", store}, []string{"leave http:// out"}},
		{[]string{"push", "cnn", host + "/X", "--store", store}, []string{"registry reference"}},
		{[]string{"push", "cnn", host + "/x:a:b", "--store", store}, []string{"registry reference"}},
		{[]string{"push", "cnn", host + "/x@sha256:" + strings.Repeat("0", 64), "--store", store}, []string{"a version is pushed to a tag"}},
		{[]string{"push", "none", host + "/x", "--store", store}, []string{"no such artefact"}},
		{[]string{"push", "cnn", dead + "/x", "--store", store}, []string{"registry " + dead, "push cnn@sha256:", "is it running"}},
		{[]string{"push", "cnn", host + "/x", "--plain-http=false", "--store", store}, []string{"registry " + host, "give --plain-http"}},
		{[]string{"pull", host + "/x:v2", "--store", store}, []string{"registry " + host, "pull v2", "check the name of the repository, and the tag"}},
		{[]string{"pull", host + "/x:v1", "--as", "other", "--store", store}, []string{"it is a version of cnn, expected one of other"}},
		{[]string{"pull", host + "/x:v1", "--as", "A", "--store", store}, []string{`--as "A"`}},
		{[]string{"pull", host + "/x:v1", "--as", "cnn:a b", "--store", store}, []string{`--as "cnn:a b"`}},
		{[]string{"pull", host + "/x:v1", "--max-bytes", "10", "--store", store}, []string{"bytes, expected at most 10"}},
		{[]string{"pull", host + "/x:v1", "--max-bytes", "0", "--store", store}, []string{"--max-bytes 0"}},
		{[]string{"gc", "--store", missing}, []string{"no artefact store"}},
		{[]string{"gc", "--keep-last", "-1", "--store", store}, []string{"keep the last -1"}},
		{[]string{"gc", "--grace", "-1s", "--store", store}, []string{"--grace -1s"}},
		{[]string{"gc", "--needed-by", missing, "--store", store}, []string{"--needed-by: ", "no artefact store"}},
		{[]string{"gc", "--needed-by", missing + "*", "--store", store}, []string{"it fits no directory"}},
		{[]string{"diff", "cnn", "none", "--store", store}, []string{"no such artefact"}},
		{[]string{"alias", "--delete", "cnn", "prod", "--store", store}, []string{"no such artefact", "aliases of cnn: expected latest"}},
		{[]string{"alias", "--delete", "sha256:0000", "prod", "--store", store}, []string{"expected the name whose alias is removed"}},
		{[]string{"alias", "--delete", "cnn", "latest", "--store", missing}, []string{"no artefact store"}},
		{[]string{"lineage", "none", "--store", store, "--store", store}, []string{"no such artefact"}},
		{[]string{"lineage", "cnn", "--store", store, "--store", missing}, []string{"no artefact store"}},
	}
	before := apptest.Succeed(t, "models", "ls", "--store", store)
	for _, c := range cases {
		apptest.Refuse(t, append([]string{"models"}, c.args...), c.says...)
	}
	if after := apptest.Succeed(t, "models", "ls", "--store", store); after != before {
		t.Errorf("the store has changed:\n%s", after)
	}
	if len(cases) != 25 {
		t.Errorf("%d cases", len(cases))
	}
}

// An image in which model and golden values have changed places is refused under its tag, and the
// store stays as it was.
func TestModelsPullRefusesCrossedLayers(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	host, store, other := newRegistry(t, "", ""), filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "other")
	apptest.Succeed(t, "models", "publish", digitsModel, "--name", "digits/cnn", "--golden", "--bind", "batch=2", "--store", store)
	apptest.Succeed(t, "models", "push", "digits/cnn", host+"/digits:good", "--store", store)
	answer := func(method, tag string, body []byte) []byte {
		req, err := http.NewRequest(method, "http://"+host+"/v2/digits/manifests/"+tag, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", ocispec.MediaTypeImageManifest)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s %v", method, tag, resp.StatusCode, text, err)
		}
		return text
	}
	image := apptest.Decoded[ocispec.Manifest](t, string(answer(http.MethodGet, "good", nil)))
	if len(image.Layers) != 2 {
		t.Fatalf("%d layers", len(image.Layers))
	}
	a, b := &image.Layers[0], &image.Layers[1]
	a.Digest, b.Digest, a.Size, b.Size = b.Digest, a.Digest, b.Size, a.Size
	text, err := json.Marshal(image)
	if err != nil {
		t.Fatal(err)
	}
	answer(http.MethodPut, "crossed", text)
	apptest.Refuse(t, []string{"models", "pull", host + "/digits:crossed", "--store", other}, "layers are not those of its manifest", `file "model.onnx" has the content of "golden.safetensors"`)
	if list := apptest.Decoded[struct{ Versions []versionDoc }](t, apptest.Succeed(t, "models", "ls", "--store", other, "--json")).Versions; len(list) != 0 {
		t.Errorf("%d versions", len(list))
	}
	apptest.Succeed(t, "models", "pull", host+"/digits:good", "--store", other)
}

// TestModelsPullEnds: a registry that stops within a file is not waited for.
func TestModelsPullEnds(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	defer func(was time.Duration) { registryPatience = was }(registryPatience)
	registryPatience = 200 * time.Millisecond
	under := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/sha256:") {
			under.ServeHTTP(w, r)
			return
		}
		whole := httptest.NewRecorder()
		under.ServeHTTP(whole, r)
		w.Header().Set("Content-Length", strconv.Itoa(whole.Body.Len()))
		_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		<-over
	}))
	defer server.Close()
	defer close(over)
	repo := strings.TrimPrefix(server.URL, "http://") + "/team/digits:v1"
	run := func(args ...string) error {
		root := newApp("onnxrl", strings.NewReader(""), io.Discard, io.Discard).command()
		root.SetArgs(args)
		return root.ExecuteContext(t.Context())
	}
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	if err := errors.Join(run("models", "publish", digitsModel, "--name", "digits/cnn", "--store", from), run("models", "push", "digits/cnn", repo, "--store", from)); err != nil {
		t.Fatal(err)
	}
	if err := run("models", "pull", repo, "--store", to); err == nil || !strings.Contains(err.Error(), "nothing came from it for 200ms") {
		t.Errorf("pull: %v", err)
	}
}
