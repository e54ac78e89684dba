package metrics

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// expected are the endings that users of such systems look for, with the labels that they need.
var expected = map[string][]string{
	"_env_steps_total": {}, "_train_steps_total": {}, "_inference_seconds": {}, "_replay_size": {}, "_policy_kl": {}, "_entropy": {}, "_mapd": {}, "_pnl": {}, "_drawdown": {}, "_cvar95": {}, "_cost_lambda": {},
	"_orders_total": {"side", "status", "reason"}, "_data_staleness_seconds": {}, "_mask_invalid_ratio": {}, "_bars_total": {"rule"}, "_decision_seconds": {}, "_killed": {},
}

func TestTable(t *testing.T) {
	list := All()
	if len(list) != len(table) || len(list) < 65 {
		t.Errorf("%d metrics in parts, %d in the table", len(list), len(table))
	}
	seen, tags := map[string]bool{}, map[string]bool{}
	label := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for _, m := range list {
		if seen[m.Name] {
			t.Errorf("%s is there twice", m.Name)
		}
		seen[m.Name] = true
		if !label.MatchString(m.Name) || !strings.HasPrefix(m.Name, Prefix) && !strings.HasPrefix(m.Name, TritonPrefix) {
			t.Errorf("%s: expected a name that begins with %s", m.Name, Prefix)
		}
		ours := strings.HasPrefix(m.Name, Prefix)
		if ours && (m.Type == Counter) != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s is a %s", m.Name, m.Type)
		}
		if (m.Type == Histogram) != (len(m.Buckets) > 0) || !slices.IsSorted(m.Buckets) {
			t.Errorf("%s: a %s with the buckets %v", m.Name, m.Type, m.Buckets)
		}
		if m.Help == "" || strings.HasSuffix(m.Help, ".") || strings.Contains(m.Help, "|") {
			t.Errorf("%s: the help %q", m.Name, m.Help)
		}
		for _, l := range m.Labels {
			if !label.MatchString(l) || l == "le" || l == "instance" || l == "job" {
				t.Errorf("%s has the label %q, which means something else to Prometheus", m.Name, l)
			}
		}
		if m.Tag != "" && (tags[m.Tag] || m.Type != Gauge || strings.Count(m.Tag, "*") > 1 || m.Labels[0] != "run" || strings.Contains(m.Tag, "*") != (len(m.Labels) == 2)) {
			t.Errorf("%s: the tag %q with the labels %v", m.Name, m.Tag, m.Labels)
		}
		tags[m.Tag] = true
	}
	found := 0
	for _, m := range list {
		for ending, labels := range sorted.All(expected) {
			if m.Name == "onnxrl"+ending || m.Name == "onnxrl_portfolio"+ending {
				if found++; len(labels) > 0 && !slices.Equal(m.Labels, labels) {
					t.Errorf("%s has the labels %v, expected %v", m.Name, m.Labels, labels)
				}
			}
		}
	}
	if found != len(expected) {
		t.Errorf("%d metrics end as expected, expected %d", found, len(expected))
	}
}
