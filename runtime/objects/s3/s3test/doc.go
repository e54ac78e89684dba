// Package s3test gives tests a real S3 server in a process of its own, and a line to it that fails
// at random, waits, and counts what goes over it.
package s3test
