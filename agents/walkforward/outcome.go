package walkforward

import "github.com/onnxrl/onnxrl/export/report/performance"

// Outcome is how the policies of a cell did on its test ranges. The JSON keys are stable.
type Outcome struct {
	// Seeds are in the order of the study's.
	Seeds []SeedOutcome `json:"seeds"`
	// PeriodsPerYear are the returns of a year, and RiskFree the rate per year that ratios
	// subtract.
	PeriodsPerYear float64 `json:"periods_per_year"`
	RiskFree       float64 `json:"risk_free"`
	// Tests are the records of the test ranges, in order.
	Tests []Test `json:"tests"`
	// LookAhead says what in the runs knows the future, Seen what of the test ranges the policies
	// have seen, and Notes what is known of the data, one sentence each.
	LookAhead []string `json:"look_ahead,omitempty"`
	Seen      []string `json:"seen,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// SeedOutcome is what came of a run.
type SeedOutcome struct {
	Seed     uint64 `json:"seed"`
	EnvSteps int64  `json:"env_steps"`
	// BestEnvSteps is when the judged policy was the best on the validation range, with the value
	// Validation of Metric.
	BestEnvSteps int64              `json:"best_env_steps"`
	Metric       string             `json:"metric"`
	Validation   performance.Number `json:"validation"`
	// Trials are the configurations that a population has chosen among, and MAPD how far its
	// published experts lie apart in the (last) test range, SinceRestart generations after the last
	// restart of one of them.
	Trials       int                `json:"trials,omitempty"`
	MAPD         performance.Number `json:"mapd,omitempty"`
	SinceRestart int                `json:"generations_since_restart,omitempty"`
	// Init is what the parameters began with, relative to the study's folder; empty where they were
	// drawn.
	Init string `json:"init,omitempty"`
}

// Test is one test range.
type Test struct {
	// Dates [T+1] are those of the bars, as RFC 3339 dates or times.
	Dates   []string `json:"dates"`
	Records []Record `json:"records"`
}

// The roles of records.
const (
	RoleAgent      = "agent"
	RoleEnsemble   = "ensemble"
	RoleSeed       = "seed"
	RoleBenchmark  = "equal weight"
	RoleIndex      = "index"
	RoleRule       = "rule"
	RoleSimpleRule = "best simple rule"
)

// Record is what a policy made of a test range of T decisions.
type Record struct {
	Name string `json:"name"`
	Role string `json:"role"`
	// Value [T+1] is relative to that at the first bar, Cash [T+1] the share of it that is cash.
	Value []float64 `json:"value"`
	Cash  []float64 `json:"cash"`
	// Turnover and Fees [T] are shares of the value before the step: purchases and sales added, and
	// what was paid for them.
	Turnover []float64 `json:"turnover"`
	Fees     []float64 `json:"fees"`
	// Herfindahl is the mean over the bars of the sum of squared weights, cash left out, and
	// Largest that of the largest weight.
	Herfindahl float64 `json:"herfindahl"`
	Largest    float64 `json:"largest_weight"`
	// Participation is the share of a bar's turnover in money that 95 % of the trades would not
	// exceed for a capital of 1; NaN where volumes are not known or nothing was traded.
	Participation performance.Number `json:"participation"`
}
