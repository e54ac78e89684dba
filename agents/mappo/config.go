package mappo

import "github.com/onnxrl/onnxrl/agents/ppo"

// Defaults returns the settings of the authors' code of MAPPO, see the package comment.
func Defaults() ppo.Config {
	c := ppo.Defaults()
	c.NSteps, c.BatchSize, c.NEpochs = 200, -1, 15
	c.LearningRate, c.ClipRange, c.EntCoef = 5e-4, 0.2, 0.01
	c.ClipRangeVF, c.VFClip, c.VFLoss, c.HuberDelta, c.VFCoef, c.NormalizeValue = 0.2, ppo.Larger, ppo.Huber, 10, 1, ppo.Running
	c.MaxGradNorm = 10
	c.Hidden, c.Activation, c.LayerNorm, c.Central = []int{64, 64}, "relu", true, true
	c.Recurrent.Hidden, c.Recurrent.Length = 64, 10
	return c
}

// IPPODefaults returns the same for a value that reads no more than the policy.
func IPPODefaults() ppo.Config {
	c := Defaults()
	c.Central = false
	return c
}
