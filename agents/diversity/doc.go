// Package diversity rewards a policy that is conditioned on a skill z for behaviour from which z
// can be told: a lower bound of the mutual information I(features; z), learnt beside the agent and
// added to its rewards. The skill is a field of the observation (wrap.Skill), so it is an input of
// every network and of every export.
//
// # Kinds
//
// diayn (Eysenbach et al. 2018, arXiv 1802.06070) learns a discriminator q(z|features), by maximum
// likelihood, and pays log q(z|features) − log p(z). Of one-hot skills it is a softmax, and the
// bonus is at most log K. Of skills on the sphere it is a von Mises-Fisher distribution (as in
// Hansen et al. 2020, arXiv 1906.05030), and not a Gaussian, whose density has no bound: the
// network gives its direction and its concentration κ, up to concentration, and the bonus is κ·cos
// − log ₀F₁(; d/2; κ²/4) in d dimensions, which is largest at cos = 1 and the largest κ.
//
// infonce (van den Oord et al. 2018, arXiv 1807.03748) learns a separable critic f = g(features)·
// h(z) that finds each transition's skill among those of batch_size transitions, and pays the
// estimate of the log-density ratio, f(x,z) − log mean exp f(x,z′), which is at most log N. It
// makes no assumption about the distribution of skills. Transitions of the same episode share their
// skill, which lowers the estimate and not the bound.
//
// # When
//
// Each update of the agent runs the graph once, on the batch that it has sampled: the bonus of that
// batch is computed with the parameters of the moment and added to the sampled rewards, with which
// targets are then made, and one step of Adam follows. What the replay keeps are the environment's
// rewards; nothing that an old discriminator has said is learnt from.
//
// # Features
//
// Features are what the agent has done and not what has happened to it: fields of the next
// observation, such as positions, and action. From a field that changes with the market or the
// calendar skills could be told by the time at which they were drawn, without any difference in
// behaviour. So windows over a table are refused, and so is the skill itself.
//
// # Scale
//
// With normalize the bonus is divided by the root of the running mean of its square, which begins
// at the bound and does not fall below a tenth of it, so that a discriminator at chance is not
// amplified. beta then means the same for every kind, number of skills and expert.
//
// # Metrics
//
// diversity/mi is the estimate of I(features; z) in nats, the mean of the bonus before it is
// scaled, diversity/bonus what was added to rewards, diversity/bound the largest possible estimate,
// diversity/accuracy the share of transitions whose skill is recognised among the others (on the
// sphere: the mean cosine), diversity/beta the weight and diversity/scale the divisor.
//
// # Deviations
//
// DIAYN adds 1e-6 within its logarithms, which a log-softmax does not need. Its environment rewards
// are ignored; here they count, and a zero reward is the environment's affair.
package diversity
