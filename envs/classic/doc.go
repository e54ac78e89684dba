// Package classic has the control problems that reinforcement learning is measured on, with
// Gymnasium's dynamics, and the toys that Stable-Baselines3 tests algorithms with.
//
// # Environments
//
//	kind                    Gymnasium id               actions        limit  ends by itself
//	cartpole                CartPole-v1                discrete(2)     500   cart beyond 2.4, or pole beyond 12°
//	pendulum                Pendulum-v1                box [1] ±2      200   never
//	mountaincar             MountainCar-v0             discrete(3)     200   at the goal
//	mountaincar_continuous  MountainCarContinuous-v0   box [1] ±1      999   at the goal
//	acrobot                 Acrobot-v1                 discrete(3)     500   when the tip is high enough
//	identity                SB3 IdentityEnv…           any space       100   never
//	invalid_action          SB3-contrib InvalidAction… any with masks  100   never
//
// Sources: gymnasium/envs/classic_control of Gymnasium 1.4.0 and its registration (time limits),
// stable_baselines3/common/envs/identity_env.py, sb3_contrib/common/envs/invalid_actions_env.py.
// The dynamics themselves are those of Barto, Sutton and Anderson 1983 (cart-pole), Moore 1990
// (mountain car) and Sutton 1996 with Sutton and Barto 2018 (acrobot, the book's equations).
//
// An observation is one field called observation: float32 for the control problems, an element of
// the action space for the toys. A time limit (max_steps, 0 for none) truncates, so a learner
// bootstraps from the final observation; an episode that comes to its end in that very step is
// terminated.
//
// # Precision
//
// States are float64 where Gymnasium's are, and float32 where they are float32 there:
// MountainCarContinuous keeps its state so, and its and Pendulum's torques are float32 numbers.
// cmd/peers/gymnasium_transitions.py records Gymnasium's transitions and compares 10 000 and more
// of every environment with this package. A selection of them, with all limits, walls, wraps and
// terminations, and whole episodes, is in testdata and compared by the tests.
//
// # Deviations
//
//   - Initial states have Gymnasium's distributions, but are drawn from the episode's key.
//     MountainCarContinuous rounds the first position to float32, as Gymnasium does after the first
//     step.
//   - A continuous action beyond its bounds is an error, as everywhere in this project, where
//     Gymnasium clips it. Agents clip actions to the space before they take them.
//   - The toys of Stable-Baselines3 take one size for all; here dims lists one per head. In a box
//     of several dimensions every one must be within eps.
//   - An invalid action of invalid_action is taken for a wrong one, as in SB3-contrib: it earns
//     nothing.
//
// # How to add an environment
//
// Write a file with a Config, its defaults and Validate, and a system: how it starts, steps and is
// observed. Env does the rest of the contract: life cycle, action check, time limit, saving. Add a
// row to Kinds, a recorder to cmd/peers/gymnasium_transitions.py if Gymnasium has it, and a row to
// the tables of the tests.
package classic
