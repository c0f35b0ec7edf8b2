package protocol

import "errors"

// ErrFenced says that the turn, or the node, is somebody else's now: stop, emit nothing, acknowledge nothing.
var ErrFenced = errors.New("fenced: owned by another epoch")
