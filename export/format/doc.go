// Package format writes a served model in the forms that other programs take.
//
// # The forms
//
//   - onnx: one file.
//   - triton: a folder of a Triton model repository, NAME/config.pbtxt and NAME/1/model.onnx, with
//     a recorded observation as warm-up. A repository that has the model already gets its next
//     version.
//   - oci: an artefact store with that version alone, which is an OCI image layout.
//   - python: a folder with the model, a class that acts with it, recorded observations and
//     actions, and an example that reproduces them with numpy and onnxruntime.
//
// The written model is that of a [Package], unchanged: whoever makes a package has checked the
// parity of its model. Folders appear under their names when they are complete.
//
// # How to add a form
//
// Write one file with a function of the type of [Form.Write] and add a line to the table in
// form.go. Test that what is written is complete without running the program it is for, and add
// that run to cmd/peers.
package format
