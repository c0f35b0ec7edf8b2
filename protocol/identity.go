package protocol

import "time"

// Identity is a user at an OpenID provider, as whom its account signs in.
type Identity struct {
	IdentityID IdentityID `json:"identity_id"`
	Provider   *string    `json:"provider" db:"-" doc:"The name of the provider in paths; null: the provider is not configured any more, and the identity cannot sign in."`
	Issuer     string     `json:"issuer" doc:"The URL of the provider."`
	Subject    string     `json:"subject" doc:"The identifier of the user at the provider."`
	LinkedAt   time.Time  `json:"linked_at"`
}
