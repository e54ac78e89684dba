// Package games is games of two players, to prove self-play with: connect four, whose players take
// turns, and matrix games, in which both choose at once and of which everything can be computed.
//
// Both are worlds of the agents player_0 and player_1 (envs.Multi); package versus gives a learner
// one of them, and opponents the other. Rewards sum to 0.
//
// # Connect four
//
// Seven columns of six cells, of which player_0 fills one first; four discs in a line win, and a
// full board is a draw. Winning earns 1, losing −1. Who waits has one valid action, the first,
// which has no meaning, as in the turns of package pettingzoo; a column that is full is masked. A
// full column that is chosen nevertheless is the free one next to it, where PettingZoo's
// connect_four_v3 ends the game with a loss.
//
//	board  [84]  for each cell, by rows from above and in a row from the left, 1 for an own disc, and 1 for one of the other
//
// It is PettingZoo's observation [6 7 2], flat. With opening a game begins after some random moves,
// so that learners see more of the game than a few lines that win.
//
// # Its players
//
// alpha_beta looks depth moves ahead, its own next one included, by negamax with alpha–beta pruning
// (Knuth and Moore 1975), and plays one of the moves of greatest value, each with equal
// probability. A won position is worth 1,000,000 less the number of discs on the board, so that
// sooner wins are better, and a full board 0. At its depth a position is worth, for the player to
// move, 5 for each window of four cells with three own discs and an empty cell and 2 for each with
// two and two, less the same of the other player, and 3 for each own disc of the middle column,
// less those of the other: the windows and weights of K. Galli's "How to Program a Connect 4 AI"
// (2019), made symmetric. With random it plays some moves at random; noise blurs what moves are
// worth, but for wins and losses, which gives many players of about the same strength.
//
// random draws among the free columns, as in all worlds.
//
// # Matrix games
//
// player_0 chooses a row and player_1 a column, and payoff says what the first earns of the second.
// Players see which they are, and nothing else. Where one has fewer choices than the other they are
// masked.
//
//	player  discrete(2)  which player this is
//
// Players mixed draw from given probabilities. [Exploitability] says how far two strategies are
// from an equilibrium.
//
// # How to add a game
//
// Write a type that implements envs.Multi and envs.MultiSaver, whose waiting players have one valid
// action where they take turns, and list it in [Kinds] with its players. A player is an
// envs.Player, which sees the whole world. Call envtest.Run as TestContract does, and compare what
// searches with something plainer.
package games
