// Package replay keeps transitions for learners that learn from them more than once.
//
//	Uniform      a ring of the newest transitions, sampled uniformly, with n-step returns (SAC, TD3, DQN)
//	Prioritised  the same with proportional priorities in a sum tree (Schaul et al. 2016, arXiv 1511.05952)
//	Shared       the store of a population: many writers and readers, behaviour policies, spill to disk
//
// A transition is obs_tm1, a_tm1, r_t, discount_t, obs_t. discount_t is the environment's, 0 where
// the episode terminated and 1 where it was cut off; a learner multiplies its own. Observations are
// kept once: obs_t is a view of the following row, except at an episode's end, whose final
// observation has a row of its own.
//
// # What learners see
//
// A learner has a [Buffer], which records rounds (it is an agents.Recorder) and is sampled straight
// into the inputs of the learner's programs ([Batch]). [Open] makes one: a Uniform, or what the
// agents.Setup was given as a [Store]: the place of a policy in a Shared ([Shared.Member]), a
// replay that the caller keeps ([Uniform.Lend]), or a client of a store elsewhere, which is another
// implementation of Store and Buffer that embeds [Reference]. A store that was given is neither
// closed nor saved with the learner, whose checkpoint has the store's identity, and how much it
// held: a store that holds less is refused. A [Sharer] tells whose transitions are drawn.
//
// # Rows
//
// Data that are sampled together lie together: a row has an observation, its mask, the action
// taken there, reward, discount and what else a [Layout] asks for, and is a whole number of cache
// lines, outside the Go heap, with huge pages asked for. Of a window of a table (envs.Window) only
// the number of its last row is kept. Nothing allocates once a buffer has been used with a size of
// batch.
//
// A sample first draws the numbers of all rows, then reads a byte of every cache line of a block of
// them, so that the processor waits for many at once, and then copies column by column. "onnxrl
// bench replay" compares that with a bare loop of copies.
//
// # Streams and episodes
//
// Each environment of a batch has a stream of rows. A final observation is a row that no action was
// taken from, and is never drawn; its mask is what could have been done there. What an environment
// shows that does not follow from what it showed before, because it was reset in the middle of an
// episode, ends the episode as if it had been cut off. Of a sample of n steps only the rewards up
// to the end of the episode count, or up to what is recorded; its discount is the product of those
// that count, so that it is right in every case. Capacities count rows: the final observation of an
// episode takes the place of a transition.
//
// Rows of a batch that are absent (vector.Batch.Present), because the agent has died or is not
// there yet, record nothing. An agent leaves with a final observation and begins an episode when it
// comes back, so no transition, and none of the steps of a sample, reaches over an absence;
// sequences run on, as they do from one episode into the next. Streams are then of different
// lengths.
//
// # The shared store
//
// Rows lie in chunks, each of one environment of one policy. Writers work in chunks of their own
// and publish rows one after the other; they take a lock only for another chunk. Samplers read
// under a lock that only the taking away of a chunk excludes. What is seen is therefore always
// whole. Samples of several steps, and sequences, end with their chunk.
//
//	mix        each policy has its share of the samples
//	recency    a half-life in transitions, by chunk
//	weights    (N·P)^−β, divided by the largest of the batch, which correct both towards all transitions alike
//	names      a writer has a name, by which it goes on in a restored store, whoever opens first
//	spill      the oldest chunks go to a file before they are overwritten (package arrowrows: Arrow IPC, a record batch for each); reload brings them back
//
// A file is written to a temporary name, synced and renamed. If that fails, the chunks stay where
// they are and are sampled on, the writer's Begin returns the error, and the round can be begun
// again. Files have a column for each column of the rows, obs.<field> for observations, and policy,
// time and kind (0 a transition, 1 a final observation, 2 the observation after a chunk's last
// transition); what follows a transition is the next row. They are checked when they are read: a
// file of another layout, or a damaged one, is an error.
//
// # State
//
// All of them save what is filled, between rounds, and go on as if they had not stopped; writers of
// a shared store must be quiet until the checkpoint is complete, because arrays are not copied.
// [Publish] makes the replay of any checkpoint a version of an artefact, with its parents, and
// [Shared.Restore] and package offline read it again.
//
// # How to add a column
//
// Place it last in newRows (rows.go), because checkpoints hold whole rows; copy it in gather, put
// it into the batch, describe it in columns (state.go) and, for files, last in Shared.parts
// (spill.go); compare it in toy_test.go's diary. One that only some layouts ask for leaves all
// others as they were, so that older checkpoints and files are read.
package replay
