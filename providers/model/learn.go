package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.uber.org/zap"

	"turnstone/actors/llm"
	"turnstone/protocol"
)

// The settings, other than dropped parameters, that a refusal can teach.
const (
	withoutSystem  = "system"                // the system prompt is sent in the first message of the user
	completionName = "max_completion_tokens" // the limit of the answer has this name
	plainName      = "max_tokens"            // the limit of the answer has this name
)

// droppable are the parameters that a request need not have, in the order in which a refusal is searched for them.
var droppable = []string{
	"reasoning.summary", "reasoning_effort", "reasoning", "thinking", "output_config", "include", "temperature", "top_p",
	"stream_options", "parallel_tool_calls", "tool_choice", "store", "cache_control",
}

// thinking are the parameters, besides reasoning, that make a model think in some wire format.
var thinking = []string{"reasoning_effort", "thinking", "output_config"}

var (
	unsupported = regexp.MustCompile(`(?i)unsupported|not (currently )?support|unknown|unrecogni[sz]ed|unexpected|extra (inputs|fields|parameter)|` +
		`not permitted|not allowed|not accepted|not available|not enabled|invalid|deprecated|must be verified|does(n't| not) (accept|take)|no longer`)
	// Names like tool_choice are not what it means: "_" belongs to a word.
	noTools = regexp.MustCompile(`(?i)(not|n't|no endpoints).{0,60}support.{0,40}\b(tools?|function calling)\b|` +
		`\b(tools?|function calling)\b.{0,60}(not|n't) (be )?(support|enabled|available)|enable-auto-tool-choice|tool choice requires`)
	notOfTools = regexp.MustCompile(`(?i)image (input|content|part|url)|\bimages\b|schema|parallel tool|tool messages?\b`)
	// A part of this request, which says nothing about others.
	requestPart = regexp.MustCompile(`\b(messages|input)(\.|\[)\d`)
	ofPrompt    = regexp.MustCompile(`(?i)prompt|input`)
	noSystem    = regexp.MustCompile(`(?i)system (role|message|prompt|instruction)s?.{0,40}not.{0,20}(support|enabled|allowed)|` +
		`(not|n't) support.{0,20}system|developer instruction is not enabled|unexpected role.{0,5}system|roles must alternate.*system`)
	// A gateway that marks blocks for the cache of Anthropic itself leaves less than the two that the service needs.
	tooManyMarks = regexp.MustCompile(`(?i)maximum of \d+ blocks with cache_control`)
	noThinking   = regexp.MustCompile(`(?i)(not|n't) support.{0,40}\b(thinking|reasoning)\b|\b(thinking|reasoning)\b (mode )?(is |are )?(not|n't) (be )?(support|enabled|available)`)
	// The second group is the upper end of a range: [1, 8192], 1-8192, between 1 and 8192.
	answerLimit = regexp.MustCompile(`(?i)(?:at most|up to|(?:less|lower) than or equal to|<=|(?:not|never|cannot|can't) (?:be )?(?:exceed|greater than|larger than|more than)|` +
		`maximum(?: allowed)?(?: number of)?(?: output| completion)?(?: tokens)?(?: is| of|:)?|\d > )[\s\x60'"]*(\d{2,7})|` +
		`(?:range|between).{0,40}?\d+\s*(?:,|-|–|to|and|\.{2,3})\s*(\d{2,7})`)
)

// learned contains what the refusals of a provider taught about its models. Its zero value is ready to use, and its methods
// may be called from any goroutine. It is lost when the process ends.
type learned struct {
	mu      sync.RWMutex
	byModel map[string]*lessons // guarded by mu
}

// lessons are what was learned about one model.
type lessons struct {
	drop      []string // parameters that are not sent
	limitName string   // of the answer's length; empty: as the wire format says
	limit     int      // of the answer's length; 0: none known
	version   int      // grows with each change
}

// version returns a number that grows with each lesson about model.
func (l *learned) version(model string) int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if known := l.byModel[model]; known != nil {
		return known.version
	}
	return 0
}

