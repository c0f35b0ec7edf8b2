package source

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// markdown converts an answer to Markdown. Nothing but its texts and their marks is kept.
func markdown(answer string) string {
	var m markdownText
	from := html.NewTokenizer(strings.NewReader(answer))
	for kind := from.Next(); kind != html.ErrorToken; kind = from.Next() {
		if token := from.Token(); kind == html.TextToken {
			m.addText(token.Data)
		} else {
			m.addTag(&token)
		}
	}
	return strings.TrimSpace(m.String())
}

// markdownText is the Markdown of what was read.
type markdownText struct {
	strings.Builder
	lists   []int  // the number of the next item of each open list; 0: not numbered
	address string // of the open link
	code    bool   // in a block of code
}

// line ends the line, with an empty one if lines are two.
func (m *markdownText) line(lines string) {
	if text := m.String(); text != "" && !strings.HasSuffix(text, lines) {
		m.WriteString(lines)
	}
}

func (m *markdownText) addText(text string) {
	if !m.code {
		if text = strings.ReplaceAll(text, "\n", " "); strings.TrimSpace(text) == "" && (m.Len() == 0 || strings.HasSuffix(m.String(), "\n")) {
			return
		}
	}
	m.WriteString(text)
}

func (m *markdownText) addTag(tag *html.Token) {
	starts := tag.Type == html.StartTagToken
	switch name := tag.Data; name {
	case "br":
		m.WriteString("\n")
	case "hr":
		m.line("\n\n")
		m.WriteString("---\n\n")
	case "p", "div", "table", "blockquote":
		if len(m.lists) == 0 || !starts {
			m.line("\n\n")
		}
	case "h1", "h2", "h3", "h4", "h5", "h6":
		if m.line("\n\n"); starts {
			m.WriteString(strings.Repeat("#", int(name[1]-'0')) + " ")
		}
	case "ul", "ol":
		m.addList(tag)
	case "li":
		if m.line("\n"); starts {
			m.addItem()
		}
	case "pre":
		if m.code = starts; starts {
			m.line("\n\n")
		} else {
			m.line("\n")
		}
		m.WriteString("```\n")
	case "code":
		if !m.code {
			m.WriteString("`")
		}
	case "b", "strong":
		m.WriteString("**")
	case "i", "em":
		m.WriteString("*")
	case "tr":
		m.line("\n")
	case "td", "th":
		if starts {
			m.WriteString("| ")
		} else {
			m.WriteString(" ")
		}
	case "a":
		m.addLink(tag)
	}
}

func (m *markdownText) addList(tag *html.Token) {
	m.line("\n")
	switch {
	case tag.Type == html.StartTagToken && len(m.lists) < maxNesting:
		m.lists = append(m.lists, map[bool]int{true: 1}[tag.Data == "ol"])
	case tag.Type == html.EndTagToken && len(m.lists) > 0:
		m.lists = m.lists[:len(m.lists)-1]
	}
}

func (m *markdownText) addItem() {
	if len(m.lists) == 0 {
		return
	}
	const deepest = 10
	m.WriteString(strings.Repeat("  ", min(len(m.lists)-1, deepest)))
	if last := &m.lists[len(m.lists)-1]; *last > 0 {
		m.WriteString(strconv.Itoa(*last) + ". ")
		*last++
	} else {
		m.WriteString("- ")
	}
}

func (m *markdownText) addLink(tag *html.Token) {
	switch {
	case tag.Type == html.StartTagToken:
		m.address = ""
		for _, attribute := range tag.Attr {
			if attribute.Key == "href" {
				m.address = attribute.Val
			}
		}
		if m.address != "" {
			m.WriteString("[")
		}
	case m.address != "":
		m.WriteString("](" + m.address + ")")
		m.address = ""
	}
}
