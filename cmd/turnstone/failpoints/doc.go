// Package failpoints holds the matrix of the steps at which the program is made to fail: for each point of
// protocol/failpoint, and each way to fail there, what has to come of it. Its tests run the whole program, built with the
// tag failpoint, on a real Postgres and a real Redis, and start it again when it was killed.
//
// A new point is a constant in protocol/failpoint, its calls at the step, and its cells in matrix_test.go; a test refuses
// a point without cells.
package failpoints
