package protocol

// AnyVersion is the version of a change that is based on whatever version the resource has (If-Match: *).
const AnyVersion int64 = -1

// MatchesVersion reports whether a change that is based on a version may change a resource that has the version stored.
func MatchesVersion(version, stored int64) bool { return version == AnyVersion || version == stored }

// CheckVersion returns a conflict with the current resource unless the client sent its version. nil: it sent none.
func CheckVersion(sent *int64, stored int64, current any) error {
	switch {
	case sent != nil && MatchesVersion(*sent, stored):
		return nil
	case sent == nil:
		return Conflict(CodeVersionRequired, current, "Send the version you are changing in the If-Match header.")
	default:
		return Conflict(CodeStaleVersion, current, "The resource has changed since that version.")
	}
}
