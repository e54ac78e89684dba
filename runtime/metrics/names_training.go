package metrics

// Metrics of runs. The label run is the run directory below runs/, or the member of a search.
var (
	EnvSteps           = counter(Training, "onnxrl_env_steps_total", "Env steps that the process has taken, over all environments of the run", "run")
	TrainSteps         = counter(Training, "onnxrl_train_steps_total", "Learner steps that the process has taken; of a fit its optimiser steps", "run")
	Episodes           = counter(Training, "onnxrl_episodes_total", "Episodes that have ended in the process", "run")
	RunEnvSteps        = gauge(Training, "onnxrl_run_env_steps", "Env steps since the beginning of the run, those of earlier processes and of ancestors included", "run")
	RunEnvStepsPlanned = gauge(Training, "onnxrl_run_env_steps_planned", "Env steps after which the run ends by itself", "run")
	RunActive          = gauge(Training, "onnxrl_run_active", "1 while the run is trained, 0 when it has ended", "run")
	RunProgress        = gauge(Training, "onnxrl_run_progress_timestamp_seconds", "When the run last went on, in seconds since 1970", "run")
	RunFailures        = counter(Training, "onnxrl_run_failures_total", "Ends by an error: diverged where a loss, score or gradient was not finite, error for any other", "run", "reason")
	NonFinite          = counter(Training, "onnxrl_nonfinite_values_total", "Values recorded under tags of train/ that were NaN or infinite", "run")
	EpisodeReward      = gauge(Training, "onnxrl_episode_reward", "Mean return of the last 100 episodes, absent before the first has ended", "run")

	PolicyKL         = tagged("train/approx_kl", "onnxrl_policy_kl", "Kullback-Leibler divergence of the policy from that before the update, estimated on the batch", "run")
	Entropy          = negated("train/entropy_loss", tagged("train/entropy", "onnxrl_entropy", "Mean entropy of the policy over a batch, in nats", "run"))
	CostLambda       = tagged("constraint/*/lambda", "onnxrl_cost_lambda", "Lagrange multiplier of a constraint", "run", "constraint")
	ReplaySize       = tagged("replay/size", "onnxrl_replay_size", "Transitions in the replay that can be drawn", "run")
	MaskInvalidRatio = tagged("rollout/mask_invalid_ratio", "onnxrl_mask_invalid_ratio", "Share of the actions that masks forbade, since the value before", "run")
	Scalar           = gauge(Training, "onnxrl_scalar", "Newest value of any other tag that the run records, as metrics.jsonl has them", "run", "tag")

	PhaseSeconds = counter(Training, "onnxrl_phase_seconds_total", "Time of a phase of training: act, env, record, sample, gradient, optimiser, learner rest, sync", "run", "phase")
	Inference    = buckets(Training, "onnxrl_inference_seconds", "Time of a decision for a batch of environments in training, model being the run, and of a run of a served model's version", latencies, "model", "version")
)

// FailureReasons are the values of the label reason of [RunFailures].
func FailureReasons() []string { return []string{FailureDiverged, FailureError} }

// Values of the label reason of [RunFailures].
const (
	FailureDiverged = "diverged"
	FailureError    = "error"
)
