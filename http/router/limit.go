package router

import (
	stdhttp "net/http"

	"turnstone/http/auth"
	"turnstone/http/route"
)

// knownDevices is the beginning of the key of the devices behind an address that have signed in before.
const knownDevices = "devices at "

// limit draws from the bucket of the caller's account or, without a session, of the address. An address has two buckets, so
// that strangers behind it do not prevent the sign-in on a known device. All known devices share one: every sign-in returns
// another device cookie, so a client could have any number of buckets otherwise.
func (rt *Router) limit(r *stdhttp.Request, ex *requestState, from route.Bucket) error {
	if from == route.NoBucket {
		return nil
	}
	key := auth.AddressKey(ex.Address)
	switch {
	case ex.Caller != nil:
		key = ex.Caller.AccountID.String()
	case ex.Device != nil && from != route.BucketShared:
		key = knownDevices + key
	}
	return rt.Limits.Draw(r.Context(), from, key)
}
