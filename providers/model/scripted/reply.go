package scripted

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"turnstone/actors/llm"
	"turnstone/protocol/clip"
)

// The tools that the model knows how to use; it calls one only when the request offers it.
const (
	toolCalculate = "calculate"
	toolTime      = "current_time"
	toolSearch    = "search_files"
	toolRead      = "read_file"
	toolAction    = "demo_action"
	toolPast      = "search_conversations"
	toolLocation  = "location"
	toolProject   = "project_context"
	toolCode      = "run_code"
	toolWeb       = "web_search"
	toolPage      = "read_page"
	toolResearch  = "start_research"
)

// replyHoldToken is the token of a plain answer at which a test can hold the answer. The name of the hold is the text
// of the question.
const replyHoldToken = 40

// The patterns that classify a message. If several match, the order in reply decides.
var (
	greeting      = regexp.MustCompile(`(?i)^\W*(hi|hello|hey|good (morning|afternoon|evening)|greetings|moin|hallo)\b`)
	thanking      = regexp.MustCompile(`(?i)^\W*(thanks|thank you|cheers)\b`)
	aboutSelf     = regexp.MustCompile(`(?i)\bturnstone\b|\bwho are you\b|\bwhat are you\b|\bwhat can you do\b|\bhelp\b\W*$`)
	timeAsked     = regexp.MustCompile(`(?i)\bwhat time\b|\btime is it\b|\bcurrent (time|date)\b|\bthe (time|date)\b|\btoday'?s date\b|\bwhat day\b`)
	webAsked      = regexp.MustCompile(`(?i)\b(?:search|find|look)\b.*\b(?:web|internet|online)\b`)
	researchAsked = regexp.MustCompile(`(?i)^\W*(?:please )?research\b[\s:,]*(\w.*)$`)
	pageAsked     = regexp.MustCompile(`(?i)\b(?:read|open|summari[sz]e)\b.*?(https?://\S+[\w/])`)
	writeAsked    = regexp.MustCompile(`(?i)\b(?:write|draw|create)\b[^.?!]{0,40}\b(document|page|table|diagram|picture)\b`)
	searchAsked   = regexp.MustCompile(`(?i)\b(?:search|find|look)\b.*\b(?:files?|library|documents?)\b`)
	pastAsked     = regexp.MustCompile(`(?i)\b(?:search|find|look)\b.*\bconversations\b`)
	placeAsked    = regexp.MustCompile(`(?i)\bwhere am i\b|\bmy (?:location|position)\b`)
	projectAsked  = regexp.MustCompile(`(?i)\b(?:about|describe|instructions of|files of) (?:this|the|my) project\b`)
	searchedFor   = regexp.MustCompile(`(?i)\bfor (.+?)(?: (?:in|on) (?:my|the|all) .*)?$`)
	actionAsked   = regexp.MustCompile(`(?i)\b(approv(al|e)|permission)\b|\bsend\b.*\b(message|note|mail|e-mail)\b`)
	runAsked      = regexp.MustCompile(`(?i)\b(?:run|execute|calculate with)\b[^.?!]{0,40}\b(?:code|javascript|program|script)\b`)
	codeAsked     = regexp.MustCompile(`(?i)\b(code|function|script|program|snippet|implement|algorithm)\b`)
	whyAsked      = regexp.MustCompile(`(?i)\b(explain|think|why|reason|compare|step by step)\b`)
	arithmetic    = regexp.MustCompile(`[(]*-?\d+(\.\d+)?[)]*(\s*[-+*/^%]\s*[(]*-?\d+(\.\d+)?[)]*)+`)
	plainDate     = regexp.MustCompile(`^\d+(-\d+)+$`)
	operatorWords = strings.NewReplacer("×", "*", "÷", "/", " times ", " * ", " plus ", " + ", " minus ", " - ",
		" divided by ", " / ", " multiplied by ", " * ", " x ", " * ")
)

