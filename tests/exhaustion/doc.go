// Package exhaustion has no code of its own. Its tests let one account ask a node for as much as a valid request can ask
// for: the largest valid value of every field of every route, with many requests at once, and the inputs that make the
// background jobs slowest. Meanwhile another account uses the service. The node must refuse nobody, answer every request,
// keep its memory within a bound, and leave nothing behind that a restart would have to survive.
package exhaustion
