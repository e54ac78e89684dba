// Package meta is the environment of a router: a decision maker of low frequency, which chooses who
// of several experts acts in another environment, and for how long.
//
// # A step
//
// A step is a segment: the choice holds for so many env steps of the environment inside, or to the
// end of its episode. The choice is one expert ([Expert], a discrete action) or the shares of all
// in a convex mixture of their actions ([Mixture], scores whose softmax they are), or which assets
// may be held ([Assets], see below). The reward is
// the sum of what the environment inside pays, and costs are summed as well; discounts are
// multiplied, so that a router's own discount is for segments.
//
// # What is observed
//
// The fields of the environment inside, windows included, and "experts" [N·2 or N·4]: of each
// expert its share in the last decision, its share in the usage of late, and, with limits on risk,
// its drawdown and its CVaR.
//
// # Assets
//
// A decision can be which of the N assets that the environment inside trades may be held in the
// segment: one choice of two for each, and behind them one of the experts where there are several
// (envs.MultiDiscrete [2 … 2 E]). What becomes of what an expert would do with the others is the
// environment's ([Holder]). In trading their purchase is masked, and selling them is not; of target
// weights the assets that may be held and the cash share what the others had, in proportion, as the
// scores of a masked softmax would, and at most a hundredfold. The target is reached as far as
// settlement, limits and lots let it, as always. To choose none is to hold cash.
//
// An asset that cannot be traded when the decision is due cannot be chosen: what is held of it
// stays until it can be sold. If none can be traded all may be chosen, which makes no difference.
// KL is that of the experts' policies for what they may do, of orders after the mask; one expert
// alone is paid for nothing and masked by nothing, which is refused.
//
// # Diversity
//
// A router that settles on one expert early leaves the others without experience. [Diversity] pays
// for choosing one who acts differently, by KL(π_selected ‖ π_mean), and for one who is seldom
// chosen, by KL(one-hot ‖ usage). In training ([Env.Train]) usage is that of the last decisions of
// the environment, over all of its episodes, and it is saved with the episode. Each environment of a
// vector counts its own decisions, so that nothing depends on which of them is stepped first. In
// evaluation it is that of the episode, so that an episode depends on nothing before it, and no
// evaluation is part of what training counts.
//
// Observations have the usage of the episode in both: a live trader knows no other.
//
// # Risk
//
// Each expert has a book: what the account made of 1 while it was in charge, by its share in a
// mixture. A book rests while others are in charge, which a portfolio can know live, and what was
// lost is forgotten after drawdown.window days. An expert whose drawdown is beyond the limit is
// masked until it has come back (hysteresis); if all are, the one with the least drawdown may be
// chosen. One whose CVaR is beyond its limit may hold cvar.cut of what the account may.
//
// # How to add what can be chosen
//
// A word of Config.Choose, its action space in describe, and what shares it means in choose. Where
// no element of an action belongs to an asset of the environment inside, envs.Spec.Joint says so.
package meta
