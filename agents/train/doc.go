// Package train runs an agent in its environments: it collects, learns, evaluates, checkpoints and
// publishes, and can be stopped and continued bit for bit.
//
// # Vocabulary
//
// A [Trainer] is one run of one seed. Everything is counted in env steps, over all environments. A
// run goes from learner step to learner step, and what is due happens between two of them, in this
// order: metrics every LogIntervalSteps, an evaluation of the greedy policy on the validation split
// every Validation.EverySteps and at the end, publication when that policy is the best so far, a
// checkpoint every Checkpoint.EverySteps. As in Stable-Baselines3 the last rollout is taken whole,
// so a run ends with the first learner step at or after TotalEnvSteps.
//
// A learner may take many learner steps that train nothing, as off-policy learners do until their
// replay has learning_starts transitions: such a step gives metrics without a loss. It is a step
// like any other to checkpoints, interruptions and intervals, but until the first loss the policy
// counts as untrained.
//
// The policy is evaluated once before it is trained. That says at once whether the metric exists
// that is to choose the best policy, and what learning starts from. It is never the best.
//
// # Stopping and continuing
//
// A Trainer is a checkpoint.Stater. When its context ends, it finishes the rollout in progress,
// lets the learner take its step, and asks for a checkpoint, so that every checkpoint lies between
// two learner steps and holds no half-filled recorder. An evaluation in progress is given up and
// done again after resuming. A resumed run has the parameters and the metrics of one that never
// stopped, bit for bit, except for tags that begin with time/. The best parameters are part of the
// state.
//
// Environments that cannot be saved (envs.ErrCannotSave) are left out of checkpoints, which the log
// says: a resumed run then begins new episodes, and is as good as one that never stopped but not
// equal to it.
//
// TotalEnvSteps may grow between two runs: what a finished run has done at its end beyond what was
// due (a record of metrics, an evaluation) then remains. Schedules without a length of their own
// are relative to the length that the trainer was made with, so those of a run that has grown are
// relative to its new length, as with Stable-Baselines3's learn(reset_num_timesteps=False): a
// learning rate that has gone down to 0 begins again where the longer run would have it. Programs
// should say so when it happens; package optim has schedules with lengths of their own.
//
// A checkpoint holds the replay of an off-policy learner, and the run waits while it is written,
// hashed and synced to the disk: one million transitions of 17 observed numbers and 6 actions are
// 123 MB and took 0.9 s on a busy machine with two cores, and 0.2 s to load. Only what is filled is
// written. Checkpoint.EverySteps is what to raise where that is too often, and Checkpoint.KeepLast
// and KeepBest say how many there are on the disk.
//
// Environments that cannot be saved, such as those of other processes, begin new episodes when a
// run is resumed. Everything else goes on.
//
// # Intervals
//
// A run can be trained in intervals ([Trainer.RunTo]). Between two of them it can be given other
// hyper-parameters ([Trainer.Edit]), and everything of another run: LoadState of a trainer that has
// run leaves nothing of what it was, so checkpoint.Copy from a trainer to another is population
// based training's exploit. The rule for both: what follows has the bits of a cold start, of a
// trainer that was made of the edited configuration and has loaded that state.
//
// # Normalisation
//
// With Config.Normalize the agent learns in a normalize.Env. Statistics are part of the state and
// of the best policy. Evaluators get an agent whose actors normalise by themselves, by statistics
// that are frozen for the time of the evaluation, and face environments as they are; publishers get
// [Policy.Normalizers]. rollout/ep_rew_mean and rollout/reward_mean are of raw rewards. A run that
// begins with the parameters of another may begin with its statistics ([Trainer.Inherit]).
//
// # When a run ends
//
// After its last env step; once an evaluation's mean_reward reaches Stop.RewardThreshold; after
// Stop.MaxEpisodes; after Validation.Patience evaluations that were no improvement; or when a
// [Callback] returns [ErrStop]. These are Stable-Baselines3's StopTrainingOnRewardThreshold,
// StopTrainingOnMaxEpisodes, StopTrainingOnNoModelImprovement and a callback that returns False;
// its CheckpointCallback is Config.Checkpoint, its EvalCallback Config.Validation, and its
// EveryNTimesteps a Callback.
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
