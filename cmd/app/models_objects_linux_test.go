package app

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/objects/s3/s3test"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestStoragesOfS3 does what the tests below do with a storage that is a real S3 server.
func TestStoragesOfS3(t *testing.T) {
	longtest.Nightly(t)
	server := s3test.Start(t)
	for name, test := range sorted.All(map[string]func(*testing.T, string){"models": modelsThrough, "references": referencesTo}) {
		t.Run(name, func(t *testing.T) { test(t, s3test.URL(server.Address, "models")) })
	}
}

// folderStorage is a storage in a folder.
func folderStorage(t *testing.T) string { return "file://" + filepath.Join(t.TempDir(), "storage") }

// Versions go to a storage and from it into another store, with their ancestors, once.
func TestModelsThroughAStorage(t *testing.T) { modelsThrough(t, folderStorage(t)) }

func modelsThrough(t *testing.T, url string) {
	dir := t.TempDir()
	store, other := filepath.Join(dir, "store"), filepath.Join(dir, "other")
	base := apptest.Decoded[versionDoc](t, apptest.Succeed(t, "models", "publish", digitsModel, "--name", "digits/cnn", "--golden", "--bind", "batch=2", "--store", store, "--json"))
	child := apptest.Decoded[versionDoc](t, apptest.Succeed(t, "models", "publish", digitsModel, "--name", "digits/cnn", "--parent", "digits/cnn", "--alias", "prod", "--store", store, "--json"))
	apptest.Says(t, apptest.Succeed(t, "models", "push", "digits/cnn:prod", url, "--lineage", "--store", store), "digits/cnn@", " is "+url+"#prod", "with 1 ancestor")
	doc := apptest.Decoded[transferDoc](t, apptest.Succeed(t, "models", "push", "digits/cnn", url+"#v1", "--store", store, "--json", "-q"))
	if doc.URL != url || doc.Registry != "" || doc.Tag != "v1" || doc.Files != 0 || doc.Skipped != 3 || doc.Version.Digest != child.Digest {
		t.Errorf("pushed %+v", doc)
	}
	doc = apptest.Decoded[transferDoc](t, apptest.Succeed(t, "models", "pull", url+"#v1", "--as", "digits/cnn:live", "--lineage", "--store", other, "--json"))
	if doc.URL != url || doc.Versions != 2 || doc.Bytes == 0 || doc.Version.Digest != child.Digest {
		t.Errorf("pulled %+v", doc)
	}
	apptest.Says(t, apptest.Succeed(t, "models", "pull", url+"#"+base.Digest, "--store", other), "without an alias")
	if v := apptest.Decoded[struct{ Versions []verifiedDoc }](t, apptest.Succeed(t, "models", "verify", "--store", other, "--json")).Versions; len(v) != 2 {
		t.Errorf("verified %+v", v)
	}
	for what, c := range sorted.All(map[string]struct {
		args []string
		want string
	}{
		"no tag":        {[]string{"models", "pull", url + "#none", "--store", other}, "not found"},
		"registry flag": {[]string{"models", "pull", url + "#v1", "--plain-http", "--store", other}, "are for registries"},
		"not a tree":    {[]string{"models", "pull", url + "#" + child.Digest, "--out", filepath.Join(dir, "x")}, `expected "onnxrl.tree.v1"`},
		"credentials":   {[]string{"models", "pull", strings.Replace(url, "://", "://user:hunter2@", 1) + "#v1", "--store", other}, "credentials do not belong into a URL"},
	}) {
		r := apptest.Run(t, c.args...)
		if r.Code != 1 || !strings.Contains(r.Err, c.want) || strings.Contains(r.Err, "hunter2") {
			t.Errorf("%s: exit status %d, %s, want %q", what, r.Code, r.Err, c.want)
		}
	}
}

// A directory goes to a storage and comes back; commands and documents take references to it in
// place of paths, fetch it once, and record its digest.
func TestReferencesToAStorage(t *testing.T) {
	longtest.Slow(t)
	referencesTo(t, folderStorage(t))
}

