package observability

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Alerts name metrics of the table, say what has happened, and each is tested to fire.
func TestAlerts(t *testing.T) {
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	var tests struct {
		Tests []struct {
			Cases []struct {
				Alert    string `yaml:"alertname"`
				Expected []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	for path, into := range sorted.All(map[string]any{"alerts.yml": &rules, "alerts_test.yml": &tests}) {
		text, err := os.ReadFile(filepath.Join(watched, "prometheus", path))
		if err == nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	fires := map[string]int{}
	for _, test := range tests.Tests {
		for _, c := range test.Cases {
			fires[c.Alert] += len(c.Expected)
		}
	}
	n := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			metricsOf(t, r.Expr)
			if fires[r.Alert] == 0 {
				t.Errorf("%s: no test in which it fires", r.Alert)
			}
			if r.Labels["severity"] != "warning" && r.Labels["severity"] != "critical" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s: %v %v", r.Alert, r.Labels, r.Annotations)
			}
			n++
		}
	}
	if n != len(fires) || n < 20 {
		t.Errorf("%d alerts, %d with tests", n, len(fires))
	}
}

// TestPromtool checks rules and configuration by Prometheus' own tool, and runs the alerts' tests.
func TestPromtool(t *testing.T) {
	longtest.Slow(t)
	tool := prometheus(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}, {"check", "config", "--syntax-only", "prometheus.yml"}} {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = filepath.Join(watched, "prometheus")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
