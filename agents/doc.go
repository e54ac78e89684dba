// Package agents says what an agent is made of, so that programs can drive any algorithm: an actor
// that chooses actions, a recorder that keeps what happened, and a learner that changes the policy.
//
// # One round
//
//	actor.Act        on the batch of observations that the environments show       -> Decision
//	recorder.Begin   copies observations, masks and the decision, before they are overwritten
//	env.Step
//	recorder.End     copies rewards, discounts and the final observations of episodes that ended
//	learner.Step     when learner.Ready: one update of the parameters              -> Metrics
//	actor.Sync       takes over the parameters
//
// [Collect] is the first four of these, for a number of rounds. Batches are vector.Batch: a
// structure of arrays whose rows are environments, and whose windows over a table are row numbers.
//
// # Vocabulary
//
// An env step is one action in one environment; a round is one env step in each of them. A learner
// step is one call of Learner.Step, which may take many optimiser steps. Never a bare step. Names
// follow Stable-Baselines3 in metrics (train/loss, train/approx_kl, rollout/ep_rew_mean) and rlax
// in arithmetic (package rlmath).
//
// # Randomness
//
// An actor draws from the key that it is given for each round and keeps no random state, so a run
// resumes with nothing but the number of its round. A learner keeps its streams (shuffling, sampled
// batches, noise) and saves them with its state.
//
// # What several agents share
//
// An off-policy learner can be given a store of transitions ([Setup].Replay, package replay), which
// others record into and sample too; its checkpoints have the store's identity. A [vector.Decision] has
// the logits of the policy that acted, and its skill, so that a store can keep them. Costs of steps
// are in every batch, and a store's rows have them. Critics may read fields of the observation that
// the policy does not (network.Config).
//
// Policies can be conditioned on a skill, a field of the observation that each episode draws
// (wrap.Skill); package diversity pays for skills that can be told from what the agent does.
//
// # Where time goes
//
// A [Profile] in the setup of an agent adds up the time of each [Phase]: loops that drive agents
// count acting, stepping, recording and syncing, by [Profile.Collect]; learners count sampling,
// gradients and optimising. Without one nothing is measured, at the cost of a comparison.
//
// # How to add an algorithm
//
// Choose its family: values of discrete actions (valuebased), actor and critics over a replay
// (offpolicy), or rollouts (onpolicy). Package qrdqn, which is of the first, was added by these steps;
// it has 59 lines of code.
//
//  1. Write a package below this one with the files doc.go, config.go, graph.go and agent.go, and
//     learner.go where the family has none. It takes arithmetic from rlmath, networks from
//     models/encoder and models/head, and nothing from other algorithms. doc.go names every default's
//     source and every deviation.
//  2. Export its [Kind], which an [Algorithm] makes, with a function NewMaker, which .ci/deadcode.keep
//     names. Add the kind to the list of the program, agents/experiment/kinds/kinds.go, and what
//     becomes of its keys in an edit to edit_test.go there. A name that RL-Zoo has for it goes into
//     agents/experiment/convert/zoo.go. cmd/app/config_test.go has the environments that it fits, and
//     counts the shipped configurations.
//  3. Test it with package agenttest, and compare updates with another implementation's: a script in
//     cmd/peers writes them to testdata, THIRD_PARTY_NOTICES names them.
//  4. Add a golden run: a document in cmd/internal/golden/testdata/tiny, its name in runs_test.go, and
//     the lines that package golden records.
//  5. Ship a configuration in configs/experiments, with its row in the README there, and a task in
//     cmd/internal/learning/task.go. onnxrl bench learn measures it for docs/evidence/measured.md.
//  6. Write what its keys mean into the help: go test ./cmd/app -run TestKeyComments -update. Name it
//     in docs/train.md, docs/evidence/verification.md and CHANGELOG.md.
//  7. Run go test ./agents/... ./configs/... ./cmd/app ./cmd/internal/golden ./cmd/internal/layout.
//
// Example_algorithm of this package is a whole one.
package agents
