package observability

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/goccy/go-yaml"
)

// load reads the compose file as docker compose does: against the schema of the Compose
// specification, with its variables filled in, and references between its parts followed.
func load(t *testing.T, text []byte, env map[string]string) (*types.Project, error) {
	t.Helper()
	dir, err := filepath.Abs(watched)
	if err != nil {
		t.Fatal(err)
	}
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: dir, ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "compose.yaml"), Content: text}}, Environment: maps.Clone(env)})
}

// The compose file passes the specification, brings up what it should, publishes nothing beyond
// this machine, and what it mounts of the repository is there.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(watched, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ONNXRL_TOKEN_FILE": "/t/token", "ONNXRL_STORE": "/t/store", "ONNXRL_GRAFANA_PASSWORD": "p"}
	p, err := load(t, text, env)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(p.Services)); !slices.Equal(got, []string{"grafana", "prometheus", "registry", "serve"}) {
		t.Errorf("services %v", got)
	}
	if p, err = p.WithProfiles([]string{"live"}); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(p.Services)); !slices.Equal(got, []string{"grafana", "kafka", "live", "prometheus", "registry", "serve"}) {
		t.Errorf("services of the profile live %v", got)
	}
	ports, mounts := 0, 0
	for _, name := range slices.Sorted(maps.Keys(p.Services)) {
		s := p.Services[name]
		if s.Build == nil && (strings.HasSuffix(s.Image, ":latest") || !strings.Contains(s.Image, ":")) {
			t.Errorf("%s: the image %s has no version", name, s.Image)
		}
		for _, port := range s.Ports {
			if ports++; port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is published on %q", name, port.Published, port.HostIP)
			}
		}
		for _, v := range s.Volumes {
			if v.Type != "bind" || strings.HasPrefix(v.Source, "/t/") || v.Source == os.DevNull {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			mounts++
		}
	}
	if ports != 6 || mounts != 3 {
		t.Errorf("%d ports and %d mounts", ports, mounts)
	}
	for _, name := range []string{"serve", "live"} {
		s := p.Services[name]
		if s.Build == nil || len(s.Secrets) != 1 {
			t.Fatalf("%s: %+v", name, s.Build)
		}
		if text, err := os.ReadFile(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil || !strings.Contains(string(text), "./cmd/onnxrl\n") {
			t.Errorf("%s: its Dockerfile: %v", name, err)
		}
	}
	// The refused inputs: variables that are not set, and what is no compose file.
	for _, name := range slices.Sorted(maps.Keys(env)) {
		less := maps.Clone(env)
		delete(less, name)
		if _, err := load(t, text, less); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	for _, change := range [][2]string{{"restart: unless-stopped", "restrat: unless-stopped"}, {"depends_on: [prometheus]", "depends_on: [prometeus]"}, {"secrets: [onnxrl_token]", "secrets: [token]"}, {"interval: 10s", "interval: soon"}} {
		if _, err := load(t, []byte(strings.Replace(string(text), change[0], change[1], 1)), env); err == nil {
			t.Errorf("%q passes", change[1])
		}
	}
}

// Prometheus' configuration scrapes what compose brings up, under the jobs that the dashboards
// name, and Grafana's provisioning points at it.
func TestProvisioning(t *testing.T) {
	read := func(path string, into any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(watched, path))
		if err == nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	var prom struct {
		Rules  []string `yaml:"rule_files"`
		Scrape []struct {
			Job    string                       `yaml:"job_name"`
			Static []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	read("prometheus/prometheus.yml", &prom)
	var jobs []string
	for _, s := range prom.Scrape {
		jobs = append(jobs, s.Job)
		if len(s.Static) != 1 || len(s.Static[0].Targets) != 1 {
			t.Errorf("%s: %v", s.Job, s.Static)
		}
	}
	slices.Sort(jobs)
	if !slices.Equal(jobs, []string{"onnxrl-live", "onnxrl-population", "onnxrl-serve", "onnxrl-train"}) || !slices.Equal(prom.Rules, []string{"alerts.yml"}) {
		t.Errorf("jobs %v, rules %v", jobs, prom.Rules)
	}
	for _, b := range boards() {
		last := b.rows[len(b.rows)-1]
		if !slices.ContainsFunc(jobs, func(job string) bool {
			return strings.Contains(last.panels[0].queries[0].expr, `"`+job+`"`)
		}) {
			t.Errorf("%s: no job is that of its processes", b.name)
		}
	}
	var sources struct {
		Datasources []struct{ UID, Type, URL string }
	}
	read("grafana/provisioning/datasources/prometheus.yaml", &sources)
	if len(sources.Datasources) != 1 || sources.Datasources[0].Type != "prometheus" || sources.Datasources[0].URL != "http://prometheus:9090" {
		t.Errorf("%+v", sources)
	}
	var providers struct {
		Providers []struct {
			Type    string
			Options struct{ Path string }
		}
	}
	read("grafana/provisioning/dashboards/onnxrl.yaml", &providers)
	compose, err := os.ReadFile(filepath.Join(watched, "compose.yaml"))
	if err != nil || len(providers.Providers) != 1 || !strings.Contains(string(compose), "./grafana/dashboards:"+providers.Providers[0].Options.Path+":ro") {
		t.Errorf("%+v %v", providers, err)
	}
}
