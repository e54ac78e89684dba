// Package flight serves replay over Arrow Flight (gRPC): tables of transitions that are sampled,
// and queues of record batches, for learners and actors elsewhere.
//
//	Repair   keeps what is whole of tables whose journals are damaged
//	Server   keeps tables, in memory or with a journal on disk, and answers Flight's calls
//	Client   a connection; its Store is a learner's replay (replay.Store), as replay: {kind: flight} in a document
//	Writer   sends record batches, numbered, again where a connection or a server has ended
//	Reader   asks for samples, or for items of a queue
//
// # Tables
//
// A table that is sampled is a replay.Shared: rows are transitions of several environments of
// several policies, and its selector says how they are drawn. A queue (fifo) has items, record
// batches of one schema, which go on in the bytes in which they came. A [Rate] holds samplers and
// writers together; a full queue lets writers wait. Who waits is not read from, so that gRPC's flow
// control reaches whoever is too fast.
//
// # The protocol
//
// All descriptors, tickets, metadata and bodies are JSON, of the types in wire.go. A client in
// Python (pyarrow.flight) needs nothing else; cmd/peers/replay_pyarrow.py is one.
//
// Writing is DoPut. The descriptor is a command, {"table": "transitions", "writer": "actor-1",
// "policy": 0, "envs": 1} ([PutCommand]), or a path of one element, the table's name. Each batch
// may have metadata, {"seq": 1} ([Insert]): batches of a writer's name are numbered from 1 on, and
// one that the server has already is acknowledged and left out. The server answers with metadata
// ([Ack]): first the last number that it has of the name, then the number of each batch, once it is
// on the disk. Who comes back goes on behind the first answer.
//
// Rows of a table have the columns obs.NAME, action, reward (float), discount (float, 0 where the
// episode has terminated, else 1) and kind (uint8), and where they apply env (int32, the number of
// the writer's environment), mask (uint8), log_prob, logits, skill and cost. A column of several
// numbers is a list of fixed size. Of an environment's rows, those of kind 0 are transitions: what
// was seen, done and earned there. After the last one of a batch comes a row that shows what
// followed: of kind 1 if the episode ended with it, terminated or cut off, or 2 if it goes on. The
// rest of such a row is not looked at. The next batch begins with the same observation, as a
// transition; where it shows another one, the environment was reset in between, and the episode
// counts as cut off.
//
// Sampling is DoExchange, whose descriptor has {"table": "transitions", "batch": 256}
// ([SampleCommand]), optionally with n_steps, gamma, length for sequences, and columns. Each
// message with metadata ([SampleRequest]), {} or {"seed": 1, "beta": 0.4}, asks for one sample, and
// several may be under way; samples come in order, a record batch each, with metadata ([Sampled]).
// A sample has the columns that were inserted, and next.NAME for each obs.NAME, next_mask, weight
// (importance), key (for priorities), policy, time (the number of the transition among all) and
// ended; reward and discount are those of n steps. DoGet with the same JSON for a ticket is one
// sample, or one item of a queue, which is gone when it was sent.
//
// Of a queue a request takes items, {"take": 4}, and says that those of the requests before are
// done with: only then they leave the queue, and what a stream has not said so of goes back to
// where it was when the stream ends. {"done": true} asks for none. A reader that comes back after
// its stream has ended says what it holds, {"held": [17], "finished": [16]}, so that it does not
// get it again.
//
// Actions are priorities ([PriorityUpdate]: keys and errors, as the learner has them), tables,
// which describes all tables or the one of {"table": NAME} ([TableStats]), and checkpoint, which
// saves them. ListFlights and GetFlightInfo list tables with their schemas and numbers of rows.
// With tokens every call needs the metadata authorization: Bearer TOKEN.
//
// # On disk
//
// A table has a folder: its schema, a journal (journal.go) and checkpoints. Whatever changes a table
// is appended to the journal in the order in which it did, and acknowledged after an fsync, which
// writers share. When a journal has grown, the table is saved and an empty journal begins. The two
// newest checkpoints are kept, and the journal since the older one, which is what a table is
// restored from when the newest is damaged. A journal that is damaged before its end is an error,
// and [Repair] keeps what is whole. An fsync that fails is the end of writing until the server is
// started again: what is on the disk is not known then.
//
// # Faults
//
// Clients wait for a server that is not there, with pauses of up to a second, until
// [Config.Timeout]. TLS that fails, a wrong token, a table or columns that do not fit are errors at
// once. Peers that say nothing are asked every ten seconds whether they are there.
//
// # How to add a selector
//
// Name it in [TableConfig] and its check, and have newSamples make the sampler, which package
// replay implements.
package flight
