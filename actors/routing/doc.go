// Package routing maps a profile to a model with its limits, and decides which profile "auto" means for a message.
//
// It is pure: the same request gives the same result on every node. It calls no model.
package routing
