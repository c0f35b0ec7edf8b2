package load

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Script is the directive in a prompt that specifies what the model streams. The service's scripted provider reads the
// same syntax, so that the command run works with either.
type Script struct {
	Tokens   int
	First    time.Duration // before the first token
	Interval time.Duration // between tokens
	Words    bool          // prose instead of counted tokens that carry their due time
	Approval bool          // ends with a call that needs an approval
}

func (s Script) String() string {
	text := fmt.Sprintf("[[script tokens=%d ttft=%s interval=%s", s.Tokens, s.First, s.Interval)
	if s.Words {
		text += " text=words"
	}
	if s.Approval {
		text += " approval=high:irreversible"
	}
	return text + "]]"
}

const (
	scriptOpen  = "[[script "
	scriptClose = "]]"
)

// LastScript parses the last directive in a request; earlier ones belong to the conversation's history. It returns
// false if there is no directive or the last one is invalid.
func LastScript(body []byte) (Script, bool) {
	at := bytes.LastIndex(body, []byte(scriptOpen))
	if at < 0 {
		return Script{}, false
	}
	text, _, closed := strings.Cut(string(body[at+len(scriptOpen):]), scriptClose)
	if !closed {
		return Script{}, false
	}
	s := Script{Tokens: 1}
	for _, field := range strings.Fields(text) {
		key, value, _ := strings.Cut(field, "=")
		var err error
		switch key {
		case "tokens":
			s.Tokens, err = strconv.Atoi(value)
		case "ttft":
			s.First, err = time.ParseDuration(value)
		case "interval":
			s.Interval, err = time.ParseDuration(value)
		case "text":
			s.Words = value == "words"
		case "approval":
			s.Approval = true
		}
		if err != nil {
			return Script{}, false
		}
	}
	return s, s.Tokens > 0 && s.First >= 0 && s.Interval >= 0
}
