// Package offline has data sets of episodes: how they are recorded, checked, brought from and to
// Minari, and learnt from without an environment, or beside one.
//
// # A data set
//
// A data set is a folder with dataset.json, the [Manifest], and Parquet files, which the manifest
// lists with their SHA-256. Rows are in the order of time, episode after episode:
//
//	episode     int64, from 0, over all files
//	step        int32, from 0
//	kind        uint8: 0 a transition, 1 the observation after an episode's last one
//	obs.<field> the observation that the action was taken on: a number, or a list of as many as the space has
//	mask        list of uint8, 1 for a valid action; where the environment has masks
//	action      an element of the environment's action space
//	reward, discount        float64; the discount is 0 where the episode terminated
//	terminated, truncated   uint8, 1 in the last transition of an episode
//	log_prob    float64: the logarithm of the behaviour's probability, or density in the environment's units; NaN where it is not known
//	cost        list of float64, one for each cost of the environment
//
// Observations are kept once: what follows a transition is in the next row. Of a field that is a
// window of a table there is the number of its last row, and the manifest has the table's SHA-256.
// In worlds of several agents each agent has episodes of its own, with its row of the observation,
// from its first step to its last; what is learnt from them is one policy for all.
//
// A Parquet file holds numbers alone, so nothing in a data set can be executed.
//
// [Create] writes into FOLDER.partial, file by file, and [Writer.Finish] renames it; [Record] lets
// a policy act, and what it writes depends on its seed alone: it can be stopped, and goes on after
// the last whole file with the same bits. [Dataset.Each] reads one row group and one episode at a
// time, and [Dataset.Inspect] checks everything: [Checker] lists what of an episode.
//
// # Learning
//
// A [Store] is a data set as the replay of a learner: every algorithm that takes one can learn from
// it. With a share of 1 no environment is stepped. A trainer's rounds then only count
// (agents.Offline), so that schedules, checkpoints, validation and publication are those of any
// run, and what is saved has the identity of the data set in the place of transitions. With a
// smaller share each batch has that part from the data set and the rest from a replay of the
// learner's own (RLPD, Ball et al. 2023, arXiv 2302.02948, with a half), which is the way on from
// an offline run: begin with its parameters and keep its data.
//
// Data beside the environment do not by themselves keep a policy: a learner that may leave them
// follows values that nobody has corrected yet, and loses within 100 env steps what the offline run
// has learnt. What keeps it is a term that holds it near the data, and most of each batch from
// these: with a half, the few transitions of its own are drawn hundreds of times. Which term
// belongs to which algorithm is in onward_test.go of package run, and docs/offline.md has what was
// measured:
//
//	td3        from td3_bc        with the section bc
//	sac        from iql           with the section bc
//	iql, awac  from themselves
//	dqn        from discrete_cql  with conservative_weight
//	ppo, a2c   from bc of Discrete actions, with a small learning rate, without the data
//
// and learning_starts 0, because actions before it are random. Where names of parameters differ,
// train --init-map tells which are the same, and --partial leaves out what only one side has.
//
// Episodes are checked when they are read into memory, in which they take a row for each
// transition, as those of a replay do. Some can be held out ([Dataset.Split]); a [Judge] compares a
// policy's actions with theirs, so that policies can be chosen without acting in the environment.
//
// # Other sources
//
// [ImportReplay] makes a data set of what a checkpoint has of a replay, a learner's own or one that
// members share, and [ImportLog] of a log of decisions in JSON lines, such as a server writes
// (export/serve/decisions). [Merge] puts data sets together. "onnxrl dataset import" and "merge"
// call them.
//
// # Minari
//
// [Minari] reads and writes Minari's layout through a converter in Python, minari.py, which needs
// h5py: there is no maintained library of HDF5 in Go that could be pinned. The converter streams
// episodes, executes nothing of a data set, and does not need Minari. cmd/peers/minari_layout.py
// compares with Minari itself.
//
// # How to add a column
//
// Add it to Manifest.fields and table.add (parquet.go), to [Episode] and reader.rows, to what
// recording and the filler of replays copy, and to [Checker]; raise format where older programs
// would misread the files.
package offline
