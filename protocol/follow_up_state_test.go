package protocol

import (
	"errors"
	"strings"
	"testing"
)

func TestAChangeOfAFollowUpIsCheckedAgainstTheStoredItem(t *testing.T) {
	file, other := FileID{1}, FileID{2}
	version, stale, same, edited := int64(3), int64(2), "one", "two"
	item := func(state FollowUpState) *FollowUp {
		return &FollowUp{State: state, Content: same, Attachments: []FileID{file}, Version: version}
	}
	for name, c := range map[string]struct {
		from    FollowUpState
		change  FollowUpChange
		want    Code
		differs bool
	}{
		"without a version":                   {FollowUpQueued, FollowUpChange{State: FollowUpHeld}, CodeVersionRequired, true},
		"of an earlier version":               {FollowUpQueued, FollowUpChange{State: FollowUpHeld, Version: &stale}, CodeStaleVersion, true},
		"hold":                                {FollowUpQueued, FollowUpChange{State: FollowUpHeld, Version: &version}, "", true},
		"nothing":                             {FollowUpHeld, FollowUpChange{State: FollowUpHeld, Version: &version}, "", false},
		"the same text":                       {FollowUpHeld, FollowUpChange{State: FollowUpHeld, Content: &same, Version: &version}, "", false},
		"another text":                        {FollowUpHeld, FollowUpChange{State: FollowUpHeld, Content: &edited, Version: &version}, "", true},
		"the same files":                      {FollowUpHeld, FollowUpChange{State: FollowUpHeld, Attachments: &[]FileID{file}, Version: &version}, "", false},
		"other files":                         {FollowUpHeld, FollowUpChange{State: FollowUpHeld, Attachments: &[]FileID{other}, Version: &version}, "", true},
		"release one that was cancelled":      {FollowUpCancelled, FollowUpChange{State: FollowUpQueued, Version: &version}, CodeConflict, true},
		"cancel one again":                    {FollowUpCancelled, FollowUpChange{State: FollowUpCancelled, Version: &version}, "", false},
		"edit one that was cancelled":         {FollowUpCancelled, FollowUpChange{State: FollowUpCancelled, Content: &edited, Version: &version}, CodeConflict, true},
		"start it, which only the queue does": {FollowUpQueued, FollowUpChange{State: FollowUpStarted, Version: &version}, CodeConflict, true},
	} {
		err := c.change.Check(item(c.from))
		var failed *Error
		if errors.As(err, &failed); (failed == nil) != (c.want == "") || failed != nil && failed.Code != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.change.Differs(item(c.from)) != c.differs {
			t.Errorf("%s: it differs: %t", name, !c.differs)
		}
	}
}

func TestAFollowUpHasTextOrFiles(t *testing.T) {
	longest := strings.Repeat("é", MaxInputRunes)
	for _, c := range []struct {
		content string
		files   int
		valid   bool
	}{
		{"x", 0, true},
		{" x\n", 0, true},
		{longest, 0, true},
		{"", 1, true},
		{"x", 1, true},
		{"", 0, false},
		{" \n", 0, false},
		{" \n", 1, false},
		{longest + "e", 1, false},
	} {
		if err := CheckFollowUp(c.content, c.files); (err == nil) != c.valid {
			t.Errorf("a text of %d bytes with %d files: %v", len(c.content), c.files, err)
		}
	}
}
