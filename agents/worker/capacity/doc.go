// Package capacity predicts how intervals go that are trained through a server (package temporal):
// how long a run takes, what an interval costs beside its training, and what is used up first when
// there are more and more workers. [Simulate] is a discrete-event simulation of a program, a
// Temporal server, storage and workers, whose costs were measured ([Costs]) and whose messages are
// those that the packages send: how often somebody waits for an answer is nobody's parameter.
//
// # What happens to a task
//
//	program   PutTree(checkpoint), StartWorkflow
//	worker    polls a workflow task, answers that an activity is to be begun
//	worker    polls the activity, GetTree(checkpoint), trains, beats, saves, PutTree(run directory)
//	worker    says that it has ended, polls a workflow task, answers that the workflow has ended
//	program   has waited for that; GetTree(run directory)
//
// Meanwhile the program asks the server about every task, again and again, eight at once. PutTree
// asks for each file whether it is there and writes it, four files at once in a process, and then
// its list; GetTree reads the list and then the files.
//
// # Stations
//
// A resource that only so many can use at once is a station, a queue with that many servers, first
// come first served (Kleinrock, Queueing Systems, 1975). Stations are the server, the storage, the
// bandwidth of both sides to it, and the program's transfers, disk and processor. Everything else
// is time that passes for each by itself: the network, the rest of an answer, a worker.
//
// A simulation with the same parameters has the same result, bit for bit.
package capacity