// reply answers plain text.
func reply(request llm.Request, turn turn) answer {
	built := answer{script: unscripted}
	about := turn.original
	if turn.answered && len(turn.steering) > 0 {
		about = turn.steering[len(turn.steering)-1]
	}
	opening := acknowledge(turn.steering)
	if len(turn.results) > 0 {
		built.text.head = split(opening + fromResults(turn))
		return built
	}
	if call, wanted := toolFor(request, turn, about); wanted {
		built.calls = []plannedCall{{ToolCall: call}}
		return built
	}
	body := fromFiles(slices.Concat(turn.files, turn.earlier), about)
	switch short := len(strings.Fields(about)) <= 6; {
	case body != "":
	case len(turn.files) > 0:
		body = sayFiles(turn.files)
	case greeting.MatchString(about) && short:
		body = sayHello
	case thanking.MatchString(about) && short:
		body = "You are welcome. If something is left open, just go on writing; I still have the whole conversation before me."
	case codeAsked.MatchString(about):
		language := languageOf(about)
		body = "Here is a small example to begin with. It is complete, so you can run it as it stands and then change it.\n\n" +
			fence(language) + "\n\nIt keeps to one idea: a function with a clear name, and a caller that shows how it is used. " +
			"Tell me what it should do differently and I will change it."
	case aboutSelf.MatchString(about):
		body = sayAbout
	case whyAsked.MatchString(about):
		if !turn.hadStep {
			built.reasoning.head = split(fmt.Sprintf(
				"The request is about “%s”. First gather what is known, then order it from cause to effect, then check it against a counter-example.",
				clip.Ellipsis(about, 120)))
		}
		body = sayExplanation(about)
	default:
		body = sayEcho(about)
	}
	built.text.head = split(opening + body)
	built.script.Holds = []Hold{{At: replyHoldToken, Name: about}}
	return built
}

const sayHello = "Hello! It is good to hear from you. I am the scripted model of Turnstone: I answer the same way every time, " +
	"which makes me a dependable partner for trying things out.\n\nAsk me what Turnstone is, let me work out a sum such " +
	"as `12*7`, ask for the time, or ask for a piece of code. You can also steer me while I am still writing."

const sayAbout = "Turnstone runs conversations with language models so that nothing is lost on the way. A question becomes a *turn*: " +
	"it is written down before it is answered, every piece of the answer is written down before you see it, and the " +
	"turn goes on whether or not anybody is looking.\n\nSome things that you can try right now:\n\n" +
	"- **Close the page** while I write and come back: the answer is there, to the byte.\n" +
	"- **Steer me**: write something while I am still answering, and I will take it into account.\n" +
	"- **Stop me**: the answer ends, and what was said stays.\n" +
	"- **Give me a sum** or ask for the time, and watch me use a tool.\n" +
	"- **Let me search the web** for tides, run some code, write a document, or send a message: I need your approval for the last one.\n\n" +
	"What you are talking to is a script that stands in for a model. Give the service the address of a real one and the rest stays the same."

func sayExplanation(about string) string {
	return "Let us take it in steps.\n\n1. **What is asked.** You want to understand “" + clip.Ellipsis(about, 160) + "”. It helps to separate what " +
		"is observed from what is concluded.\n2. **What drives it.** Most such questions turn on one cause that is easy to " +
		"see and one that is easy to miss. Name both before weighing them.\n3. **What follows.** Once the causes stand in " +
		"order, the answer is usually shorter than the question made it seem.\n\nI am only a script, so the substance is " +
		"yours; but the order is one that serves well."
}