func referencesTo(t *testing.T, url string) {
	dir := t.TempDir()
	t.Setenv(objects.CacheVariable, filepath.Join(dir, "cache"))
	market, err := os.ReadFile(filepath.Join("..", "..", "configs", "experiments", "market", "us5_daily.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	for _, err := range []error{os.MkdirAll(filepath.Join(data, "us"), 0o755), os.WriteFile(filepath.Join(data, "us", "bars.parquet"), market, 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	doc := apptest.Decoded[treeDoc](t, apptest.Succeed(t, "models", "push", data, url+"#prices", "--json", "-q"))
	if doc.URL != url || doc.Tag != "prices" || doc.Reference != url+"#"+doc.Digest || doc.Sent != 3 {
		t.Errorf("pushed %+v", doc)
	}
	copied := filepath.Join(dir, "copied")
	back := apptest.Decoded[treeDoc](t, apptest.Succeed(t, "models", "pull", url+"#prices", "--out", copied, "--json", "-q"))
	if got, err := os.ReadFile(filepath.Join(copied, "us", "bars.parquet")); err != nil || string(got) != string(market) || back.Digest != doc.Digest {
		t.Errorf("pulled %+v, %d bytes, %v", back, len(got), err)
	}
	if r := apptest.Run(t, "models", "pull", url+"#"+doc.Digest, "--store", filepath.Join(dir, "store")); r.Code != 1 || !strings.Contains(r.Err, "is a directory; give --out") {
		t.Errorf("a directory for a version: exit status %d, %s", r.Code, r.Err)
	}

	// The same bars as of the file, and the reference is what is recorded.
	reference := doc.Reference + "/us/bars.parquet"
	if got, want := apptest.Succeed(t, "data", "inspect", reference, "-q"), apptest.Succeed(t, "data", "inspect", filepath.Join(data, "us", "bars.parquet"), "-q"); got != want {
		t.Errorf("inspected\n%s\nwant\n%s", got, want)
	}
	run := filepath.Join(dir, "run")
	apptest.Succeed(t, slices.Concat([]string{"train", "demo", "-q", "--out", run}, shortDemo, []string{"--set", "env.data.source.path=" + reference, "--set", "eval={lag: [], cost_sweep_bp: [], baselines: {moving_average: [], random: [42], cash: false}, bootstrap: {samples: 20}}"})...)
	text, err := os.ReadFile(filepath.Join(run, "lineage.json"))
	if err != nil {
		t.Fatal(err)
	}
	if lineage := apptest.Decoded[struct{ Sources map[string]string }](t, string(text)); lineage.Sources["data_sha256"] == "" || strings.Contains(string(text), s3test.Secret) {
		t.Errorf("lineage.json is\n%s", text)
	}
	config, err := os.ReadFile(filepath.Join(run, "config.yaml"))
	if err != nil || !strings.Contains(string(config), doc.Digest+"/us/bars.parquet") {
		t.Errorf("config.yaml does not have the reference: %v\n%s", err, config)
	}
	apptest.Says(t, apptest.Succeed(t, "data", "init", reference), doc.Digest+"/us/bars.parquet")

	// A run directory by reference; its data are in the cache.
	pushed := apptest.Decoded[treeDoc](t, apptest.Succeed(t, "models", "push", run, url, "--json", "-q"))
	type judged struct {
		Verdict, Rows any
		Unwritten     string
	}
	evaluate := func(run string, flags ...string) judged {
		t.Helper()
		return apptest.Decoded[judged](t, apptest.Succeed(t, append([]string{"evaluate", run, "--engine", "portable", "-q", "--json"}, flags...)...))
	}
	want, got := evaluate(run, "--no-report"), evaluate(pushed.Reference)
	if got.Verdict == nil || !reflect.DeepEqual(got.Verdict, want.Verdict) || !reflect.DeepEqual(got.Rows, want.Rows) {
		t.Errorf("evaluated %+v, want %+v", got, want)
	}
	if !strings.Contains(got.Unwritten, "what a reference names is only read; --out FOLDER writes it elsewhere") || want.Unwritten != "" {
		t.Errorf("a report was written into a copy: %q", got.Unwritten)
	}
	missing := strings.Replace(reference, doc.Digest, string(objects.DigestOf([]byte("nothing"))), 1)
	if r := apptest.Run(t, "train", "demo", "-q", "--out", filepath.Join(dir, "none"), "--set", "env.data.source.path="+missing); r.Code != 1 || !strings.Contains(r.Err, missing[strings.LastIndex(missing, "sha256:")+len("sha256:"):len(missing)-len("/us/bars.parquet")]) || strings.Contains(r.Err, s3test.Secret) {
		t.Errorf("nothing there: exit status %d, %s", r.Code, r.Err)
	}
}
