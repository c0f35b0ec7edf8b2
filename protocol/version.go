package protocol

// AnyVersion is the version of a change that is based on whatever version the resource has (If-Match: *).
const AnyVersion int64 = -1

// MatchesVersion reports whether a change that is based on a version may change a resource that has the version stored.
func MatchesVersion(version, stored int64) bool { return version == AnyVersion || version == stored }
