// Package record keeps worlds of SCML's Standard league as files, and proves that such a file is
// right: everything it says of the end of a day is computed again from how the world began and from
// what was agreed, and the first number that differs is named.
//
// # Concepts
//
//	[World]     a run as a file: the configuration, and day by day what was signed and what came of it
//	[Recorder]  makes one of a run
//	[Replay]    computes one again
//	[ReadLogs]  makes one of the folder that the league's own program writes for a world
//	[EachNegotiation]  reads the table of the negotiations of such a folder
//	[OpenTournament]   reads the scores of a tournament's folder, and what tracked agents have written
//
// Package logs writes such folders.
//
// A file of which only the beginning is wanted, to run a new world from, needs no days
// ([World.Config]).
package record
