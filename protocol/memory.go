package protocol

import "time"

// MemorySource is a kind of data of an account that is read beyond the conversation itself only with the consent of the user.
type MemorySource string

// The sources of memory.
const (
	SourceConversations MemorySource = "conversations"
	SourceFiles         MemorySource = "files"
	SourceProjects      MemorySource = "projects"
	SourceLocation      MemorySource = "location"
	SourceConnectors    MemorySource = "connectors"
)

// MemorySources lists every source.
var MemorySources = []MemorySource{SourceConversations, SourceFiles, SourceProjects, SourceLocation, SourceConnectors}

// MemoryConsent is whether the account consents to a source.
type MemoryConsent struct {
	Source    MemorySource `json:"source" enum:"conversations,files,projects,location,connectors"`
	Granted   bool         `json:"granted"`
	Precise   bool         `json:"precise" doc:"Of location: true if coordinates are stored as they are sent, and not rounded. Of other sources: false."`
	ChangedAt *time.Time   `json:"changed_at" doc:"When the consent was granted, changed or revoked; null: never."`
}

// Bounds of a location context.
const (
	MaxLocationLifetime = 24 * time.Hour
	MaxPlaceRunes       = 200
)

// LocationContext is where the user is, for the tools of one conversation.
type LocationContext struct {
	Latitude  float64   `json:"latitude" minimum:"-90" maximum:"90" doc:"In degrees, positive in the north. Rounded to 0.01° unless precise."`
	Longitude float64   `json:"longitude" minimum:"-180" maximum:"180" doc:"In degrees, positive in the east. Rounded to 0.01° unless precise."`
	AccuracyM float64   `json:"accuracy_m" minimum:"0" doc:"The radius of the area in which the user is, in metres. It includes the error of the rounding."`
	Place     *string   `json:"place" doc:"The name of the place, as the client sent it; null: none."`
	Precise   bool      `json:"precise" doc:"false: the coordinates are rounded."`
	ExpiresAt time.Time `json:"expires_at"`
	UpdatedAt time.Time `json:"updated_at"`
}
