// Package convert makes experiments of other programs' documents: RL-Zoo's hyper-parameters, and
// the default.yaml of QTMRL.
//
// A table has a rule for every key that is understood: where its value goes, why it makes no
// difference, or why it cannot be. What becomes of each key is a note of the new document; keys
// without a rule, and values that have no equal here, are errors at their place in the file.
package convert
