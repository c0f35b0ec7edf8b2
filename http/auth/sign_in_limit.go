package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"

	"turnstone/protocol"
)

// The limits of password attempts, with their default rates. None of them depends on whether the sign-in name has an
// account.
//
//	signin            per name and network (an IPv4 address, an IPv6 /48), known device or session: 5 in 15 minutes
//	signin_account    per name for all networks together, without known devices and sessions: 20 in an hour
//	signin_reserve    per name and network while signin_account is used up: 1 in an hour
//
// Registrations and requests for mails to reset a password draw from signin, too, per network. So do mails that a request sends to
// an address: per address for all networks together, and per known device.
//
// So for a name, many networks together can try 20 passwords an hour, and each of them one more. Other clients cannot
// lock out the owner of an account: a device that has signed in before draws only from its own bucket, and from a new
// device the owner has at least one attempt an hour, whatever other networks do.

// attempt is one attempt to use a password.
type attempt struct {
	hashCaller

	name string // the sign-in name or account that is tried; Redis gets only its hash
}

// signInLimits draws for attempts to sign in.
type signInLimits struct {
	limits Limits
	keys   *Keys
}

// attemptOf returns an attempt to sign in with a name: of the device if it knows the name, else of the network.
func (l signInLimits) attemptOf(req *Request, name string) attempt {
	if req.Device.knows(l.keys, name) {
		return attempt{hashCaller{req.Device.key(), true}, name}
	}
	return attempt{hashCaller{networkKey(req.Address), false}, name}
}

// ownAttempt returns the attempt of a signed-in caller to confirm their password.
func ownAttempt(caller *Caller) attempt {
	return attempt{hashCaller{"session:" + caller.SessionID.String(), true}, caller.AccountID.String()}
}

// draw draws from the limits of password attempts.
func (l signInLimits) draw(ctx context.Context, req *Request, try attempt) error {
	digest := sha256.Sum256([]byte(try.name)) // an email address is user content, which must not be stored in Redis
	const digestBytes = 16
	name := hex.EncodeToString(digest[:digestBytes])
	if err := l.limits.Draw(ctx, BucketSignIn, try.key+":"+name); err != nil || try.known {
		return err
	}
	over := l.limits.Draw(ctx, BucketSignInAccount, name)
	if protocol.CodeOf(over) != protocol.CodeRateLimited {
		return over
	}
	err := l.limits.Draw(ctx, BucketSignInReserve, try.key+":"+name)
	if protocol.CodeOf(err) == protocol.CodeRateLimited && retryAfter(over) < retryAfter(err) {
		return over
	}
	return err
}

// retryAfter returns the seconds after which a refused request may be repeated.
func retryAfter(err error) int {
	var refusal *protocol.Error
	if errors.As(err, &refusal) {
		return refusal.RetryAfter
	}
	return 0
}

// drawAddress draws for a registration or a change of the email address, whose responses reveal whether an address is
// taken. The limit is that of the network, whatever the address, and it is the same one for both: else a client could
// ask about twice as many addresses.
func (l signInLimits) drawAddress(ctx context.Context, req *Request) error {
	return l.limits.Draw(ctx, BucketSignIn, networkKey(req.Address)+":register")
}

// networkKey returns the form of a client's address that the sign-in limits use: an IPv4 address, or the /48 prefix of
// an IPv6 address, which is what one customer of a provider gets.
func networkKey(address netip.Addr) string {
	const site = 48
	if address.IsValid() && !address.Is4() {
		return netip.PrefixFrom(address, site).Masked().String()
	}
	return AddressKey(address)
}
