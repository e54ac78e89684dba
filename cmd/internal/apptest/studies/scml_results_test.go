package studies

import (
	"github.com/onnxrl/onnxrl/agents/scml/samples"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/record"
)

// The output of commands with --json, whose keys are stable.
type (
	ran struct {
		*record.Summary
		Seconds float64 `json:"seconds"`
	}
	replayed struct {
		Worlds []struct {
			Path string `json:"path"`
			record.Checked
			Difference *record.Difference `json:"difference"`
			Problem    string             `json:"problem"`
		} `json:"worlds"`
		Failed int `json:"failed"`
	}
	ablation struct {
		Agent  string   `json:"agent"`
		Rivals []string `json:"rivals"`
		Layers []struct {
			Layer   string  `json:"layer"`
			Without float64 `json:"score_without"`
			league.Difference
		} `json:"layers"`
		Standings []league.Standing `json:"standings"`
	}
	sampled struct {
		Dir string `json:"dir"`
		*samples.Manifest
		Seconds float64 `json:"seconds_reading"`
	}
	exported struct {
		Source     string   `json:"source"`
		Name       string   `json:"name"`
		Format     string   `json:"format"`
		Out        string   `json:"out"`
		Files      []string `json:"files"`
		Layers     []string `json:"layers"`
		Compared   int      `json:"compared"`
		Difference float64  `json:"difference"`
		Engine     string   `json:"engine"`
	}
)
