// Package limits has the rate limits, in Redis and in the process, and the daily budget of model tokens, in Postgres.
// Its callers decide which limit applies to a request, and refuse it: this package only answers whether it fits.
package limits
