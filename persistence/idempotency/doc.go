// Package idempotency stores the response to each creating request with an Idempotency-Key, so that a repeat gets the
// same response and has no second effect. A store that creates something calls StoreResponseIn in its transaction.
//
// Package turns stores the keys of starts itself, in the transaction of the start.
package idempotency
