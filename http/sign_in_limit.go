package http

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"

	"turnstone/protocol"
)

// How often a password may be tried. None of these limits depends on whether the address has an account.
//
//	signin            a name from one network (an IPv4 address, an IPv6 /48), a known device, or a session: 5 in 15 min
//	signin_account    a name from all networks together, known devices and sessions excepted: 20 in an hour
//	signin_reserve    a name from one network while signin_account is used up: 1 in an hour
//
// So many networks together try 20 passwords an hour, and each of them one more. Nobody can keep an owner out: a device that
// has signed in before draws from its own bucket only, and from a new device the owner has at least one attempt an hour,
// whatever others do from other networks.

// attempt is one try of a password.
type attempt struct {
	hasher

	name string // whose: a sign-in name or an identifier, never shown to Redis
}

// attemptOf says who tries a name: a device that knows it, or a network.
func (s *Server) attemptOf(ex *exchange, name string) attempt {
	if ex.device.knows(s.keys, name) {
		return attempt{hasher{ex.device.key(), true}, name}
	}
	return attempt{hasher{networkKey(ex.address), false}, name}
}

// ownAttempt is a signed-in caller's, for the own password.
func ownAttempt(caller *Caller) attempt {
	return attempt{hasher{"session:" + caller.SessionID.String(), true}, caller.AccountID.String()}
}

// drawSignIn draws for an attempt.
func (s *Server) drawSignIn(ctx context.Context, try attempt) error {
	header := exchangeOf(ctx).header
	digest := sha256.Sum256([]byte(try.name)) // an address is content: Redis does not get to see it
	const enough = 16
	name := hex.EncodeToString(digest[:enough])
	if err := s.take(ctx, header, bucketSignIn, try.key+":"+name); err != nil || try.known {
		return err
	}
	over := s.take(ctx, header, bucketSignInAccount, name)
	if protocol.CodeOf(over) != protocol.CodeRateLimited {
		return over
	}
	err := s.take(ctx, header, bucketSignInReserve, try.key+":"+name)
	if protocol.CodeOf(err) == protocol.CodeRateLimited && retryAfter(over) < retryAfter(err) {
		return over
	}
	return err
}

func retryAfter(err error) int { return problemOf(err).retry }

// drawRegistration draws for a registration: a network's, whatever the address is.
func (s *Server) drawRegistration(ctx context.Context) error {
	ex := exchangeOf(ctx)
	return s.take(ctx, ex.header, bucketSignIn, networkKey(ex.address)+":register")
}

// networkKey is what the limits of signing in know of a client's address: an IPv4 address, or the /48 of an IPv6 one,
// which is what one customer gets.
func networkKey(address netip.Addr) string {
	const site = 48
	if address.IsValid() && !address.Is4() {
		return netip.PrefixFrom(address, site).Masked().String()
	}
	return addressKey(address)
}
