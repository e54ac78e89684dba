// Package logs writes the folders that the league's own program writes, of worlds and of
// tournaments, so that whatever reads those reads ours.
//
// # Concepts
//
//	[Folder]      the folder of one world; it is a witness of its negotiations, and is told of its days
//	[Extras]      what is large, or of agents alone: rounds, utilities, the logs of a tracker
//	[Tournament]  the folder of a tournament: parameters, configurations, a folder for each world, scores
//
// Names of files, columns and their order are those of scml 0.7.6 with negmas 0.11.3 where a world
// runs with compact=False, no_logs=False and fast=False; lists and tuples in cells are literals of
// Python. Files of negotiations and ufuns.csv are large, and there where [Extras] asks for them, as
// its log_negotiations and log_ufuns do. What only that program knows is empty or zero: times on a
// clock, exceptions; so are utilities, which are empty there too. What is left out are pickles, what
// is in them as JSON beside them, and _agent_logs, which agents of Python write themselves.
//
// info.json and configurations have two keys more, by which a world can be computed again exactly:
// rules, and the shortfall coefficient of each day. Identifiers are made of the names of worlds, so
// that equal worlds have equal folders.
//
// # Layout
//
// A tournament's folder, for instance tournament_history/hrl_data_1_std, has
//
//	params.json, scores.csv, total_scores.csv, winners.csv, score_stats.csv, …    its parameters and tables
//	configs/000000.json …                   how each world began; base_configs.json and assigned_configs.json
//	logs/WORLD/negotiations.csv, stats.csv, contracts.csv, results.json, …        each world
//	tracker_logs/agent_ID_world_WORLD.json …                                      with Extras.Tracked
//
// The official program has results.json one folder above a world's tables, so that negmas, asked to
// compile the tables of the tournament again, would find none: call its evaluate_tournament with
// compile=False, and it reads them as they are. Paths in assigned_configs.json are relative to the
// tournament's folder, where tools that follow them are to be started.
//
// A folder is written beside its place, and appears there when it is complete.
//
// # How to add a table
//
// Give it a file here that lists its columns, add it to Folder.tables, and say in package record
// how it is read.
package logs
