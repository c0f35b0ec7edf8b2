package protocol

import "time"

// Passkey is the public key of an authenticator with which its account signs in.
type Passkey struct {
	PasskeyID  PasskeyID  `json:"passkey_id"`
	Name       string     `json:"name"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at" doc:"The last sign-in or confirmation with the passkey; null: none."`
	BackedUp   bool       `json:"backed_up" doc:"A password manager has stored the passkey on more than one device."`
	Version    int64      `json:"version" doc:"Of the name."`
}

// CurrentVersion returns the version of the passkey.
func (p *Passkey) CurrentVersion() int64 { return p.Version }

// AddedPasskey is a new passkey, with the session whose token the addition replaced.
type AddedPasskey struct {
	Passkey Passkey     `json:"passkey"`
	Session SessionInfo `json:"session"`
}

// The types below have the member names of the JSON forms of WebAuthn Level 3, so that a browser converts them:
// https://www.w3.org/TR/webauthn-3/#sctn-parseCreationOptionsFromJSON. Binary values are base64url without padding.

// PasskeyCreation is the request to an authenticator for a new passkey.
type PasskeyCreation struct {
	RelyingParty       PasskeyParty       `json:"rp"`
	User               PasskeyUser        `json:"user"`
	Challenge          string             `json:"challenge"`
	Parameters         []PasskeyAlgorithm `json:"pubKeyCredParams"`
	Timeout            int                `json:"timeout" doc:"Milliseconds after which the challenge expires."`
	ExcludeCredentials []PasskeyReference `json:"excludeCredentials" doc:"The passkeys that the account has."`
	Selection          PasskeySelection   `json:"authenticatorSelection"`
	Attestation        string             `json:"attestation" enum:"none"`
}

// PasskeyParty identifies the service to an authenticator.
type PasskeyParty struct {
	ID   string `json:"id" doc:"The domain to which passkeys are bound."`
	Name string `json:"name"`
}

// PasskeyUser identifies an account to an authenticator.
type PasskeyUser struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
}

// PasskeyAlgorithm is a signature algorithm that the service accepts.
type PasskeyAlgorithm struct {
	Type      string `json:"type" enum:"public-key"`
	Algorithm int    `json:"alg" doc:"The COSE identifier of the algorithm."`
}

// PasskeyReference identifies a passkey to an authenticator.
type PasskeyReference struct {
	Type       string   `json:"type" enum:"public-key"`
	ID         string   `json:"id"`
	Transports []string `json:"transports" doc:"How a browser can reach the authenticator."`
}

// PasskeySelection states what an authenticator must be able to do.
type PasskeySelection struct {
	ResidentKey        string `json:"residentKey" enum:"required"`
	RequireResidentKey bool   `json:"requireResidentKey"`
	UserVerification   string `json:"userVerification" enum:"required"`
}

// PasskeyRequest is the request to an authenticator for a signature of a passkey.
type PasskeyRequest struct {
	Challenge        string             `json:"challenge"`
	Timeout          int                `json:"timeout" doc:"Milliseconds after which the challenge expires."`
	RelyingPartyID   string             `json:"rpId"`
	AllowCredentials []PasskeyReference `json:"allowCredentials" doc:"The passkeys that may sign; empty: any passkey for the domain."`
	UserVerification string             `json:"userVerification" enum:"required"`
}

// PasskeyAttestation is the response of an authenticator that has created a passkey.
type PasskeyAttestation struct {
	ID       string                     `json:"id" maxLength:"1400"`
	RawID    string                     `json:"rawId" maxLength:"1400"`
	Type     string                     `json:"type" enum:"public-key"`
	Response PasskeyAttestationResponse `json:"response"`
}

// PasskeyAttestationResponse contains the public key of a new passkey.
type PasskeyAttestationResponse struct {
	ClientDataJSON    string   `json:"clientDataJSON" maxLength:"8192"`
	AttestationObject string   `json:"attestationObject" maxLength:"65536"`
	Transports        []string `json:"transports,omitempty" maxItems:"16"`
}

// PasskeyAssertion is the response of an authenticator that has signed with a passkey.
type PasskeyAssertion struct {
	ID       string                   `json:"id" maxLength:"1400"`
	RawID    string                   `json:"rawId" maxLength:"1400"`
	Type     string                   `json:"type" enum:"public-key"`
	Response PasskeyAssertionResponse `json:"response"`
}

// PasskeyAssertionResponse contains the signature.
type PasskeyAssertionResponse struct {
	ClientDataJSON    string `json:"clientDataJSON" maxLength:"8192"`
	AuthenticatorData string `json:"authenticatorData" maxLength:"8192"`
	Signature         string `json:"signature" maxLength:"8192"`
	UserHandle        string `json:"userHandle,omitempty" maxLength:"128" doc:"Identifies the account; required for a sign-in."`
}
