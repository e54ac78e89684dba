//go:build tools

// Package tools pins the S3 server of the tests, which is built in a module of its own so that the
// program's does not know it.
package tools

import _ "github.com/versity/versitygw/cmd/versitygw"
