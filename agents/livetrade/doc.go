// Package livetrade trades with a published market agent from bars as they arrive: a service that
// may be stopped at any instant, goes on where it was, and publishes every decision once.
//
// # Concepts
//
// Every input of the service is an [Event]: a message of a bar, the passing of a time that it waits
// for, a command. Events are written to the [Journal] in the order in which they came, with the
// time of the clock, before anything follows from them. A [Machine] is a function of the events
// alone: it reads no clock, no file and no network, and gives the same [Batch] of records for the
// same events, byte for byte. So the journal is the recording of a session: [Machine.Apply] of its
// events again gives what was published, which [Compare] checks. It grows, unless [Retention] says
// how much of it is kept.
//
// A batch is what one event publishes, each part to its [Topic]. Of a decision it has the fills of
// the orders before, the positions that they lead to, signals and orders. Of any event it has what
// the limits on risk have done. Batches are numbered; a [Sink] takes each whole or not at all,
// knows the last that it holds, and is given none twice. A [Source] gives messages, each at an
// offset of a partition, and begins again where the service asks it to.
//
// [Run] joins them. Its state directory has the journal and snapshots of the machine. After any end
// of the program the machine begins with the last snapshot, and receives the events that the
// journal has after it. It publishes the batches that the sink lacks, and goes on with the source
// behind the last event. Nothing is decided twice, and nothing is lost as long as the source has
// it.
//
// Fills come from a paper account, that of package trading with the market's own rules and costs:
// what it holds is to the share what a back-test of the same bars holds. Or a broker
// (package broker) executes the orders: then what it reports are events like bars, and the machine
// keeps tickets, the orders that the broker has or is to get. Whoever gives them to it decides
// nothing: a ticket is the same however often it is sent.
//
// # How to add a source
//
// Implement [Source] in a package below this one, as files, kafka and websocket do, and name it
// in cmd/app/live_ends.go. Messages of one partition come in order; offsets rise, and a source that
// can go back to one is given those that the journal ends with.
package livetrade
