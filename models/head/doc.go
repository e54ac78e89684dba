// Package head makes policies and value functions out of features: distributions over actions whose
// log-probabilities and entropies are graphs, deterministic actions, state values and action
// values.
//
// # Vocabulary
//
// A distribution ([Categorical], [DiagGaussian], [GSDE], [Squashed]) is made of the values that
// parameterise it, for instance logits, and has methods that append what a learner or an actor
// needs: LogProb of recorded actions, Entropy, KL to another one, Mode, and Sample, which takes its
// noise as an input because randomness is drawn in Go (design decision D5). Each of these is one
// number per row, [batch]: components and heads are independent, so their logarithms are summed.
//
// Losses are sums over rows with a weight per row, an input, which layer.Graph's Dot appends: then
// a batch may be split over shards. Algorithms write their own losses; only what is hard to get
// right numerically is here.
//
// # Masks
//
// Which actions are valid is an input of the graph, with the layout of envs.MaskLen: one bool per
// action, heads one after the other. Logits of invalid actions are replaced by [Excluded], not by
// −∞, so that neither values nor gradients are ever NaN. The probability of an invalid action is
// exactly 0, and so are its contribution to the entropy and its gradient. A mask must be stored
// with the action and applied again in every update.
//
// # How to add a head
//
// Write it into a file of its own on top of package layer. Compare values and gradients with
// torch.distributions: add a case to cmd/peers/heads_vectors.py and to the table of head_test.go.
package head
