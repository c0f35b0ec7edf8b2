package imports

import (
	"turnstone/protocol"

	"turnstone/protocol/clip"
)

// note adds an entry to the report.
func (r *run) note(entry protocol.ImportEntry) {
	r.noted = true
	if r.report.Reasons == nil {
		r.report.Reasons = map[protocol.ImportReason]int64{}
	}
	r.report.Reasons[entry.Reason] += int64(entry.Count)
	if len(r.report.Entries) >= protocol.MaxImportEntries {
		r.report.MoreEntries++
		return
	}
	const most = 300
	entry.Title = clip.Runes(entry.Title, most)
	r.report.Entries = append(r.report.Entries, entry)
}

// noteOnce adds to the only entry of a reason.
func (r *run) noteOnce(reason protocol.ImportReason, n int) {
	for i := range r.report.Entries {
		if entry := &r.report.Entries[i]; entry.Reason == reason {
			entry.Count += n
			r.report.Reasons[reason] += int64(n)
			r.noted = true
			return
		}
	}
	r.note(protocol.ImportEntry{Reason: reason, Count: n})
}
