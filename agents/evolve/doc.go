// Package evolve trains populations: members with hyper-parameters of their own, which from
// generation to generation take over the weights and the hyper-parameters of better ones.
//
// # Vocabulary
//
// A [Member] is one of the population after a generation: its score, its hyper-parameters, and the
// member of the generation before whose weights it began with. Between two generations a [Strategy]
// decides what each of them takes ([Take]): whose weights, whose hyper-parameters, and what these
// become. It trains nothing and knows no learner.
//
// A [Search] is a population of configurations: hyper-parameters are numbers at key paths, and a
// generation of a member is a run.Job from the checkpoint of its parent. Optimiser moments,
// normaliser and replay travel in it, and the document's values reach the learner as
// train.Trainer.Edit brings them. Members are ranked on the validation split alone.
//
// # A directory
//
//	evolution.yaml   the document of the search, and the experiment of its members
//	members.jsonl    a [Record] for each generation of each member, whole generations only
//	generation-N/    a run directory for each member, see package run
//	replay/          the replay that members share, where they do, after the last two generations
//	artifacts/       versions that say what published members have come of, see [MemberKind]
//
// A search that was stopped or killed goes on in members' own run directories, and ends with the
// bits of one that never stopped, however many train at once. Checkpoints of the last two
// generations are kept: the newer ones are what members go on from, and where one is damaged it is
// trained again from that of its parent. A member that diverges, with a loss, a gradient or
// probabilities that are no numbers, becomes what its parent was.
//
// Members whose base has a table of a server as its replay (replay: {kind: flight}) share that one,
// wherever they train: each as a policy of its own, and all draw what there is at the moment, so
// that they do not repeat bit for bit. What a generation that is stopped has recorded stays in it.
//
// Members that share a replay (replay.capacity) each record as a policy of their own and draw from
// all: what they do themselves, and what the others did in the generations before (replay.Section),
// so that they can train at once. A generation that is stopped begins again from the replay as it
// was; a damaged checkpoint cannot be trained again then, and is an error.
//
// # Strategies
//
//	mf_pbt         sub-populations that evolve at different frequencies (arXiv 2506.03225), see [MFPBT]
//	pbt            truncation with Ray Tune's defaults, see [PBT]
//	pb2            truncation, and hyper-parameters by a Gaussian process, see [PB2]
//	random_search  nobody takes anything, see [RandomSearch]
//
// All randomness comes from a stream that is handed over, and what a strategy decides depends on
// nothing but the history: a search that goes on decides as one that never stopped.
//
// # Diversity
//
// [MAPD] is how far the policies of a population lie apart in what they do.
//
// # How to add a strategy
//
// Write a type with yaml tags, Validate, Check and Next, and add it with its defaults to the table
// of strategies. Draw from the stream that is handed over, a number that does not depend on scores
// where that is possible, and from nothing else. Test who takes what of whom on random populations.
//
// # What it is worth
//
// In the shipped search acrobot_evolve, 16 members of PPO with 40,960 env steps each, members that
// learn of each other do not beat random search. The member with the best validation score after
// the last generation, in 100 fresh episodes, seeds 1 to 5, and the paired difference to random
// search with its interval of 95 % (go test ./agents/evolve -run none -bench Worth -benchtime 1x):
//
//	                mean return   difference
//	random_search         −80.7
//	mf_pbt                −84.2   −3.5  [−8.0, +1.0]
//	pbt                   −85.5   −4.8  [−9.1, −0.6]
//
// This says nothing of long trainings, of hyper-parameters that should change on the way, or of
// MF-PBT with the paper's frequencies, which need more than 50 generations.
//
// # What a member costs
//
// Members share the sessions of equal graphs (engine.Share), each with buffers of its own, and
// sessions outlive a generation: how many are compiled depends neither on the number of members nor
// on that of generations. Layers that never change are computed once for all members (package
// prefix). The process's resident memory comes to 115, 119 and 126 MB in populations of 4, 16 and
// 64 members of cartpole_evolve, where it came to 122, 128 and 140 without sharing (go test
// ./agents/evolve -run '^$' -bench Members).
//
// One graph with an axis for members, in batched products, would take the training graph of two
// layers of 64 (go test ./runtime/ort -run '^$' -bench MemberAxis; processor time, of as many
// separate runs divided by that of one graph):
//
//	members    4     16    64
//	batch 64   1.5   1.7   2.2
//	batch 256  0.9   1.3   0.9
//
// It is not built: what it saves is part of an update alone, and members would have to take each
// update together, with equal batches, where now each stops, diverges and goes on by itself.
package evolve
