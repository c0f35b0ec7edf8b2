package protocol

import (
	"encoding/json"
	"net/url"
)

// WebAddress is an address that readers may follow: http or https, with a host and without credentials. Any other one, such as
// javascript:, is left out wherever it is read or written as JSON, so that it is neither stored nor shown.
type WebAddress string

// MarshalJSON implements json.Marshaler.
func (a WebAddress) MarshalJSON() ([]byte, error) { return json.Marshal(string(a.checked())) }

// IsZero reports whether the address is left out of JSON.
func (a WebAddress) IsZero() bool { return a.checked() == "" }

// UnmarshalJSON implements json.Unmarshaler.
func (a *WebAddress) UnmarshalJSON(text []byte) error {
	var address string
	if err := json.Unmarshal(text, &address); err != nil {
		return err
	}
	*a = WebAddress(address).checked()
	return nil
}

// checked returns the address, or nothing if readers may not follow it.
func (a WebAddress) checked() WebAddress {
	target, err := url.Parse(string(a))
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Hostname() == "" || target.User != nil {
		return ""
	}
	return a
}
