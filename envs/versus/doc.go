// Package versus lets a learner play one agent of a world of several, while the others are played
// by members of a pool: scripted players of the world, and models.
//
//	env:
//	  kind: versus
//	  world: {kind: connect_four}
//	  seats: [player_0]              # absent: all of them in turn, by chance
//	  opponents:
//	    - {player: {kind: random}}
//	    - {name: search, weight: 2, player: {kind: alpha_beta, depth: 2}}
//	    - {name: champion, path: best.onnx, greedy: true}
//
// Any world does whose kind has several agents: games, cover, or one of PettingZoo's. The pool is
// part of the document, so that what a learner does depends on nothing else; package league writes
// another for each of its generations.
//
// # An episode
//
// For each episode a seat of the world is drawn for the learner, and for each of the others a
// member of the pool, by its weight. All of that, and what opponents draw, descends from the key of
// the episode.
//
// A step of the world in which the mask leaves the learner one valid action is none of its
// decisions: it is taken, and what it earns is added to the next step. So a game whose players take
// turns has a step for each of the learner's moves, and begins, where another moves first, after
// that move. The episode is over with the last step of the learner's agent.
//
// # Opponents
//
// A model draws its actions from its log_probs, where it has such an output and its actions are
// choices, and takes the best one otherwise, or with greedy. It is joined to the world as policies
// are to their environments, and errors name both shapes. In a vector a model decides for all rows
// at once, eight at a time ([Vector]).
//
// A model whose outputs are NaN, and one that chooses what its mask excludes or the space does not
// have, is an error that names opponent, agent and step. Models that remember are refused.
//
// # Diagnostics
//
//	seat      the number of the agent that the learner plays
//	opponent  the member of the pool that plays the first of the others, by its place in the list
//	score     in the last step: 1 if the learner has earned more than each of the others, 1/2 if as much as the best, 0 if less
//
// # Saving
//
// Episodes can be saved where their worlds can. One that goes on in an environment of another pool,
// as with the next generation of a league, keeps its opponents as far as they are there by name. In
// the place of others somebody is drawn.
//
// # How to add a player
//
// A scripted one belongs to its world, see envs.Scripted; another kind of policy is an [Opener].
package versus