// minAnswer is the smallest limit of an answer, in tokens, that is learned.
const minAnswer = 256

// maxModels limits the models that lessons are kept for. They belong to the routes that the operator chose.
const maxModels = 256

// learn changes what is sent to a model, if failure refuses a parameter that a request need not have. It reports whether
// the request must be repeated: also if another request has taught something since version, which this one was sent with.
// Nothing is learned from a message that repeats the request: a user could teach what all others get.
func (l *learned) learn(log *zap.Logger, model string, version int, failure *llm.Error) bool {
	var refused *refusal
	if !errors.As(failure.Err, &refused) || failure.Code == protocol.ModelContextExceeded || failure.Code == protocol.ModelRateLimited {
		return false
	}
	if status := refused.status; status != http.StatusBadRequest && status != http.StatusNotFound && status != http.StatusUnprocessableEntity && status != http.StatusInternalServerError {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.byModel[model]
	if known == nil {
		known = &lessons{}
	}
	if known.version > version {
		return true
	}
	found := refused.providerError
	if refused.quotes {
		found.Message = ""
	}
	setting := known.learn(&found)
	if setting == "" || len(l.byModel) >= maxModels {
		return false
	}
	known.version++
	if l.byModel == nil {
		l.byModel = map[string]*lessons{}
	}
	l.byModel[model] = known
	log.Warn("the model refused a setting; it is not used until the service restarts", zap.String("model", model), zap.String("setting", setting))
	return true
}

// learn returns the setting that changed, or "".
func (l *lessons) learn(e *providerError) string {
	all := e.Param + " " + e.Message
	word := func(name string) bool {
		return e.Param == name || regexp.MustCompile(`(^|[^\w.-])`+regexp.QuoteMeta(name)+`($|\W)`).MatchString(all)
	}
	drop := func(name string) string {
		if slices.Contains(l.drop, name) {
			return ""
		}
		l.drop = append(l.drop, name)
		return "without " + name
	}
	rename := func(name string) string {
		if l.limitName == name {
			return ""
		}
		l.limitName = name
		return name + " limits the answer"
	}
	refuses := unsupported.MatchString(e.Message + " " + e.Code)
	// refused returns the parameter that is refused, with clear only one whose name is no ordinary word.
	refused := func(clear bool) string {
		for _, name := range droppable {
			found := e.Param == name || strings.HasPrefix(e.Param, name+".") || word(name) && (!clear || strings.Contains(name, "_"))
			if refuses && found && !slices.Contains(l.drop, name) {
				return name
			}
		}
		return ""
	}
	switch {
	case tooManyMarks.MatchString(e.Message):
		return drop("cache_control")
	case (requestPart.MatchString(all) || e.Param == "input" || e.Param == "messages") && !noSystem.MatchString(e.Message):
		return ""
	case word(plainName) && word(completionName) && refuses:
		return rename(completionName)
	case word(completionName) && refuses:
		return rename(plainName)
	case word(plainName) || word("max_output_tokens"):
		found := answerLimit.FindStringSubmatch(e.Message)
		if found == nil || ofPrompt.MatchString(e.Message) {
			return ""
		}
		limit, _ := strconv.Atoi(cmp.Or(found[1], found[2]))
		if limit < minAnswer || l.limit > 0 && limit >= l.limit {
			return ""
		}
		l.limit = limit
		return fmt.Sprintf("at most %d tokens an answer", limit)
	case refused(true) != "":
		return drop(refused(true))
	case noTools.MatchString(e.Message) && !notOfTools.MatchString(e.Message), e.Param == "tools" && refuses && strings.Contains(e.Code, "unsupported"):
		return drop("tools")
	case noSystem.MatchString(e.Message):
		return drop(withoutSystem)
	case noThinking.MatchString(e.Message) && !strings.Contains(e.Message, "summar"):
		l.drop = append(l.drop, thinking...)
		return drop("reasoning")
	case refused(false) != "":
		return drop(refused(false))
	}
	return ""
}

// SystemRole reports whether model accepts a system prompt with a role of its own.
func (c *Client) SystemRole(model string) bool {
	c.learned.mu.RLock()
	defer c.learned.mu.RUnlock()
	known := c.learned.byModel[model]
	return known == nil || !slices.Contains(known.drop, withoutSystem)
}

// encode encodes the body of a request to model, as far as the provider accepts it. The same body has the same encoding.
func (c *Client) encode(model string, body any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // no browser reads it, and code contains many of these characters
	if err := encoder.Encode(body); err != nil {
		return nil, fmt.Errorf("encoding a request to the model: %w", err)
	}
	c.learned.mu.RLock()
	defer c.learned.mu.RUnlock()
	known := c.learned.byModel[model]
	if known == nil && len(c.options.Extra) == 0 && len(c.options.Drop) == 0 {
		return text.Bytes(), nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text.Bytes(), &fields); err != nil {
		return nil, fmt.Errorf("encoding a request to the model: %w", err)
	}
	maps.Copy(fields, c.options.Extra)
	fields = (&lessons{drop: c.options.Drop}).apply(fields)
	if known != nil {
		fields = known.apply(fields)
	}
	return json.Marshal(fields) // cannot fail: Extra was read from JSON
}

// apply changes a body to what the provider accepts.
func (l *lessons) apply(fields map[string]json.RawMessage) map[string]json.RawMessage {
	for _, name := range l.drop {
		outer, inner, nested := strings.Cut(name, ".")
		var members map[string]json.RawMessage
		switch {
		case name == "cache_control":
			fields = withoutMember(fields, name)
		case !nested:
			delete(fields, name)
		case json.Unmarshal(fields[outer], &members) == nil:
			delete(members, inner)
			fields[outer], _ = json.Marshal(members)
		}
	}
	for _, name := range []string{plainName, completionName, "max_output_tokens"} {
		value, found := fields[name]
		if !found {
			continue
		}
		if limit, err := strconv.Atoi(string(value)); err == nil && l.limit > 0 && limit > l.limit {
			fields[name] = strconv.AppendInt(nil, int64(l.limit), 10)
		}
		if l.limitName != "" && l.limitName != name {
			fields[l.limitName] = fields[name]
			delete(fields, name)
		}
	}
	return fields
}

// Lessons returns what the refusals of model taught, each as a sentence for operators that names the member of a route in
// the file of TURNSTONE_MODEL_CONFIG which saves the first refusal after every start.
func (c *Client) Lessons(model string) []string {
	c.learned.mu.RLock()
	defer c.learned.mu.RUnlock()
	known := c.learned.byModel[model]
	if known == nil {
		return nil
	}
	var list []string
	for _, name := range known.drop {
		switch name {
		case "tools":
			list = append(list, `the model accepts no tools: set "tools": false`)
		case withoutSystem:
			list = append(list, "the model accepts no system prompt, which is sent in the first message: nothing to set")
		default:
			list = append(list, fmt.Sprintf(`the model accepts no %s: set "drop": [%q]`, name, name))
		}
	}
	if known.limitName != "" {
		list = append(list, "the length of an answer is limited by "+known.limitName+": nothing to set")
	}
	if known.limit > 0 {
		list = append(list, fmt.Sprintf(`an answer has at most %d tokens: set "max_output_tokens": %d`, known.limit, known.limit))
	}
	return list
}

// withoutMember returns the fields without all members of a name, at any depth.
func withoutMember(fields map[string]json.RawMessage, name string) map[string]json.RawMessage {
	whole, _ := json.Marshal(fields)
	var value any
	decoder := json.NewDecoder(bytes.NewReader(whole))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return fields
	}
	var strip func(any)
	strip = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			delete(value, name)
			for _, each := range value {
				strip(each)
			}
		case []any:
			for _, each := range value {
				strip(each)
			}
		}
	}
	strip(value)
	whole, _ = json.Marshal(value)
	var stripped map[string]json.RawMessage
	_ = json.Unmarshal(whole, &stripped)
	return stripped
}
