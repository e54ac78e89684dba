package samples

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/seat"
	"github.com/onnxrl/onnxrl/envs"
)

// MacroSpec describes the macro samples: it is that of scml_goals.
func MacroSpec(goal, horizon int) (envs.Spec, error) {
	c := seat.DefaultGoals()
	c.Goal, c.Horizon = goal, horizon
	e, err := seat.NewGoals(c, nil)
	if err != nil {
		return envs.Spec{}, fmt.Errorf("samples: %w", err)
	}
	spec := e.Spec()
	return spec, e.Close()
}

// MicroSpec describes the micro samples, of goals of so many numbers.
func MicroSpec(goal int) envs.Spec {
	return envs.Spec{
		Name: "scml_answers", Observation: envs.Dict{
			{Name: "thread", Space: envs.Unbounded(scml.ThreadFeatures)},
			{Name: "history", Space: envs.Unbounded(scml.Moves * scml.MoveFeatures)},
			{Name: "goal", Space: envs.NewBox(-1, 1, goal)},
			{Name: "baseline", Space: envs.NewBox(-1, 1, scml.Direct)},
			{Name: "id", Space: envs.Unbounded(2)},
		},
		Action: envs.NewBox(-1, 1, scml.Direct), Costs: []string{"unsafe"}, Reward: envs.Range{Low: 0, High: 1}, MaxSteps: math.MaxInt16,
	}
}

// ResidualSpec describes the samples of residuals: it is that of scml_threads.
func ResidualSpec() (envs.Spec, error) {
	e, err := seat.NewThreads(seat.DefaultThreads(), nil)
	if err != nil {
		return envs.Spec{}, fmt.Errorf("samples: %w", err)
	}
	spec := e.Spec()
	return spec, e.Close()
}

// validGoal reports what is wrong with a number of numbers of a goal.
func validGoal(goal int) error {
	if goal != scml.WholeGoal && goal != scml.FullGoal {
		return fmt.Errorf("goals have %d or %d numbers, not %d", scml.WholeGoal, scml.FullGoal, goal)
	}
	return nil
}
