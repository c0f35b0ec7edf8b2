// Package transfer reads the bodies of requests, and sends bodies that are too large for the memory. A transfer has no time limit as
// a whole: it ends when its other side makes no progress, or when what permits it ends: the session of its caller, or a share.
package transfer
