// Package train runs an agent in its environments: it collects, learns, evaluates, checkpoints and
// publishes, and can be stopped and continued bit for bit.
//
// # Order of events
//
// A [Trainer] is one run of one seed; everything is counted in env steps over all environments.
// Work that is due happens between two learner steps, in this order: metrics every
// LogIntervalSteps, an evaluation, publication, a checkpoint every Checkpoint.EverySteps. The
// evaluation is of the greedy policy on the validation split, every Validation.EverySteps and at
// the end. The policy is published when it is the best so far. The last rollout is taken whole, as
// in Stable-Baselines3. The policy is evaluated once before it is trained; that one is never the
// best.
//
// A learner step that trains nothing, as those before learning_starts, gives metrics without a
// loss; until the first loss the policy counts as untrained.
//
// # Stopping and continuing
//
// A Trainer is a checkpoint.Stater. When its context ends, it finishes the rollout, lets the
// learner take its step, and asks for a checkpoint: every checkpoint lies between two learner
// steps. An evaluation in progress is given up and done again. A resumed run has the parameters and
// metrics of one that never stopped, bit for bit, except for tags that begin with time/. The best
// parameters and an off-policy learner's replay, as far as it is filled, are part of the state (a
// million transitions of 17 observed numbers and 6 actions: 123 MB, 0.9 s).
//
// Environments that cannot be saved (envs.ErrCannotSave) are left out, which the log says: a
// resumed run begins new episodes then, and is not equal to one that never stopped.
//
// When TotalEnvSteps grows between two runs, what the finished one has done at its end beyond what
// was due remains, and schedules without a length of their own are relative to the new length, as
// with learn(reset_num_timesteps=False). A learning rate that has gone down to 0 rises again.
//
// # Intervals
//
// Between two calls of [Trainer.RunTo] a run can be given other hyper-parameters ([Trainer.Edit])
// and everything of another run: LoadState leaves nothing of what a trainer was, so checkpoint.Copy
// is population based training's exploit. What follows has the bits of a trainer that was made of
// the edited configuration and has loaded that state.
//
// # Actors
//
// With Config.Actors the environments are stepped by actors of their own while the learner learns,
// see package actors. A learner step then takes what they have played, and evaluations and
// checkpoints go on beside them. A run that is stopped drops what has not been learnt from: its
// environments go on from after what was. The result says how many updates the parameters that
// acted were behind ([Lag]); where they may be, runs differ each time.
//
// # Normalisation
//
// With Config.Normalize the agent learns in a vector.Normalized, whose statistics are part of the state
// and of the best policy. Evaluators get an agent whose actors normalise by statistics that are
// frozen meanwhile, and face environments as they are; publishers get [Policy.Normalizers].
// rollout/ep_rew_mean and rollout/reward_mean are of raw rewards. [Trainer.Inherit] begins with the
// statistics of another run.
//
// # Ends of a run
//
//	the last env step
//	Stop.RewardThreshold      StopTrainingOnRewardThreshold
//	Stop.MaxEpisodes          StopTrainingOnMaxEpisodes
//	Validation.Patience       StopTrainingOnNoModelImprovement
//	[Callback], [ErrStop]     a callback of Stable-Baselines3 that returns False
//
// # Randomness
//
// Environments, actions and the agent have keys of their own below the run's. An [Evaluator] brings
// its own: a run that is evaluated and one that is not have the same parameters.
//
// # How to add something that happens during a run
//
//  1. Give [Config] the number of env steps between two times, and state the env step of the last
//     time.
//  2. Do it in Trainer.between, before the checkpoint, and only when due says so: then it happens
//     once whether or not the run is stopped there.
//  3. Reach the outside by a function in [Hooks].
package train
