// Package transfer receives and sends bodies that are too large for the memory. A transfer has no time limit as a whole:
// it ends when its other side makes no progress, or when what permits it ends: the session of its caller, or a share.
package transfer

import "turnstone/protocol"

// errSessionEnded returns the error of a request whose session ended before the response began.
func errSessionEnded() error {
	return protocol.Errorf(protocol.CodeUnauthenticated, "The session has ended. Sign in again.")
}
