// Package offlinebench measures learning from data sets: on episodes of the project's own agents
// that differ in how these behaved, every offline method on several seeds, beside cloning (bc) and
// the behaviour's own return, and what choosing one of them without acting costs. It is the library
// of `onnxrl bench offline`.
//
// # A task
//
// A [Task] is an environment. An agent that learns in it (SAC) is the behaviour: its medium policy
// is that of the first checkpoint whose validation return has come a third of the way from that of
// untrained parameters to the best one, and its expert that of the best validation. They act for
// three data sets ([Data]):
//
//	mix     half of the episodes are random, half medium, drawn from its distribution
//	medium  medium, drawn from its distribution
//	noisy   the expert's best actions with normal noise of standard deviation 0.3, in a box of ±1
//
// Each method learns from nine tenths of the episodes for a fixed number of updates, the policy of
// the last one counts, and nothing but its score is found out in the environment: the mean return
// of greedy episodes that nothing else has seen. There are no choices by returns.
//
// # The rule
//
// It was written before any run. Of all methods of a seed one policy is chosen by the data alone:
// that with the highest value of fitted Q evaluation (agents/ope) at the initial observations. A
// data set is passed when the interquartile mean of the chosen ones' scores over the seeds is at
// least the mean return of the episodes in the data, and at least 0.9 of the way from there to the
// interquartile mean of bc, where that is higher. Beside it the table has, not judged, the policy
// that is nearest to the episodes held out (action_score), and the best one in hindsight.
//
// # Going on
//
// Everything is kept in a folder: the run of the behaviour, the data sets, and a file for each
// policy that was trained and evaluated. The same command goes on where it was stopped: runs and
// data sets with the same bits, and of the policies one at most is trained again.
//
// # How to add a method or a task
//
// A row in Methods or Tasks. Settings that are not a method's defaults need a reason beside them.
package offlinebench
