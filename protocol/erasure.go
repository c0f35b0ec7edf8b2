package protocol

import "time"

// Erasure is an erasure of an account that has begun.
type Erasure struct {
	ErasureID   ErasureID      `json:"erasure_id" doc:"Names the erasure for an operator."`
	RequestedAt time.Time      `json:"requested_at"`
	WillDelete  map[string]int `json:"will_delete" doc:"The numbers that were confirmed, each up to 1,000."`
}
