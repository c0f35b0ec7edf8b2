package protocol

import "time"

// Draft is what the account has typed but not sent. A draft that was never written is empty and has version 0.
type Draft struct {
	Content     string     `json:"content"`
	Attachments []FileID   `json:"attachments"`
	Version     int64      `json:"version"`
	UpdatedAt   *time.Time `json:"updated_at"`
}

// CurrentVersion returns the version of the draft.
func (d *Draft) CurrentVersion() int64 { return d.Version }
