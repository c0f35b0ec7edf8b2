package page

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// styleSheet has the classes and identifiers whose elements the style sheets within a page hide. Style sheets of their own are
// not requested, so what only they hide is read.
type styleSheet struct{ classes, ids map[string]bool }

const maxStyle = 256 << 10 // bytes of the style sheets of a page that are looked at

var (
	styleComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	styleRule    = regexp.MustCompile(`([^{}]*)\{([^{}]*)\}`)
	simple       = regexp.MustCompile(`^(?:[a-zA-Z0-9]*)([.#])([A-Za-z0-9_-]+)$`)
)

// styleSheetOf reads the style sheets within a page: the rules for one class or one identifier that are not within another
// rule such as @media. A later rule that shows an element again counts.
func styleSheetOf(root *html.Node) styleSheet {
	sheet := styleSheet{classes: map[string]bool{}, ids: map[string]bool{}}
	left := maxStyle
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Data != "style" || left <= 0 {
			continue
		}
		text := TextOf(n)
		text = text[:min(len(text), left)]
		left -= len(text)
		for _, match := range styleRule.FindAllStringSubmatch(topLevel(styleComment.ReplaceAllString(text, "")), -1) {
			declared := declarations(match[2])
			hidden := declared.hide(surroundings{})
			shown := declared["display"] != "" || declared["visibility"] != ""
			for selector := range strings.SplitSeq(match[1], ",") {
				one := simple.FindStringSubmatch(strings.TrimSpace(selector))
				if one == nil || !hidden && !shown {
					continue
				}
				if one[1] == "." {
					sheet.classes[one[2]] = hidden
				} else {
					sheet.ids[one[2]] = hidden
				}
			}
		}
	}
	return sheet
}

// topLevel removes the rules that contain rules.
func topLevel(text string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, '@')
		if at < 0 {
			break
		}
		b.WriteString(text[:at])
		text = text[at:]
		end := strings.IndexAny(text, "{;")
		if end < 0 {
			return b.String()
		}
		if text[end] == ';' {
			text = text[end+1:]
			continue
		}
		open := 0
		for end < len(text) {
			if text[end] == '{' {
				open++
			} else if text[end] == '}' {
				if open--; open == 0 {
					break
				}
			}
			end++
		}
		text = text[min(end+1, len(text)):]
	}
	b.WriteString(text)
	return b.String()
}

// surroundings are what can make a text visible that has the color of an empty page.
type surroundings struct{ styled bool }

// below returns the surroundings of the children of an element.
func (s surroundings) below(n *html.Node) surroundings {
	if n.Data != "html" && (n.Data != "body" && attribute(n, "class")+attribute(n, "id") != "" || strings.Contains(attribute(n, "style"), "background") || attribute(n, "bgcolor") != "") {
		s.styled = true
	}
	return s
}

// hides reports whether the reader of a page does not see an element.
func (s *styleSheet) hides(n *html.Node, around surroundings) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return a.Val != "until-found"
		case "aria-hidden":
			if a.Val == "true" {
				return true
			}
		case "class":
			for class := range strings.FieldsSeq(a.Val) {
				if s.classes[class] {
					return true
				}
			}
		case "id":
			if s.ids[a.Val] {
				return true
			}
		case "style":
			if declarations(a.Val).hide(around.below(&html.Node{Data: n.Data, Attr: withoutStyle(n.Attr)})) {
				return true
			}
		}
	}
	return n.Data == "font" && around == surroundings{} && white(attribute(n, "color"))
}

func withoutStyle(attributes []html.Attribute) []html.Attribute {
	return slices.DeleteFunc(slices.Clone(attributes), func(a html.Attribute) bool { return a.Key == "style" })
}

// style are the declarations of a style, by their properties.
type style map[string]string

const maxDeclarations = 100

func declarations(text string) style {
	s := style{}
	for one := range strings.SplitSeq(strings.ToLower(text), ";") {
		property, value, found := strings.Cut(one, ":")
		value = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "!important"))
		if found && len(s) < maxDeclarations {
			s[strings.TrimSpace(property)] = value
		}
	}
	return s
}

// hide reports whether a style hides an element.
func (s style) hide(around surroundings) bool {
	overflows := s["overflow"] == "hidden" || s["overflow"] == "clip"
	background := s["background-color"]
	if background == "" {
		background = s["background"]
	}
	color := s["color"]
	switch {
	case s["display"] == "none", s["visibility"] == "hidden", s["visibility"] == "collapse", s["content-visibility"] == "hidden":
	case isLess(s["opacity"], 0.05), isLess(s["font-size"], 2) && !strings.Contains(s["font-size"], "em") && !strings.Contains(s["font-size"], "vw"), isLess(s["text-indent"], -900):
	case overflows && (isLess(s["height"], 2) || isLess(s["max-height"], 2) || isLess(s["width"], 2) || isLess(s["max-width"], 2)):
	case (s["position"] == "absolute" || s["position"] == "fixed") && (isLess(s["left"], -900) || isLess(s["top"], -900) || isLess(s["right"], -900)):
	case strings.HasPrefix(s["clip-path"], "inset(50%") || strings.HasPrefix(s["clip-path"], "inset(100%"), strings.HasPrefix(s["clip"], "rect(0"), strings.HasPrefix(s["clip"], "rect(1px"):
	case strings.Contains(s["transform"], "scale(0)"):
	case color == "transparent", color != "" && color == background, white(color) && white(background):
	case white(color) && background == "" && !around.styled:
	default:
		return false
	}
	return true
}

var number = regexp.MustCompile(`^-?[0-9]*\.?[0-9]+`)

// isLess reports whether a value is a number, with or without a unit, that is less than a limit. Percentages of an opacity are
// not: they are seldom written.
func isLess(value string, limit float64) bool {
	n, err := strconv.ParseFloat(number.FindString(value), 64)
	return err == nil && n < limit
}

func white(color string) bool {
	switch strings.ReplaceAll(color, " ", "") {
	case "white", "#fff", "#ffffff", "#fefefe", "#ffff", "#ffffffff", "rgb(255,255,255)", "rgba(255,255,255,1)", "snow", "ghostwhite":
		return true
	}
	return false
}
