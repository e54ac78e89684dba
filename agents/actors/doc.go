// Package actors acts and learns at the same time: actors play unrolls with parameters that may be
// a few versions old, while a learner learns from those that they have played (IMPALA, Espeholt et
// al. 2018, arXiv 1802.01561; Sample Factory, Petrenko et al. 2020, arXiv 2006.11751). What the age
// does to the gradient is the algorithm's to correct, by V-trace for instance (package impala).
//
// # Who does what
//
//	Actor     some of the environments and an agent that acts in them: adopts the newest parameters,
//	          plays n_steps rounds, hands over what it recorded        -> Played
//	Hub       says who may begin an unroll, queues those that are there, gives the learner one of each
//	          actor                                                    -> a batch
//	Weights   the newest parameters and their version
//	Group     all of these for one run, with a goroutine for each actor
//	Serve     an actor in another process, which a [Remote] reaches: by standard input and output
//	          (processes.Pipe), or over a network (package flight)
//
// The trainer (package train) takes a batch of [Group.Next], joins it, lets the learner take its
// step, and calls [Group.Learnt].
//
// # Policy lag
//
// The version of the parameters counts updates. Unrolls have numbers: number n is learnt from by
// update n, in other words by the parameters of version n, and every batch has one unroll of each
// actor. An actor may begin unroll n once version n − max_policy_lag is there, and plays it with
// the newest one, v. Its lag, n − v, is so at most max_policy_lag by construction, and nothing is
// played only to be thrown away, as where batches are of whatever comes first (Sample Factory's
// max_policy_lag, RLlib's queues): the price is that learner and actors wait for an actor that is
// slower than the others once they are that far ahead of it.
//
// An unroll that is handed over twice, that is not the next of its actor, or that was played with
// parameters that are too old or do not exist yet is refused ([RefusedError]), so nothing is
// counted twice.
//
// # What is reproducible
//
// With max_policy_lag 0 nothing depends on who is faster: runs with any number of actors have the
// same bits each time, and with one actor those of a trainer that acts by itself. Otherwise
// versions depend on time, and no two runs are alike.
//
// # Processes
//
// An actor in a process of its own opens the document of the run there. Messages are gob, one
// request after the other on one stream: the beginning, with document, parameters and position, and
// then for each unroll its number and the newest values of what learning changes, which the unroll
// answers. An error of the environment goes to the learner, and ends the run with the name of the
// actor. A process that ends is started again where its environments were after the last unroll
// that it handed over. The one that it was playing is lost, and as nothing else is, played again
// with the same number. With max_policy_lag 0 the run has the same bits all the same.
//
// The stream may as well come from another machine, whose servers start such a process for each
// actor. What a connection that breaks does is what the end of a process does.
//
// # Stopping and continuing
//
// With an unroll comes where its environments are afterwards ([Position]); a checkpoint has those
// of the unrolls that were learnt from. What was played beyond is lost when a run stops, and played
// again when it goes on. Environments that cannot be saved begin new episodes then.
package actors
