package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// script is what a prompt asks of the model. It is spelled as the scripted provider of the service reads it too, so that
// run works against either.
type script struct {
	Tokens   int
	First    time.Duration // before the first token
	Interval time.Duration // between tokens
	Words    bool          // an English text instead of counted tokens that carry their time
}

func (s script) String() string {
	text := fmt.Sprintf("[[script tokens=%d ttft=%s interval=%s", s.Tokens, s.First, s.Interval)
	if s.Words {
		text += " text=words"
	}
	return text + "]]"
}

const (
	scriptOpen  = "[[script "
	scriptClose = "]]"
)

// lastScript reads the last directive of a request: earlier ones are the conversation's history.
func lastScript(body []byte) (script, bool) {
	at := bytes.LastIndex(body, []byte(scriptOpen))
	if at < 0 {
		return script{}, false
	}
	text, _, closed := strings.Cut(string(body[at+len(scriptOpen):]), scriptClose)
	if !closed {
		return script{}, false
	}
	s := script{Tokens: 1}
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
		}
		if err != nil {
			return script{}, false
		}
	}
	return s, s.Tokens > 0 && s.First >= 0 && s.Interval >= 0
}
