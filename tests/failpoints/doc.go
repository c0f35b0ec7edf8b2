// Package failpoints contains the matrix of failures: for each point of protocol/failpoint, and each way to fail there,
// it states the expected outcome. Its tests run the whole program, built with the tag failpoint, on a real Postgres and
// a real Redis, and restart it when it was killed.
//
// models_test.go kills the program while it reads the answers and refusals of package modeltest, at points of each that a
// seed chooses. `make nightly` makes a hundred such rounds.
//
// To add a point, add a constant to protocol/failpoint, its calls at the step, and its cells to matrix_test.go. A test
// fails for a point without cells.
package failpoints
