package training

import (
	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/export/report"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// The output of commands with --json, as far as these tests look at it.
type (
	// fitReport is of fit.
	fitReport struct {
		Steps      int64              `json:"steps"`
		Trainable  int                `json:"trainable_parameters"`
		Frozen     int                `json:"frozen_parameters"`
		Validation *float64           `json:"validation_loss"`
		Metrics    map[string]float64 `json:"validation_metrics"`
	}

	// windowTable is of data windows.
	windowTable struct {
		Rows     int `json:"rows"`
		Window   int `json:"window"`
		Features int `json:"features"`
	}

	// episodesReport is of evaluate in an environment without a market.
	episodesReport struct {
		Split    string                `json:"split"`
		Policies []run.EvaluatedPolicy `json:"policies"`
		Rows     []episodesOf          `json:"rows"`
	}

	// episodesOf are those of one policy.
	episodesOf struct {
		Name       string  `json:"name"`
		Episodes   int     `json:"episodes"`
		MeanReward float64 `json:"mean_reward"`
		StdReward  float64 `json:"std_reward"`
		MinReward  float64 `json:"min_reward"`
		MaxReward  float64 `json:"max_reward"`
		MeanLength float64 `json:"mean_length"`
		StdLength  float64 `json:"std_length"`
	}

	// decision is a line of data live.
	decision struct {
		Value     float64            `json:"value"`
		Cash      float64            `json:"cash"`
		Positions map[string]float64 `json:"positions"`
		Fills     []struct{}         `json:"fills"`
		Orders    map[string]string  `json:"orders"`
		Targets   map[string]float64 `json:"targets"`
		Risk      *struct {
			Drawdown float64  `json:"drawdown"`
			Bound    []string `json:"bound"`
		} `json:"risk"`
	}

	// demoReport is of demo.
	demoReport struct {
		Dir        string             `json:"dir"`
		Data       *prepared.Manifest `json:"data"`
		Engine     string             `json:"engine"`
		EnvSteps   int64              `json:"env_steps"`
		Train      run.Summary        `json:"train"`
		Evaluation *struct {
			Rows     []assess.Row         `json:"rows"`
			Orders   assess.Orders        `json:"orders"`
			Deflated performance.Deflated `json:"deflated_sharpe"`
			Report   string               `json:"report"`
			Files    *report.Files        `json:"files"`
		} `json:"evaluation"`
		Model struct {
			EnvSteps int64   `json:"env_steps"`
			Metric   string  `json:"metric"`
			Path     string  `json:"path"`
			Bytes    int64   `json:"bytes"`
			Parity   string  `json:"parity"`
			Golden   int     `json:"golden_values"`
			Worst    float64 `json:"golden_max_error"`
		} `json:"model"`
		Next []struct{} `json:"next"`
	}

	// ancestor is of models lineage.
	ancestor struct {
		Digest  string    `json:"digest"`
		Version *struct{} `json:"version"`
	}

	// digested is a version that models gc removes.
	digested struct {
		Digest string `json:"digest"`
	}
)
