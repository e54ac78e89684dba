// Package kafkatest gives tests a real Kafka: one broker in KRaft mode, with a controller in the
// same process, on loopback and with a data directory of its own, which a test may kill, pause and
// start again.
//
// # Concepts
//
// [Start] runs a [Broker] from the jars in the folder that the environment variable ONNXRL_KAFKA
// names; .ci/kafka brings them and prints that folder. Where the variable is not set the test is
// left out and says so. [Broker.Kill] ends the broker as kill -9 does and [Broker.Restart] starts
// it again on the same ports and the same data; [Broker.Pause] stops the process where it stands,
// as a machine does that hangs, and [Broker.Resume] lets it go on. [StartApart] runs the broker in
// a network namespace of its own: [Broker.Cut] parts it from the test, with its connections open,
// and [Broker.Join] joins them again. The broker ends with the test, however that ends.
//
// Everything that was acknowledged survives Kill: the operating system has it. That is not a test
// of a machine that loses power.
//
// Broker needs Linux; elsewhere the package is empty.
//
// # How to add a setting of the broker
//
// It is a line of the properties in broker_linux.go. Partitions of internal topics are few and
// waits short, so that a test is.
package kafkatest
