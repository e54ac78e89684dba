// Package kafka has the bars and the decisions of package livetrade in topics of Apache Kafka, or
// of what speaks its protocol.
//
// # Concepts
//
// A [Source] reads the partitions of a topic of messages directly, without a group: which offset is
// next is what the journal of the service ends with, so that offsets and positions can never
// disagree. Partitions that are added later are read from their beginning when the service is
// started again; one whose broker does not answer is waited for.
//
// A [Sink] writes each batch in a transaction of an idempotent producer, whose id is that of the
// service: readers that read what is committed see each batch once and whole, and a service that
// was started a second time fences the first, which ends with an error. The last batch is found in
// the topic of positions, whose records have the name of the service as their key.
package kafka