func sayEcho(about string) string {
	if about == "" {
		return "You sent me a message without any words for me to answer. Write a question, and I will do my best with it."
	}
	words := strings.Fields(about)
	return "You wrote: “" + clip.Ellipsis(about, 400) + "”\n\nThat is " + count(len(words), "word", "words") + ", and the one that carries the most seems to be “" +
		longest(words) + "”. If I were a large model I would now tell you what others have written about it; as a script I can do " +
		"something humbler, and ask what you would like to happen with it.\n\nDo you want it shortened, put in order, or turned into " +
		"a plan? Say so, even while I am still writing, and the next sentence will take it into account."
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func longest(words []string) string {
	best := ""
	for _, word := range words {
		if word = strings.TrimFunc(word, notLetter); len(word) > len(best) {
			best = word
		}
	}
	return clip.Ellipsis(best, 40)
}

// toolFor chooses a tool call for the question, once per question.
func toolFor(request llm.Request, turn turn, about string) (llm.ToolCall, bool) {
	if runAsked.MatchString(about) && offered(request, toolCode) && !turn.calledTools {
		return newCall(request, 0, toolCode, runInput(about, turn.files)), true
	}
	if expression := expressionIn(about); expression != "" && offered(request, toolCalculate) && !turn.calledTools {
		name := inputName(request, toolCalculate, "expression")
		return newCall(request, 0, toolCalculate, map[string]any{name: expression}), true
	}
	if timeAsked.MatchString(about) && offered(request, toolTime) && !turn.calledTools {
		name := inputName(request, toolTime, "timezone")
		return newCall(request, 0, toolTime, map[string]any{name: zoneIn(about)}), true
	}
	if actionAsked.MatchString(about) && offered(request, toolAction) && !turn.calledTools {
		return newCall(request, 0, toolAction, map[string]any{"note": clip.Ellipsis(about, 400), "recipient": "the crew of the Turnstone"}), true
	}
	if address := pageAsked.FindStringSubmatch(about); address != nil && offered(request, toolPage) && !turn.calledTools {
		return newCall(request, 0, toolPage, map[string]any{"url": address[1]}), true
	}
	if subject := researchAsked.FindStringSubmatch(about); subject != nil && offered(request, toolResearch) && !turn.calledTools {
		return newCall(request, 0, toolResearch, map[string]any{"question": strings.TrimSpace(subject[1]), "depth": "quick"}), true
	}
	if kind := writeAsked.FindStringSubmatch(about); kind != nil && offered(request, toolWrite) && !turn.calledTools {
		return newCall(request, 0, toolWrite, artifactInput(kindsOfArtifacts[strings.ToLower(kind[1])])), true
	}
	for _, search := range []struct {
		tool  string
		asked *regexp.Regexp
	}{{toolPast, pastAsked}, {toolWeb, webAsked}, {toolSearch, searchAsked}} {
		if search.asked.MatchString(about) && offered(request, search.tool) && !turn.calledTools {
			return newCall(request, 0, search.tool, map[string]any{inputName(request, search.tool, "query"): wordsIn(about)}), true
		}
	}
	if placeAsked.MatchString(about) && offered(request, toolLocation) && !turn.calledTools {
		return newCall(request, 0, toolLocation, map[string]any{}), true
	}
	if projectAsked.MatchString(about) && offered(request, toolProject) && !turn.calledTools {
		return newCall(request, 0, toolProject, map[string]any{}), true
	}
	return llm.ToolCall{}, false
}

// wordsIn returns the words for which a question asks to search.
func wordsIn(about string) string {
	if found := searchedFor.FindStringSubmatch(strings.TrimRight(about, "?!. ")); found != nil {
		return found[1]
	}
	return about
}

func expressionIn(about string) string {
	found := strings.TrimSpace(arithmetic.FindString(operatorWords.Replace(about)))
	if plainDate.MatchString(found) && !strings.Contains(strings.ToLower(about), "what is") {
		return "" // 2024-05-17 and 555-1234 are not calculations
	}
	return found
}

var zones = map[string]string{
	"berlin": "Europe/Berlin", "london": "Europe/London", "paris": "Europe/Paris", "new york": "America/New_York",
	"san francisco": "America/Los_Angeles", "tokyo": "Asia/Tokyo", "delhi": "Asia/Kolkata", "sydney": "Australia/Sydney",
}

func zoneIn(about string) string {
	about = strings.ToLower(about)
	for _, city := range slices.Sorted(maps.Keys(zones)) {
		if strings.Contains(about, city) {
			return zones[city]
		}
	}
	return "UTC"
}

// fromResults describes the results of the last step's tools.
func fromResults(turn turn) string {
	var texts []string
	for _, result := range turn.results {
		var call llm.ToolCall
		for _, candidate := range turn.calls {
			if candidate.ID == result.ToolCallID {
				call = candidate
			}
		}
		texts = append(texts, fromResult(call, result))
	}
	return strings.Join(texts, "\n\n")
}

func fromResult(call llm.ToolCall, result llm.Message) string {
	value := clip.Ellipsis(plainResult(result.Text), 400)
	asked := onlyValue(call.Input)
	switch {
	case result.ToolFailed && call.Name == toolAction:
		return "I did not do it: " + value
	case call.Name == toolAction:
		return "Done, with your approval. " + value
	case result.ToolFailed:
		return "I tried to find that out with a tool, but it could not help: " + value
	case call.Name == toolCalculate:
		return fmt.Sprintf("`%s` is **%s**.", asked, value)
	case call.Name == toolTime:
		return fmt.Sprintf("By the clock of the service it is **%s** (%s).", value, asked)
	case call.Name == toolCode:
		return "I ran the code. It printed:\n\n```\n" + value + "\n```"
	case call.Name == toolWrite:
		return "I wrote it. You can read, change and download it beside the conversation."
	case call.Name == toolWeb || call.Name == toolPage:
		return fromWeb(result.Text)
	case call.Name == toolSearch || call.Name == toolRead:
		return fromFound(result.Text, asked)
	}
	return "The tool answered: " + value
}

// webPage is a page in the result of a tool, with its number, its title and the beginning of its text.
var webPage = regexp.MustCompile(`(?s)<webpage number="(\d+)" title="([^"]*)"[^>]*>\s*(.*?)\s*</webpage>`)

// fromWeb quotes the beginnings of the first pages.
func fromWeb(result string) string {
	const most = 3
	var quotes []string
	for _, found := range webPage.FindAllStringSubmatch(result, most) {
		page := file{number: found[1], name: html.UnescapeString(found[2])}
		quotes = append(quotes, fmt.Sprintf("- “%s”: %s%s", page.name, clip.Ellipsis(html.UnescapeString(found[3]), 160), page.marker("")))
	}
	if len(quotes) == 0 {
		return "I found nothing that I could read: " + clip.Ellipsis(result, 200)
	}
	return "This is what I found:\n\n" + strings.Join(quotes, "\n")
}

// plainResult extracts the value from a result that is a small JSON object.
func plainResult(text string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) == nil {
		for _, name := range []string{"result", "value", "time", "local_time", "now", "error"} {
			if value, found := fields[name]; found {
				return fmt.Sprint(value)
			}
		}
	}
	return strings.TrimSpace(text)
}

func onlyValue(input json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(input, &fields) == nil && len(fields) == 1 {
		for _, value := range fields {
			return fmt.Sprint(value)
		}
	}
	return string(input)
}

// The words of a title, and the characters of a word: some writing systems have no spaces.
const (
	minTitle     = 3
	maxTitle     = 6
	maxTitleWord = 24
)

// title returns a title made of the first words of the first user message.
func title(messages []llm.Message) string {
	var words []string
	for _, message := range messages {
		if message.Role == "user" {
			for _, word := range strings.Fields(withoutDirective(message.Text)) {
				if word = strings.TrimFunc(word, notLetter); word != "" && len(words) < maxTitle {
					words = append(words, clip.Ellipsis(word, maxTitleWord))
				}
			}
			break
		}
	}
	switch {
	case len(words) == 0:
		return "A new conversation"
	case len(words) < minTitle:
		words = append([]string{"Talking", "about"}, words...)
	}
	line := []rune(strings.Join(words, " "))
	line[0] = unicode.ToUpper(line[0])
	return string(line)
}

func acknowledge(steering []string) string {
	if len(steering) == 0 {
		return ""
	}
	return "Taking into account: " + clip.Ellipsis(strings.Join(steering, "; "), 300) + "\n\n"
}
