package replay

// RowFiles is the format of the tests' files. An external test sets it, as the package of the format
// imports this one.
var RowFiles Format
